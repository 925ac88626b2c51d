"""Corrections of a schema history make what Debezium knows true, and then there are none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from hypothesis import given
from hypothesis import strategies as st

from shardmerge.connectors.binlog.source_offset import SourceOffset
from shardmerge.connectors.repair.schema_history.history import (
    HistoryRecord,
    corrections,
    debezium_applies,
    drop_text,
    history_record,
    is_before,
    known_tables,
    table_records,
    true_order_applies,
)

UUID = "84ffc6e9-e7f5-11f1-b328-02fc00000001"
MARK = ":9223372036854775806-1"
"""Of those of before a connector went by its place."""
NAMES = ("t", "u", "v")
IDS = tuple(f'"app"."{name}"' for name in NAMES)


@st.composite
def offsets(draw: st.DrawFn, snapshot: bool = False) -> SourceOffset:
    values: dict[str, Any] = {"file": "b.000001", "pos": draw(st.integers(1, 6))}
    gtids = draw(st.sampled_from(("", f"{UUID}:1-", f"{UUID}:1:3-", "0-1-", "0-2-")))
    if gtids:
        values["gtids"] = f"{gtids}{draw(st.integers(4, 9))}"
        if gtids.startswith(UUID) and draw(st.booleans()):
            values["gtids"] += MARK
    elif draw(st.booleans()):
        values["gtids"] = UUID + MARK
    if draw(st.booleans()):
        values["event"] = draw(st.integers(0, 3))
        values["row"] = draw(st.integers(0, 2))
    if not snapshot and draw(st.booleans()):
        values["server_id"] = 7
    return SourceOffset(values, by_gtid=draw(st.booleans()))


@st.composite
def changes(draw: st.DrawFn) -> dict[str, Any]:
    number = draw(st.sampled_from(IDS))
    kind = draw(st.sampled_from(("CREATE", "ALTER", "DROP", "RENAME")))
    if kind == "DROP":
        return {"type": "DROP", "id": number}
    names = draw(st.lists(st.sampled_from("abc"), min_size=1, max_size=2, unique=True))
    change = {"type": kind, "id": number, "table": {"columns": [{"name": n} for n in names]}}
    if kind == "RENAME":
        return {**change, "type": "ALTER", "previousId": draw(st.sampled_from(IDS))}
    return change


@st.composite
def records(draw: st.DrawFn) -> list[HistoryRecord]:
    kind = draw(st.sampled_from(("snapshot", "streamed", "database", "ours")))
    offset = draw(offsets(snapshot=kind == "snapshot"))
    if kind == "ours":
        name = draw(st.sampled_from(NAMES))
        text = draw(
            st.sampled_from((drop_text("app", name), f"CREATE TABLE `app`.`{name}` (a INT)"))
        )
        return written(table_records("s1", offset, 1, table=f'"app"."{name}"', text=text))
    if kind == "database":
        return [HistoryRecord(offset, snapshot=False, text="DROP DATABASE app", changes=())]
    made = tuple(draw(st.lists(changes(), max_size=2)))
    return [HistoryRecord(offset, snapshot=kind == "snapshot", text="x", changes=made)]


def written(values: list[bytes]) -> list[HistoryRecord]:
    found = [history_record(value, "h") for value in values]
    assert None not in found
    return [record for record in found if record is not None]


Applies: TypeAlias = Callable[[HistoryRecord, SourceOffset], bool]
HISTORY_CLASSES = st.sampled_from((debezium_applies, true_order_applies))
HISTORIES = st.lists(records(), max_size=8).map(lambda groups: [r for g in groups for r in g])


@given(HISTORIES, offsets(), HISTORY_CLASSES)
def test_corrections_make_what_debezium_knows_true(
    history: list[HistoryRecord], offset: SourceOffset, applies: Applies
) -> None:
    true = known_tables(history, lambda r: is_before(r, offset))
    before = known_tables(history, lambda r: applies(r, offset))

    found = corrections(history, offset, "s1", 1, applies=applies)

    corrected = [*history, *written(found)]
    assert known_tables(corrected, lambda r: applies(r, offset)) == true
    assert known_tables(corrected, lambda r: is_before(r, offset)) == true
    assert (found == []) == (before == true)
    assert corrections(corrected, offset, "s1", 2, applies=applies) == []


@given(HISTORIES, offsets(), st.integers(0, 3), HISTORY_CLASSES)
def test_corrections_stay_true_at_a_later_offset(
    history: list[HistoryRecord], offset: SourceOffset, further: int, applies: Applies
) -> None:
    corrected = written(corrections(history, offset, "s1", 1, applies=applies))
    later = SourceOffset({**offset.values, "pos": offset.pos + further}, offset.by_gtid)
    assert all(applies(record, later) for record in corrected)


@given(HISTORIES, offsets(), HISTORY_CLASSES)
def test_only_tables_that_differ_are_corrected(
    history: list[HistoryRecord], offset: SourceOffset, applies: Applies
) -> None:
    true = known_tables(history, lambda r: is_before(r, offset))
    known = known_tables(history, lambda r: applies(r, offset))
    differ = {n for n in true.keys() | known.keys() if true.get(n) != known.get(n)}

    told = written(corrections(history, offset, "s1", 1, applies=applies))

    named = {r.table for r in told if r.table} | {c["id"] for r in told for c in r.changes}
    assert named == differ


@given(records(), offsets())
def test_with_gtids_or_without_our_order_is_the_true_one(
    made: list[HistoryRecord], offset: SourceOffset
) -> None:
    for record in made:
        own, other = record.offset.gtids, offset.gtids
        is_told = offset.is_by_place or (offset.by_gtid and str(own) != str(other))
        if other is not None and not is_told:
            # It goes by the place, where only a source without GTIDs can have moved on.
            continue
        assert true_order_applies(record, offset) == is_before(record, offset)
