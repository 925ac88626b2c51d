"""What is written where, so that a connector gets past a statement."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from shardmerge.connectors.binlog.binlog_events import Logged, RowsEvent, Statement
from shardmerge.connectors.binlog.source_offset import SourceOffset
from shardmerge.connectors.repair.diagnosis.statement_plan import (
    TableDescription,
    described_by_server,
    described_table,
    is_of_one,
    leaves_out_by_gtid,
    misread_tables,
    offset_past,
    refuse_truncate,
    tables_before,
    touched_later,
)
from shardmerge.connectors.repair.schema_history.history import HistoryRecord, table_id
from shardmerge.schemas.ddl.changes import TableName
from shardmerge.schemas.ddl.grammar import ServerContext
from shardmerge.schemas.model.errors import SourceError, UnsupportedDDL
from shardmerge.schemas.model.tables import TableSchema
from tests.strategies import table

SERVER = ServerContext(version=(8, 0, 36))
UUID = "84ffc6e9-e7f5-11f1-b328-02fc00000001"
FILE = "binlog.000001"
T, U = TableName("app", "t"), TableName("app", "u")
CREATE = "CREATE TABLE t (id INT PRIMARY KEY, a INT, b INT)"
SWAP = "ALTER TABLE t RENAME COLUMN a TO b, RENAME COLUMN b TO a"


def statement(pos: int, sql: str = SWAP, gtid: str = "") -> Statement:
    return Statement(FILE, pos, pos + 50, gtid, "app", sql)


def at(pos: int, gtids: str = "", **more: Any) -> SourceOffset:
    by_gtid = more.pop("by_gtid", True)
    named = {"gtids": gtids} if gtids else {}
    return SourceOffset({"file": FILE, "pos": pos, **named, **more}, by_gtid)


def record(offset: SourceOffset, sql: str, *columns: str, **more: Any) -> HistoryRecord:
    change = {
        "type": "ALTER",
        "id": table_id("app", "t"),
        "table": {"columns": [{"name": name} for name in columns]},
    }
    return HistoryRecord(
        offset, snapshot=bool(more.get("snapshot")), text=sql, changes=(change,), database="app"
    )


def columns(told: object) -> str:
    assert isinstance(told, TableSchema), told
    return " ".join(column.name for column in told.columns)


def test_a_table_is_told_in_canonical_words() -> None:
    told = described_table(T, table("CREATE TABLE x (url INT)"))
    assert told == TableDescription(
        T, "CREATE TABLE `app`.`t` (`url` int NULL) DEFAULT CHARACTER SET utf8mb4"
    )
    assert told.id == '"app"."t"'


def test_a_table_that_is_gone_is_told_by_a_drop() -> None:
    assert described_table(T, None).text == "DROP TABLE IF EXISTS `app`.`t`"
    assert described_by_server(T, None).text == "DROP TABLE IF EXISTS `app`.`t`"


def test_a_table_that_is_not_known_cannot_be_told() -> None:
    with pytest.raises(SourceError, match="no idea"):
        described_table(T, SourceError("no idea"))


@pytest.mark.parametrize(
    "shown",
    [f"CREATE TABLE {name} (\n  `a` int\n)" for name in ("`t`", "`T`", "`x``y `")],
)
def test_a_table_is_told_as_the_server_shows_it_under_its_whole_name(shown: str) -> None:
    """A server can show the name in other letters than a statement (lower_case_table_names)."""
    assert described_by_server(T, shown).text == "CREATE TABLE `app`.`t` (\n  `a` int\n)"


def test_what_is_no_table_any_more_cannot_be_told() -> None:
    with pytest.raises(SourceError, match=r"`app`\.`t` is no table any more"):
        described_by_server(T, "CREATE ALGORITHM=UNDEFINED VIEW `t` AS select 1 AS `1`")


def test_tables_are_as_they_were_before_the_statement() -> None:
    records = [record(at(100), CREATE), record(at(250), SWAP), record(at(300), "DROP TABLE t")]
    assert columns(tables_before(records, statement(200), SERVER).table(T)) == "id a b"
    assert columns(tables_before(records, statement(250), SERVER).table(T)) == "id b a"
    assert tables_before(records, statement(300), SERVER).table(T) is None


def test_a_table_that_debezium_misread_is_told_anew() -> None:
    records = [
        record(at(100), CREATE, "id", "a", "b"),
        record(at(200), SWAP, "id", "a"),
    ]
    assert misread_tables(records[:1], SERVER) == []
    (found,) = misread_tables(records, SERVER)
    assert found.name == T
    assert found.text.startswith(
        "CREATE TABLE `app`.`t` (`id` int NOT NULL, `b` int NULL, `a` int NULL, PRIMARY KEY (`id`))"
    )


def test_what_cannot_be_told_is_not_told_anew() -> None:
    records = [record(at(100), CREATE, "id", "a", "b"), record(at(200), "ALTER TABLE t WHAT", "id")]
    assert misread_tables(records, SERVER) == []
    assert misread_tables([record(at(100), "DROP TABLE u", "id")], SERVER) == []


def test_a_truncate_is_refused_and_nothing_else() -> None:
    with pytest.raises(UnsupportedDDL, match="TRUNCATE"):
        refuse_truncate(statement(9, "TRUNCATE t"), SERVER)
    for sql in (SWAP, "ALTER TABLE t TRUNCATE PARTITION p", "what", "DROP TABLE t"):
        refuse_truncate(statement(9, sql), SERVER)


def test_the_first_later_statement_of_a_table_is_found() -> None:
    other = statement(100, "ALTER TABLE u ADD url INT")
    mine = statement(200, "RENAME TABLE v TO t")
    later: list[Logged] = [
        RowsEvent(FILE, 50, 99, 9, 2, "", "app.t"), other, mine, statement(300, "DROP TABLE t"),
    ]  # fmt: skip
    assert touched_later([T], later, SERVER) == {T: mine}
    assert touched_later([U, T], later, SERVER) == {U: other, T: mine}
    assert touched_later([TableName("other", "t")], later, SERVER) == {}
    assert touched_later([], later, SERVER) == {}


def test_a_later_statement_that_is_not_understood_touches_what_it_names() -> None:
    broken = statement(100, "ALTER TABLE t ADD COLUMN what ever it is")
    assert touched_later([T], [broken], SERVER) == {T: broken}


@pytest.mark.parametrize(
    ("offset", "gtid", "by_gtid"),
    [
        (at(100, f"{UUID}:1-6"), f"{UUID}:8", True),
        (at(100, f"{UUID}:1-6", by_gtid=False), f"{UUID}:8", False),
        (at(100, f"{UUID}:1-6"), "", False),
        (at(100), f"{UUID}:8", False),
        (at(100, "0-1-6"), "0-1-8", False),
    ],
)
def test_only_mysql_leaves_out_a_statement_by_its_gtid(
    offset: SourceOffset, gtid: str, by_gtid: bool
) -> None:
    assert leaves_out_by_gtid(offset, statement(900, gtid=gtid)) is by_gtid


def test_with_gtids_the_statement_is_left_out_and_the_place_stays() -> None:
    offset = at(100, f"{UUID}:1-5", event=2, row=1)
    passed = [statement(300, gtid=f"{UUID}:7")]
    past = offset_past(offset, statement(900, gtid=f"{UUID}:9"), passed)
    assert past.values == {**offset.values, "gtids": f"{UUID}:1-5:7:9"}


def test_without_gtids_the_place_is_behind_the_statement() -> None:
    past = offset_past(at(100, event=2, row=1), statement(900), [statement(300)])
    assert past.values == {"file": FILE, "pos": 950}
    past = offset_past(at(100, "0-1-5", event=2), statement(900, gtid="0-1-9"), [])
    assert past.values == {"file": FILE, "pos": 950, "gtids": "0-1-9"}
    off = at(100, f"{UUID}:1-5", by_gtid=False)
    assert offset_past(off, statement(900), []).values == {**off.values, "pos": 950}


def test_debeziums_record_of_a_statement_stands_at_its_end() -> None:
    assert is_of_one(record(at(950), SWAP), [statement(300), statement(900)])
    assert not is_of_one(record(at(900), SWAP), [statement(900)])
    assert not is_of_one(record(at(950), SWAP, snapshot=True), [statement(900)])
    assert not is_of_one(record(at(950), SWAP), [])


def test_on_mariadb_debeziums_record_of_a_statement_stands_where_its_transaction_begins() -> None:
    """Measured, 10.11: a swap's own record was taken for one before it, and it was told twice."""
    swap = replace(statement(1637, gtid="0-102-8"), begin=1595)
    records = [
        record(at(1200, "0-102-6", event=1), CREATE),
        record(at(1595, "0-102-7", event=1), SWAP),
    ]
    assert is_of_one(records[1], [swap]) and not is_of_one(records[0], [swap])
    assert columns(tables_before(records, swap, SERVER).table(T)) == "id a b"
    later = replace(statement(1800, gtid="0-102-9"), begin=1740)
    assert columns(tables_before(records, later, SERVER).table(T)) == "id b a"
