"""The sink's state in an Iceberg table's properties, as one JSON text. Pure.

The state changes in the same metadata commit as the rows or the schema that it describes, and only
by a compare-and-set of the whole metadata: see ``tables``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from shardmerge.schemas.model.errors import ContractError, WriterReplaced
from shardmerge.schemas.model.names import ShardId
from shardmerge.spark_sink.barrier.closing import Closing
from shardmerge.spark_sink.barrier.partitions import Partition
from shardmerge.spark_sink.planning.ranges import Advance, RangeResult
from shardmerge.spark_sink.targets.interface import JournalEntry, taken_over

from .decided import Decided, decided_json, read_decided

_FORMAT, _SHARED_FORMAT, _CLOSED_FORMAT = 1, 2, 3
"""The second format also has offsets of parts of shared topics, the third one the mark of a closed
table. Versions of the sink that do not know these must stop."""


def state_key(pipeline: str) -> str:
    """The table property that holds a pipeline's state."""
    return f"shardmerge.{pipeline}.state"


@dataclass(frozen=True, slots=True)
class StoredState:
    """One table's state.

    Attributes:
        epoch: Of the last writer that changed or fenced the table.
        offsets: Partition → next offset to apply.
        rows: Row events applied.
        done: ``version.ordinal`` of executed statements.
        refused: ``version.ordinal`` of refused statements → the reason.
        codes: ``version.ordinal`` of refused statements → the code, where there is one.
        decided: The table that the executed statements make; None while that is not known. Versions
            of the sink that do not know it leave it out when they write the state.
        closed: Why the sink may not change the table now; None when it may.
    """

    epoch: int = 0
    offsets: Mapping[Partition, int] = field(default_factory=dict)
    rows: int = 0
    done: frozenset[str] = frozenset()
    refused: Mapping[str, str] = field(default_factory=dict)
    codes: Mapping[str, str] = field(default_factory=dict)
    decided: Decided | None = None
    closed: Closing | None = None

    def fenced(self, epoch: int) -> StoredState:
        """The state with the epoch of a writer that goes on from it.

        Raises:
            WriterReplaced: A later writer took over.
        """
        if self.epoch > epoch:
            raise taken_over(self.epoch, epoch)
        return replace(self, epoch=epoch)

    def advanced(self, moves: Iterable[RangeResult | Advance]) -> StoredState:
        """The state with each offset moved from its move's start to its end, forward or back.

        Raises:
            WriterReplaced: A stored offset is not where its move starts.
        """
        offsets, rows = dict(self.offsets), self.rows
        for move in moves:
            stored = offsets.get(move.place)
            if stored is not None and stored != move.start_offset:
                raise WriterReplaced(
                    f"another writer moved {move.place}: its offset is"
                    f" {stored}, expected {move.start_offset}",
                    hint="only one sink may run per pipeline; it starts again from the stored"
                    " offsets",
                    code="SM-3103",
                )
            offsets[move.place] = move.next_offset
            rows += move.rows
        return replace(self, offsets=offsets, rows=rows)

    def stands_behind(self, moves: Iterable[RangeResult | Advance]) -> bool:
        """Whether every offset is where its move ends."""
        return all(self.offsets.get(move.place) == move.next_offset for move in moves)

    def journalled(self, statement: str, entry: JournalEntry) -> StoredState:
        """The state with the outcome of a statement, which replaces an earlier outcome."""
        refused = {s: error for s, error in self.refused.items() if s != statement}
        codes = {s: code for s, code in self.codes.items() if s != statement}
        if entry.state == "done":
            done = self.done | {statement}
            return replace(self, done=done, refused=refused, codes=codes)
        refused[statement] = entry.error
        codes |= {statement: entry.code} if entry.code else {}
        return replace(self, done=self.done - {statement}, refused=refused, codes=codes)


def to_json(state: StoredState) -> str:
    """The JSON text of a state; equal states give equal texts."""
    offsets: dict[str, dict[str, int]] = {}
    shared: list[list[str | int]] = []
    for (topic, number, shard), offset in sorted(state.offsets.items()):
        if shard is None:
            offsets.setdefault(topic, {})[str(number)] = offset
        else:
            shared.append([topic, number, shard.source, shard.database, shard.table, offset])
    own_format = _SHARED_FORMAT if shared else _FORMAT
    document: dict[str, Any] = {
        "format": own_format if state.closed is None else _CLOSED_FORMAT,
        "epoch": state.epoch, "offsets": offsets, "rows": state.rows,
        "done": sorted(state.done, key=_order), "refused": dict(sorted(state.refused.items())),
    }  # fmt: skip
    if shared:
        document["shared"] = shared
    if state.codes:
        document["codes"] = dict(sorted(state.codes.items()))
    if state.decided is not None:
        document["decided"] = decided_json(state.decided)
    if state.closed is not None:
        document["closed"] = state.closed.value
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False)


def from_json(text: str | None) -> StoredState:
    """The state in a text; an empty state for None.

    Raises:
        ContractError: It was not written by this version or an earlier one.
    """
    if text is None:
        return StoredState()
    try:
        document = json.loads(text)
        if document["format"] not in (_FORMAT, _SHARED_FORMAT, _CLOSED_FORMAT):
            raise ValueError(f"format {document['format']!r}")
        return StoredState(
            document["epoch"],
            {
                Partition(topic, int(partition)): offset
                for topic, of_topic in document["offsets"].items()
                for partition, offset in of_topic.items()
            }
            | {
                Partition(topic, number, ShardId(*shard)): offset
                for topic, number, *shard, offset in document.get("shared", ())
            },
            document["rows"],
            frozenset(document["done"]),
            document["refused"],
            document.get("codes", {}),
            read_decided(document["decided"]) if "decided" in document else None,
            Closing(document["closed"]) if "closed" in document else None,
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ContractError(
            f"the sink's state in a table's properties is not readable: {error}",
            hint="it was written by a newer version, or somebody changed it",
            code="SM-2201",
        ) from error


def statement_key(version: int, ordinal: int) -> str:
    """The name of a statement in the state: ``version.ordinal``."""
    return f"{version}.{ordinal}"


def _order(statement: str) -> tuple[int, ...]:
    return tuple(map(int, statement.split(".")))
