"""Rebuilds of Iceberg targets: their records in the control table, and what moves in a swap. Pure.

The shadow keeps its sink's state in its own properties, as every table does. In the swap, the state
comes into the target's properties, in the commit that gives the target the shadow's rows.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace

from shardmerge.schemas.model.names import TargetTable
from shardmerge.schemas.records.plain import dump, load
from shardmerge.spark_sink.barrier.closing import Closing, Marks
from shardmerge.spark_sink.barrier.decisions import StatementKey
from shardmerge.spark_sink.rebuilding.rebuild_record import RebuildRecord, Stage
from shardmerge.spark_sink.rebuilding.route_changes import RouteChange

from .decided import Decided
from .layout import Field, Layout
from .stored import StoredState

REBUILDS = "shardmerge.rebuilds"
"""The control table's property with all rebuilds of the pipeline."""
_OWN = "shardmerge."
_NOT_COPIED = frozenset({"comment", "gc.enabled", "write.data.path", "write.metadata.path"})
_IN_PLACE = (Stage.SWAPPED, Stage.ENDED)


def rebuilds_of(text: str | None) -> list[RebuildRecord]:
    """The rebuilds in the property's value, by number.

    Raises:
        ContractError: It was not written by this version or an earlier one.
    """
    return [load(RebuildRecord, each.encode()) for each in json.loads(text or "[]")]


def rebuilds_text(records: Sequence[RebuildRecord]) -> str:
    """The property's value."""
    texts = [dump(record).decode() for record in sorted(records, key=lambda each: each.number)]
    return json.dumps(texts, ensure_ascii=False)


def kept(records: Sequence[RebuildRecord], record: RebuildRecord) -> list[RebuildRecord]:
    """The rebuilds with one put in, or put in place of the one with its number."""
    return [*(each for each in records if each.number != record.number), record]


def marks_of(records: Sequence[RebuildRecord]) -> Marks:
    """What the pipeline's sink has to know of them."""
    return Marks(
        {each.target: Closing.SWAPPING for each in records if each.stage is Stage.SWAPPING},
        max((each.number for each in records if each.stage in _IN_PLACE), default=0),
    )


def changes_of(records: Sequence[RebuildRecord]) -> tuple[RouteChange, ...]:
    """What those whose tables are in place have changed in routes, in order."""
    placed = sorted((r for r in records if r.stage in _IN_PLACE), key=lambda each: each.number)
    return tuple(change for record in placed for change in record.changes)


def control_of_shadow(shadow: TargetTable) -> TargetTable:
    """The control table of the sink that fills a shadow; it is beside the shadow."""
    return TargetTable(shadow.database, f"sink_of_{shadow.table}")


def tag_of(record: RebuildRecord) -> str:
    """The name of the tag that keeps the target's last snapshot from before the swap."""
    return f"shardmerge_old_{record.number}"


def shadow_columns(decided: Layout, target: Layout, known: Decided | None) -> Decided:
    """The columns of a new shadow, as its sink is to know them.

    A column has the id that the target's column of the same name has. The shadow's files come into
    the target's table, and Iceberg finds values in files by the columns' ids.

    Args:
        decided: The decided columns.
        target: Those of the target's table.
        known: What the target's sink knows of them. Adopted columns stay columns to which no sink
            writes, and adopted identifier fields stay so.
    """
    fields, last = list[Field](), target.last_id
    for field in decided.fields:
        there = target.field(field.name)
        if there is None:
            last += 1
        fields.append(replace(field, id=last if there is None else there.id))
    if known is None:
        return Decided(Layout(tuple(fields), last))
    names = {field.id: field.name.lower() for field in known.layout.fields}
    identifiers = {names.get(number) for number in known.layout.identifiers}
    others = {names.get(number) for number in known.others}
    ids = (f.id for f in fields if f.required and f.name.lower() in identifiers)
    layout = Layout(tuple(fields), last, tuple(ids))
    return Decided(layout, others=frozenset(f.id for f in fields if f.name.lower() in others))


def shadow_properties(target: Mapping[str, str], data: str) -> dict[str, str]:
    """The table properties of a shadow.

    Args:
        target: Those of the target's table.
        data: Where the target's data files are. The shadow's are there, too: they stay where they
            are in the swap.
    """
    copied = {
        key: value
        for key, value in target.items()
        if not key.startswith(_OWN) and key not in _NOT_COPIED
    }
    return {**copied, "write.data.path": data}


def first_state(target: StoredState, version: int, columns: Decided) -> StoredState:
    """The state with which the shadow's sink begins.

    Args:
        target: The target's. Whatever was before its offsets, the shards' tables have it.
        version: See ``RebuildRecord``.
        columns: The shadow's.
    """
    # Negative ordinals are marks: these rows were taken out of the target before.
    marks = {key for key in target.done if _ordinal(key) < 0 and _version(key) <= version}
    return StoredState(0, target.offsets, 0, frozenset(marks), decided=columns)


def swapped_state(
    target: StoredState, shadow: StoredState, version: int, epoch: int, sequence: int
) -> StoredState:
    """The target's state with the shadow's rows.

    Args:
        target: The target's state before.
        shadow: The shadow's.
        version: See ``RebuildRecord``.
        epoch: Later than that of every writer that knows the target from before.
        sequence: The target's highest sequence number: earlier commits of others are gone with the
            rows.
    """
    done = {key for key in target.done if _version(key) <= version}
    done |= {key for key in shadow.done if _version(key) > version}
    return StoredState(
        epoch,
        {**target.offsets, **shadow.offsets},
        target.rows + shadow.rows,
        frozenset(done),
        {key: why for key, why in shadow.refused.items() if _version(key) > version},
        {key: code for key, code in shadow.codes.items() if _version(key) > version},
        None if shadow.decided is None else replace(shadow.decided, after=sequence),
    )


def events_behind(target: StoredState, shadow: StoredState) -> int:
    """How many offsets the target has applied and the shadow has not."""
    return sum(
        max(offset - shadow.offsets.get(place, 0), 0) for place, offset in target.offsets.items()
    )


def statements_behind(target: StoredState, shadow: StoredState, version: int) -> int:
    """How many statements after a version the target has executed and the shadow has not."""
    return len({key for key in target.done if _version(key) > version} - shadow.done)


def executed_in(state: StoredState) -> set[StatementKey]:
    """The executed statements and marks of a state."""
    return {StatementKey(_version(key), _ordinal(key)) for key in state.done}


def _version(key: str) -> int:
    return int(key.split(".", maxsplit=1)[0])


def _ordinal(key: str) -> int:
    return int(key.split(".")[1])
