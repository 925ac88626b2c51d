"""A schema-log folded again: by the worker's own fold, over rows in memory."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator

from shardmerge.agents.coordination import coordinator
from shardmerge.agents.coordination.state import state_rows
from shardmerge.agents.coordination.state.target_state import TargetState
from shardmerge.agents.handling.effects import Effects, Fold, SourceRecord
from shardmerge.connectors.formats.stored_record import StoredRecord
from shardmerge.schemas.model.errors import ContractError
from shardmerge.schemas.model.names import TargetTable


def in_time(partitions: Iterable[Iterable[StoredRecord]]) -> Iterator[StoredRecord]:
    """The records of several partitions as one sequence.

    A partition's own order is kept, and with it every target's, since a target lives in one
    partition. Among the partitions' next records the one with the earliest timestamp comes first,
    then by the partitions' given order: people read it as it happened, as far as clocks agree.
    Timestamps are stored with the records and nothing else counts, so equal records give the same
    sequence at any time, on any machine.
    """
    ahead: list[tuple[int, int, StoredRecord, Iterator[StoredRecord]]] = []
    for place, partition in enumerate(partitions):
        records = iter(partition)
        if (first := next(records, None)) is not None:
            ahead.append((first.timestamp_ms, place, first, records))
    heapq.heapify(ahead)
    while ahead:
        _, place, record, records = ahead[0]
        yield record
        if (following := next(records, None)) is None:
            heapq.heappop(ahead)
        else:
            heapq.heapreplace(ahead, (following.timestamp_ms, place, following, records))


class MemoryRows:
    """The rows of an agent's table, in memory."""

    def __init__(self) -> None:
        self._rows: dict[bytes, bytes] = {}
        self._of_target: dict[TargetTable, dict[bytes, None]] = {}
        """The keys of each target's rows besides its header, in order of their coming."""

    def get(self, key: bytes) -> bytes | None:
        """The row, or None."""
        return self._rows.get(key)

    def keys(self) -> Iterable[bytes]:
        """All row keys."""
        return self._rows.keys()

    def take(self, effects: Effects) -> None:
        """Perform the puts of a record."""
        for key, value in effects.puts.items():
            parsed = state_rows.parsed_key(key)
            if parsed is not None:
                keys = self._of_target.setdefault(parsed[0], {})
                if value is None:
                    keys.pop(key, None)
                else:
                    keys[key] = None
            if value is None:
                self._rows.pop(key, None)
            else:
                self._rows[key] = value

    def targets(self) -> list[TargetTable]:
        """The coordinator's targets, sorted."""
        keys = map(state_rows.parsed_key, self._rows)
        return sorted({parsed[0] for parsed in keys if parsed is not None})

    def state(self, target: TargetTable) -> TargetState:
        """The coordinator's state of a target; the initial one before its first change."""
        if self.get(state_rows.header_key(target)) is None:
            return coordinator.initial(target)
        return state_rows.stored_state(target, self.get, self._of_target.get(target, {}))


class Refold:
    """One agent's fold over its records, from the beginning."""

    def __init__(self, fold: Fold) -> None:
        self._fold = fold
        self.rows = MemoryRows()

    def effects(self, record: StoredRecord) -> Effects:
        """What the record does; not performed yet, so that the rows are still those before it.

        Raises:
            ContractError: The record is none of this agent's. The message tells its place.
        """
        source = SourceRecord(
            record.topic, record.partition, record.offset, record.key, record.value
        )
        try:
            return self._fold(self.rows, source)
        except ContractError as error:
            if f"{record.topic}@{record.offset}" in error.message or record.place in error.message:
                raise
            raise ContractError(
                f"{record.place}: {error.message}", hint=error.hint, code=error.code
            ) from error


class OnePartition:
    """Checks that every key of the schema-log stays in one partition.

    A target's changes have the order of its partition; across two partitions they have no order.
    """

    def __init__(self) -> None:
        self._first: dict[bytes | None, StoredRecord] = {}

    def check(self, record: StoredRecord) -> None:
        """Look at the next record.

        Raises:
            ContractError: Another partition has a record of the same key.
        """
        first = self._first.setdefault(record.key, record)
        if first.partition != record.partition:
            key = (record.key or b"").decode("utf-8", "replace")
            raise ContractError(
                f"{key!r} has records in two partitions, {first.place} and {record.place}: their "
                "order is not known",
                hint="the order by key is lost: leave the number of the topic's partitions as "
                "it is, and let no other program write to it",
                code="SM-2110",
            )
