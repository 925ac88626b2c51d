"""Which events of a binlog a connector makes records of."""

from __future__ import annotations

import pytest

from shardmerge.connectors.binlog.binlog_events import RowsEvent, Statement
from shardmerge.connectors.repair.diagnosis.captured import Captured
from shardmerge.connectors.repair.schema_history.left_out import LeftOut, leaving_out
from shardmerge.schemas.ddl.changes import TableName
from shardmerge.schemas.ddl.grammar import ServerContext

FILE = "binlog.000001"
LISTS = {
    "database.include.list": r"app|a\.b,shardmerge_p_s1",
    "table.include.list": r"app\.t\d+,a\.b\.u,shardmerge_p_s1\.signals",
}


def captured(**config: str) -> Captured:
    return Captured(config or LISTS, ServerContext())


@pytest.mark.parametrize(
    ("table", "comes"),
    [("app.t1", True), ("APP.T1", True), ("app.t", False), ("app.t1x", False),
     ("other.t1", False), ("xapp.t1", False), ("a.b.u", True), ("a.u", False),
     ("shardmerge_p_s1.signals", True), ("", True)],
)  # fmt: skip
def test_rows_come_of_the_tables_of_both_lists(table: str, comes: bool) -> None:
    assert captured().has(RowsEvent(FILE, 300, 400, 100, 2, "", table)) is comes


def test_without_a_list_everything_comes() -> None:
    everything = captured(name="x")
    assert everything.has(RowsEvent(FILE, 300, 400, 100, 2, "", "other.t"))
    databases = captured(**{"database.include.list": "app"})
    assert databases.has(RowsEvent(FILE, 300, 400, 100, 2, "", "app.t"))
    assert not databases.has(RowsEvent(FILE, 300, 400, 100, 2, "", "other.t"))


@pytest.mark.parametrize(
    ("sql", "comes"),
    [("TRUNCATE t1", True), ("TRUNCATE TABLE u", False), ("TRUNCATE other.t1", False),
     ("ALTER TABLE u ADD a INT", True), ("WHAT IS THIS", True)],
)  # fmt: skip
def test_a_truncate_comes_as_the_rows_of_its_table_do(sql: str, comes: bool) -> None:
    assert captured().has(Statement(FILE, 100, 200, "", "app", sql)) is comes


@pytest.mark.parametrize("lists", [LISTS, {"database.include.list": "app"}])
def test_rows_of_a_table_that_is_left_out_never_come(lists: dict[str, str]) -> None:
    told = leaving_out(lists, (LeftOut(TableName("app", "t1"), "binlog.000001:4"),))
    row, other = (RowsEvent(FILE, 300, 400, 100, 2, "", f"app.{name}") for name in ("t1", "t2"))
    assert captured(**lists).has(row) and not captured(**told).has(row)
    assert captured(**told).has(other)
