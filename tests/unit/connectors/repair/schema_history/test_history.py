"""What Debezium takes from its schema history, and what makes that true."""

from __future__ import annotations

import json
from typing import Any

import pytest

from shardmerge.connectors.binlog.source_offset import SourceOffset
from shardmerge.connectors.repair.schema_history.history import (
    HistoryRecord,
    KnownTable,
    corrections,
    debezium_applies,
    drop_text,
    history_record,
    is_before,
    known_tables,
    named_table,
    own_record,
    table_id,
    table_records,
    true_order_applies,
)
from shardmerge.schemas.model.errors import ContractError

UUID = "84ffc6e9-e7f5-11f1-b328-02fc00000001"
FILE = "binlog.000001"
NEXT = "binlog.000002"
T = '"app"."t"'
U = '"app"."u"'
MARK = ":9223372036854775806-1"


def at(pos: int, gtids: str = "", by_gtid: bool = True, **more: Any) -> SourceOffset:
    is_mariadb = gtids.count("-") == 2 and MARK not in gtids
    named = {"gtids": gtids if is_mariadb else f"{UUID}:{gtids}"}
    return SourceOffset({"file": FILE, "pos": pos, **(named if gtids else {}), **more}, by_gtid)


def table(number: str, *columns: str, kind: str = "CREATE", before: str = "") -> dict[str, Any]:
    change: dict[str, Any] = {"type": kind, "id": number}
    if columns:
        change["table"] = {"columns": [{"name": name} for name in columns]}
    return {**change, "previousId": before} if before else change


def streamed(offset: SourceOffset, *changes: dict[str, Any], text: str = "x") -> HistoryRecord:
    return HistoryRecord(offset, snapshot=False, text=text, changes=changes, database="app")


def stood(offset: SourceOffset, *changes: dict[str, Any]) -> HistoryRecord:
    return HistoryRecord(offset, snapshot=True, text="x", changes=changes, database="app")


def read(values: list[bytes]) -> list[HistoryRecord]:
    found = [history_record(value, "history[0]@1") for value in values]
    return [record for record in found if record is not None]


def known(records: list[HistoryRecord], offset: SourceOffset) -> dict[str, KnownTable]:
    return known_tables(records, lambda record: debezium_applies(record, offset))


def columns_of(tables: dict[str, KnownTable]) -> dict[str, list[str]]:
    return {
        number: [c["name"] for c in table.description["table"]["columns"]]
        for number, table in tables.items()
        if table.description is not None
    }


# --- reading --------------------------------------------------------------------------------------


def test_a_record_of_a_statement_is_read() -> None:
    document = {
        "source": {"server": "s4"},
        "position": {"ts_sec": 1, "file": FILE, "pos": 1452090, "gtids": f"{UUID}:1-4570",
                     "server_id": 102},
        "ts_ms": 1795517874222,
        "databaseName": "app",
        "ddl": "CREATE TABLE t (id INT)",
        "tableChanges": [table(T, "id")],
    }  # fmt: skip
    record = history_record(json.dumps(document).encode(), "h[0]@13")
    assert record == HistoryRecord(
        SourceOffset(document["position"]),  # type: ignore[arg-type]
        snapshot=False,
        text="CREATE TABLE t (id INT)",
        changes=(table(T, "id"),),
        database="app",
    )


def test_what_a_record_does_not_tell_is_empty() -> None:
    value = b'{"position": {"snapshot": "INITIAL"}, "ddl": null, "databaseName": null}'
    assert history_record(value, "h") == HistoryRecord(
        SourceOffset({"snapshot": "INITIAL"}), snapshot=True, text="", changes=()
    )


def test_a_record_without_a_value_is_passed_over() -> None:
    assert history_record(None, "h") is None


@pytest.mark.parametrize(
    "value", [b"", b"no JSON", b"[]", b"7", b"{}", b'{"position": 7}', b'{"position": null}',
              b'{"position": {}, "tableChanges": 7}', b"\xff"]
)  # fmt: skip
def test_another_topics_record_is_refused_with_its_place(value: bytes) -> None:
    with pytest.raises(ContractError, match=r"h\[0\]@13 is not a record of a schema hi") as caught:
        history_record(value, "h[0]@13")
    assert "schema.history.internal.kafka.topic" in caught.value.hint


def test_our_records_are_known_as_ours() -> None:
    offset = at(900, "1-6", event=2, row=1, ts_sec=5, server_id=7)
    (record,) = read([own_record("s1", offset, 1, text="x", table=T, statement="b.000001:77")])
    assert record.is_own and record.snapshot
    assert (record.text, record.table, record.statement) == ("x", T, "b.000001:77")
    # Neither a place within a transaction nor a server, by which Debezium would not apply it.
    assert record.offset.values == {
        "ts_sec": 5, "file": FILE, "pos": 900, "gtids": f"{UUID}:1-6", "snapshot": "shardmerge",
    }  # fmt: skip


def test_a_table_is_told_by_a_drop_and_a_create() -> None:
    records = read(table_records("s1", at(4), 1, table='"a""b"."t"', text="CREATE …"))
    assert [(r.text, r.table) for r in records] == [
        ('DROP TABLE IF EXISTS `a"b`.`t`', '"a""b"."t"'),
        ("CREATE …", '"a""b"."t"'),
    ]
    drop = drop_text("app", "t")
    assert [r.text for r in read(table_records("s1", at(4), 1, table=T, text=drop))] == [drop]


@pytest.mark.parametrize("names", [("app", "t"), ('a"b', 't"'), ("a.b", 'x"."y'), ("größe", "`")])
def test_an_id_names_its_table(names: tuple[str, str]) -> None:
    assert named_table(table_id(*names)) == names


@pytest.mark.parametrize("number", ["app.t", '"app"', '"a"."b"."c"', '"a"b"."c"', ""])
def test_an_id_of_another_form_names_none(number: str) -> None:
    assert named_table(number) is None


# --- what is true and what Debezium applies -------------------------------------------------------


@pytest.mark.parametrize(
    ("record", "offset", "true", "applied"),
    [
        # The statement right behind the offset is read again, and applied all the same.
        (at(900, "1-6"), at(800, "1-6"), False, True),
        (at(900, "1-6"), at(900, "1-6", event=2, row=1), False, True),
        (at(900, "1-5"), at(900, "1-6"), True, True),
        (at(900, "1-6"), at(900, "1-5"), False, False),
        (at(900, "1-5:9"), at(900, "1-6"), False, False),
        (at(900, "1-6", event=3), at(900, "1-6", event=2), False, False),
        (at(900, "0-1-5"), at(900, "0-1-6"), True, True),
        (at(900, "0-1-5"), at(900, "0-2-6"), True, True),
        (at(900, "0-1-6"), at(900, "0-1-6"), False, True),
        (at(900, "0-1-6"), at(900, "0-1-5"), False, False),
        # Without GTIDs every statement that was streamed is applied.
        (at(900, server_id=7), at(900), True, True),
        (at(901, server_id=7), at(900), False, True),
        (at(900), at(900), True, True),
        (at(900), at(899), False, False),
        # In a transaction that begins there, which is read again.
        (at(900, event=1), at(900), False, False),
        (at(900, event=1, row=2), at(900, event=1, row=1), False, False),
        (at(900, event=1), at(900, event=1, row=1), False, True),
        (at(900, event=1), at(901), True, True),
        # On MariaDB a statement is such a transaction: of right behind it, of some time later, and
        # of the binlog's next file (measured, 10.11).
        (at(1595, "0-102-7", event=1), at(1595, "0-102-7", event=1), False, True),
        (at(1595, "0-102-7", event=1), at(1595, "0-102-7", event=8), False, True),
        (at(3804, "0-102-17", event=1), at(4, "0-102-17", file=NEXT, event=9), False, True),
        (at(1595, "0-102-7", event=1), at(1736, "0-102-8", event=2, row=1), True, True),
        # GTIDs that were switched off, and on.
        (at(900, "1-6"), at(901), True, False),
        (at(900, server_id=7), at(901, "1-6"), True, True),
        (at(900, server_id=7), at(899, "1-6"), False, True),
        # Switched off while the offset still has those of before: Debezium goes by them.
        (at(900, server_id=7), at(901, "1-6", by_gtid=False), True, True),
        (at(900, "1-6"), at(901, "1-6", by_gtid=False), True, True),
        (at(902, "1-6"), at(901, "1-6", by_gtid=False), False, True),
        # A mark is a part of the set to Debezium.
        (at(900, "1-6"), at(900, f"1-6{MARK}"), True, True),
        (at(901, "1-6"), at(900, f"1-6{MARK}"), False, True),
        (at(901, f"1-6{MARK}"), at(900, f"1-6{MARK}"), False, True),
        (at(901, f"1-6{MARK}"), at(900, "1-9"), False, True),
        (at(900, f"1-6{MARK}"), at(900, "1-5"), True, False),
        (at(901, MARK[1:]), at(900, "1-5"), False, True),
        (at(900, server_id=7), at(900, MARK[1:]), True, True),
        (at(900, MARK[1:]), at(900), True, False),
    ],
)
def test_what_is_before_an_offset_is_not_what_debezium_applies(
    record: SourceOffset, offset: SourceOffset, true: bool, applied: bool
) -> None:
    """Debezium 3.6: BinlogHistoryRecordComparator.isPositionAtOrBefore."""
    assert is_before(streamed(record), offset) is true
    assert debezium_applies(streamed(record), offset) is applied


@pytest.mark.parametrize(
    ("record", "offset", "applied"),
    [
        (at(900, "1-6"), at(900, "1-6"), False),
        (at(900, "1-6"), at(800, "1-6", event=2, row=1), False),
        (at(900, "1-5"), at(900, "1-6"), True),
        (at(900, "1-6"), at(1000, "1-5"), False),
        (at(900, "0-1-5"), at(900, "0-2-6"), True),
        (at(900, server_id=7), at(900), True),
        (at(901, server_id=7), at(900), False),
        (at(900, event=1), at(900), False),
        (at(1595, "0-102-7", event=1), at(1595, "0-102-7", event=8), False),
        (at(3804, "0-102-17", event=1), at(4, "0-102-17", file=NEXT, event=9), False),
        # GTIDs that were switched off, and on: the place has moved on.
        (at(900, "1-6"), at(901), True),
        (at(900, "1-6"), at(901, "1-6", by_gtid=False), True),
        (at(902, "1-6"), at(901, "1-6", by_gtid=False), False),
        (at(900, server_id=7), at(901, "1-6"), True),
        (at(900, server_id=7), at(899, "1-6"), False),
        # An offset that goes by its place: a DDL right before it is not read again.
        (at(900, "1-6"), at(900, f"1-6{MARK}"), True),
        (at(900, "1-6"), at(899, f"1-6{MARK}"), False),
        (at(999, "1-5"), at(900, f"1-6{MARK}"), True),
        (at(900, "1-8"), at(900, f"1-6{MARK}"), True),
        (at(901, "1-8"), at(900, f"1-6{MARK}"), False),
        # What was read by place has GTIDs of before, which tell nothing of its own place.
        (at(900, f"1-6{MARK}"), at(900, f"1-6{MARK}"), True),
        (at(901, f"1-6{MARK}"), at(900, f"1-6{MARK}"), False),
        (at(901, f"1-5{MARK}"), at(900, f"1-6{MARK}"), False),
        (at(900, f"1-6{MARK}"), at(900, "1-9"), True),
        (at(901, f"1-6{MARK}"), at(900, "1-9"), False),
        (at(901, f"1-6{MARK}"), at(900), False),
        (at(900), at(900, f"1-6{MARK}"), True),
        (at(900, "1-5"), at(900, MARK[1:]), True),
        (at(901, "1-5"), at(900, MARK[1:]), False),
        (at(901, MARK[1:]), at(900, "1-6"), False),
    ],
)
def test_the_schema_history_of_ours_applies_what_is_before_the_offset(
    record: SourceOffset, offset: SourceOffset, applied: bool
) -> None:
    assert true_order_applies(streamed(record), offset) is applied
    assert is_before(streamed(record), offset) is applied
    assert true_order_applies(stood(record), offset)


def test_files_are_ordered_by_their_number() -> None:
    record = SourceOffset({"file": "binlog.999999", "pos": 900})
    offset = SourceOffset({"file": "binlog.1000000", "pos": 4})
    assert is_before(streamed(record), offset) and debezium_applies(streamed(record), offset)
    assert not is_before(streamed(offset), record)
    assert not debezium_applies(streamed(offset), record)


def test_a_snapshots_record_is_always_before() -> None:
    assert is_before(stood(at(999, "1-9")), at(4, "1-2"))


def test_while_a_snapshot_is_under_way_statements_at_its_place_do_not_apply() -> None:
    offset = at(900, "1-6", snapshot=True)
    assert not debezium_applies(streamed(at(900, "1-6")), offset)
    assert debezium_applies(stood(at(900, "1-6", snapshot="INITIAL")), offset)


@pytest.mark.parametrize("gtids", ["", "1-6", "0-1-6"])
def test_our_records_apply_where_they_are_written_for_and_later(gtids: str) -> None:
    offset = at(900, gtids, event=2, row=1, server_id=7)
    (record,) = read([own_record("s1", offset, 1, changes=[table(T, "a")])])
    for later in (offset, at(900, gtids), at(1000, gtids), at(900, gtids, event=3)):
        assert is_before(record, later) and debezium_applies(record, later)
    if gtids:
        further = at(1000, gtids.replace("6", "8"))
        assert is_before(record, further) and debezium_applies(record, further)


def test_our_record_is_of_before_a_statement_by_the_one_it_is_written_for() -> None:
    (record,) = read([own_record("s1", at(900), 1, text="x", table=T, statement=f"{FILE}:500")])
    assert record.is_of_before(FILE, 501) and not record.is_of_before(FILE, 500)
    (correction,) = read([own_record("s1", at(900), 1, text="x", table=T)])
    assert not correction.is_of_before(FILE, 10_000)


def test_debeziums_record_is_of_before_a_statement_that_stands_behind_its_end() -> None:
    assert streamed(at(900)).is_of_before(FILE, 900)
    assert not streamed(at(901)).is_of_before(FILE, 900)
    assert stood(at(2000)).is_of_before(FILE, 900)
    # It is of the statement itself, in a transaction that begins there.
    assert not streamed(at(900, event=1)).is_of_before(FILE, 900)
    assert streamed(at(899, event=1)).is_of_before(FILE, 900)


# --- tables ---------------------------------------------------------------------------------------


def test_changes_make_the_tables() -> None:
    records = [
        streamed(at(100), table(T, "a")),
        streamed(at(200), table(U, "a", kind="CREATE")),
        streamed(at(300), table(T, "a", "b", kind="ALTER")),
        streamed(at(400), table('"app"."v"', "a", kind="ALTER", before=U)),
        streamed(at(500), table(T, kind="DROP")),
    ]
    found = [columns_of(known_tables(records[:n], lambda _: True)) for n in range(6)]
    assert found == [
        {},
        {T: ["a"]},
        {T: ["a"], U: ["a"]},
        {T: ["a", "b"], U: ["a"]},
        {T: ["a", "b"], '"app"."v"': ["a"]},
        {'"app"."v"': ["a"]},
    ]


def test_a_table_that_was_told_by_a_text_is_known_by_it() -> None:
    records = [streamed(at(100), table(T, "a"))]
    records += read(table_records("s1", at(100), 1, table=T, text="CREATE TABLE `app`.`t` (…)"))
    assert known_tables(records, lambda _: True) == {
        T: KnownTable(text="CREATE TABLE `app`.`t` (…)")
    }
    records += read(table_records("s1", at(100), 1, table=T, text=drop_text("app", "t")))
    assert known_tables(records, lambda _: True) == {}


@pytest.mark.parametrize(
    "text",
    ["DROP DATABASE app", "drop schema if exists `app`", "/* x */ DROP DATABASE IF EXISTS `app` ;"],
)
def test_a_database_goes_with_its_tables(text: str) -> None:
    """Debezium's record has no changes then; it reads the text when it starts."""
    records = [
        streamed(at(100), table(T, "a"), table('"apple"."t"', "a")),
        streamed(at(200), text=text),
    ]
    assert list(known_tables(records, lambda _: True)) == ['"apple"."t"']


@pytest.mark.parametrize("text", ["DROP USER app", "CREATE DATABASE app", "DROP TABLE", "x", ""])
def test_another_text_without_changes_changes_nothing(text: str) -> None:
    records = [streamed(at(100), table(T, "a")), streamed(at(200), text=text)]
    assert list(known_tables(records, lambda _: True)) == [T]


# --- corrections ----------------------------------------------------------------------------------


def correct(records: list[HistoryRecord], offset: SourceOffset) -> list[dict[str, Any]]:
    return [json.loads(value) for value in corrections(records, offset, "s1", 77)]


def test_nothing_is_corrected_where_debezium_knows_what_is_true() -> None:
    records = [stood(at(50, "1-2", snapshot="INITIAL"), table(T, "a")),
               streamed(at(100, "1-3"), table(T, "a", "b", kind="ALTER"))]  # fmt: skip
    assert correct(records, at(200, "1-5")) == []
    assert correct(records, at(50, "1-2")) == []
    assert correct([], at(50)) == []


def test_a_statement_that_would_be_applied_twice_is_taken_back() -> None:
    records = [stood(at(50, "1-2", snapshot="INITIAL"), table(T, "a")),
               streamed(at(100, "1-3"), table(T, "b", kind="ALTER"))]  # fmt: skip
    offset = at(90, "1-3")
    assert columns_of(known(records, offset)) == {T: ["b"]}
    assert correct(records, offset) == [
        {
            "source": {"server": "s1"},
            "position": {"file": FILE, "pos": 90, "gtids": f"{UUID}:1-3", "snapshot": "shardmerge"},
            "ts_ms": 77,
            "databaseName": "",
            "ddl": "",
            "tableChanges": [table(T, "a")],
            "shardmerge": {"table": "", "statement": ""},
        }
    ]


def test_a_table_that_is_not_made_yet_is_forgotten() -> None:
    records = [streamed(at(100, server_id=7), table(T, "a"))]
    (found,) = correct(records, at(90))
    assert found["tableChanges"] == [{"type": "DROP", "id": T}]


def test_a_rename_that_would_be_met_again_is_taken_back_for_both_names() -> None:
    records = [streamed(at(100, server_id=7), table(T, "a")),
               streamed(at(200, server_id=7), table(U, "a", kind="ALTER", before=T))]  # fmt: skip
    found = correct(records, at(150))
    assert [c for f in found for c in f["tableChanges"]] == [
        {"type": "DROP", "id": U}, table(T, "a"),
    ]  # fmt: skip


def test_a_dropped_table_comes_back_as_it_was() -> None:
    records = [streamed(at(100, server_id=7), table(T, "a")),
               streamed(at(200, server_id=7), table(T, kind="DROP"))]  # fmt: skip
    (found,) = correct(records, at(150))
    assert found["tableChanges"] == [table(T, "a")]


def test_the_tables_of_a_dropped_database_come_back_as_they_were() -> None:
    records = [streamed(at(100, server_id=7), table(T, "a")),
               streamed(at(200, server_id=7), text="DROP DATABASE app")]  # fmt: skip
    (found,) = correct(records, at(150))
    assert found["tableChanges"] == [table(T, "a")]


def test_a_table_that_was_told_by_a_text_comes_back_by_it() -> None:
    text = "CREATE TABLE `app`.`t` (`a` INT)"
    records = [*read(table_records("s1", at(100), 1, table=T, text=text, statement=f"{FILE}:90")),
               streamed(at(200, server_id=7), table(T, "b", kind="ALTER"))]  # fmt: skip
    found = correct(records, at(150))
    assert [f["ddl"] for f in found] == [drop_text("app", "t"), text]
    assert [f["shardmerge"] for f in found] == [{"table": T, "statement": ""}] * 2


def test_when_gtids_are_switched_off_all_tables_are_told_again() -> None:
    records = [stood(at(50, "1-2", snapshot="INITIAL"), table(T, "a"), table(U, "a")),
               streamed(at(100, "1-3"), table(T, "b", kind="ALTER"))]  # fmt: skip
    assert known(records, at(200)) == {}
    found = correct(records, at(200))
    assert [c for f in found for c in f["tableChanges"]] == [table(T, "b"), table(U, "a")]


def test_statements_that_are_passed_count_as_before() -> None:
    records = [stood(at(50, "1-2", snapshot="INITIAL"), table(T, "a")),
               streamed(at(100, "1-4"), table(T, "b", kind="ALTER"))]  # fmt: skip
    offset = at(90, "1-3:6")
    assert not is_before(records[1], offset)
    found = corrections(records, offset, "s1", 1, also_before=lambda r: r.offset.pos == 100)
    assert [json.loads(value)["tableChanges"] for value in found] == [[table(T, "b")]]
