"""Statements of a source: what they change, which come again, what a route leaves out."""

from __future__ import annotations

from dataclasses import replace

import pytest

from shardmerge.agents.tracking.tracker import command_with_schema, command_without_left_out_columns
from shardmerge.schemas.ddl.grammar import ServerContext
from shardmerge.schemas.model.names import TargetTable
from shardmerge.schemas.model.position import SourcePosition
from shardmerge.schemas.model.tables import TableSchema
from shardmerge.schemas.pipeline.routing import RoutingRule
from shardmerge.schemas.records.decisions import Outcome
from shardmerge.schemas.records.operator_commands import CommandKind, OperatorCommand
from shardmerge.schemas.records.schema_changes import ChangeId
from tests.unit.agents.tracking.tracked_source import CREATE, RULES, Source, image, names, shard


def test_a_new_shard_arrives_with_its_schema():
    (change,) = Source().run(CREATE).changes
    assert (change.target, change.shard) == (TargetTable("merged", "tbl"), shard("tbl00"))
    assert change.before is None
    assert names(change.after) == ["ID", "NAME"]
    assert (change.id.offset, change.id.ordinal, change.id.count) == (0, 0, 1)


def test_an_alter_tells_where_each_column_comes_from(source):
    (change,) = source.run("ALTER TABLE tbl00 ADD a INT FIRST, CHANGE NAME nom TEXT").changes
    assert names(change.before) == ["ID", "NAME"]
    lineage = [(entry.name, entry.before) for entry in change.lineage]
    assert lineage == [("a", ""), ("ID", "ID"), ("nom", "NAME")]


def test_an_index_statement_finds_its_table_in_the_text(source):
    (change,) = source.run("CREATE INDEX i ON tbl00 (NAME)").changes
    assert change.after is not None and change.after.index("i") is not None


def test_a_snapshot_describes_and_is_never_executed():
    source = Source()
    source.run(CREATE)
    for ddl in (
        "DROP TABLE IF EXISTS `shop`.`tbl00`",
        "DROP DATABASE IF EXISTS `shop`",
        "USE `shop`",
    ):
        result = source.run(ddl, snapshot=True)
        assert result.puts == {} and result.ignored is not None
    described = source.run("CREATE TABLE tbl00 (ID INT PRIMARY KEY, X INT)", snapshot=True)
    (change,) = described.changes
    assert change.snapshot
    assert [(e.name, e.before) for e in change.lineage] == [("ID", "ID"), ("X", "")]


def test_a_statement_that_a_restarted_connector_gives_again_is_ignored(source):
    assert source.run("ALTER TABLE tbl00 ADD a INT", pos=500).changes
    again = source.run("ALTER TABLE tbl00 ADD a INT", pos=500)
    assert (again.puts, again.changes) == ({}, ())
    assert again.ignored is not None and "restarted" in again.ignored.reason
    (change,) = source.run("ALTER TABLE tbl00 DROP a", pos=600).changes
    assert not change.error
    (change,) = source.run("ALTER TABLE tbl00 ADD a INT", pos=700).changes
    assert not change.error, "the same text at another place is another statement"


def test_a_statement_on_several_tables_is_given_again_in_parts(source):
    source.run("CREATE TABLE tbl01 (ID INT PRIMARY KEY)")
    pairs = [("tbl00", "old00"), ("tbl01", "old01")]
    first, second = [f"RENAME TABLE {a} TO {b}" for a, b in pairs]
    assert source.run(first, pos=500, gtid="u:7").changes
    assert source.run(first, pos=500, gtid="u:7").changes == ()
    assert source.run(second, pos=500, gtid="u:7").changes
    for ddl in (first, second):
        assert source.run(ddl, pos=500, gtid="u:7").changes == ()
    assert sorted(s.table for s in source.schemas) == ["old00", "old01"]


def test_a_transaction_is_the_same_on_another_server(source):
    assert source.run("ALTER TABLE tbl00 ADD a INT", pos=500, gtid="u:7").changes
    assert not source.run("ALTER TABLE tbl00 ADD a INT", pos=160, gtid="u:7").changes


def test_statements_of_another_server_need_another_epoch(source):
    assert source.run("ALTER TABLE tbl00 ADD a INT", pos=500).changes
    (change,) = source.run("ALTER TABLE tbl00 ADD b INT", pos=300).changes
    assert "went back from binlog.000001:500 to binlog.000001:300" in change.error
    assert "Raise the epoch" in change.hint
    (change,) = source.run("ALTER TABLE tbl00 ADD c INT", pos=400).changes
    assert "went back" in change.error, "until the table is described anew"
    source = Source()
    source.run(CREATE)
    source.run("ALTER TABLE tbl00 ADD a INT", pos=500)
    (change,) = source.run("ALTER TABLE tbl00 ADD b INT", pos=300, epoch=1).changes
    assert not change.error
    assert change.position > SourcePosition(0, "binlog.999999", 4, 0)


def test_every_statement_from_before_the_furthest_one_went_back(source):
    source.run("CREATE TABLE tbl01 (ID INT PRIMARY KEY)", pos=400)
    source.run("ALTER TABLE tbl01 ADD a INT", pos=500)
    # The connector's offset was put back: it reads all three again.
    for ddl, pos in (
        ("ALTER TABLE tbl00 ADD b INT", 300),
        ("CREATE TABLE tbl01 (ID INT PRIMARY KEY)", 400),
    ):
        (change,) = source.run(ddl, pos=pos).changes
        assert f"went back from binlog.000001:500 to binlog.000001:{pos}" in change.error
    (change,) = source.run("ALTER TABLE tbl01 ADD c INT", pos=600).changes
    assert change.error, "until the table is described anew"
    source.run("CREATE TABLE tbl02 (ID INT PRIMARY KEY)", pos=700)
    (change,) = source.run("ALTER TABLE tbl02 ADD a INT", pos=800).changes
    assert not change.error


def test_a_snapshot_behind_a_statement_is_no_repetition(source):
    source.run("ALTER TABLE tbl00 ADD a INT", pos=500)
    described = "CREATE TABLE tbl00 (ID INT PRIMARY KEY)"
    for _ in range(2):
        assert source.run(described, pos=500, snapshot=True).changes
    assert not source.run("ALTER TABLE tbl00 ADD a INT", pos=500).changes


@pytest.mark.parametrize(
    ("ddl", "why"),
    [
        ("CREATE TABLE IF NOT EXISTS tbl00 (x INT)", "exists already"),
        ("TRUNCATE TABLE tbl00", "changes no schema"),
        ("CREATE VIEW v AS SELECT 1", "CREATE VIEW"),
        ("DROP TABLE IF EXISTS tbl77", "not tracked"),
        ("CREATE TEMPORARY TABLE tbl88 (x INT)", "temporary"),
        ("CREATE TABLE elsewhere (x INT)", "no routing rule matches"),
    ],
)
def test_what_concerns_no_shard_is_answered_with_the_reason(source, ddl, why):
    result = source.run(ddl)
    assert result.changes == ()
    assert result.ignored is not None and result.ignored.outcome is Outcome.IGNORED
    assert why in result.ignored.reason
    assert (result.ignored.target, result.ignored.version) == (None, 0)


def test_a_defect_of_our_own_holds_the_shard_and_says_where(source, monkeypatch):
    def broken(*_):
        raise IndexError("oops")

    monkeypatch.setattr("shardmerge.agents.tracking.statements.apply_alter", broken)
    (change,) = source.run("ALTER TABLE tbl00 ADD z INT", table="tbl00").changes
    assert "IndexError: oops (test_tracker.py:" in change.error
    assert "report it" in change.hint


def test_a_shard_of_two_targets_is_held_on_both():
    rules = (*RULES, RoutingRule(".*", ".*", "tbl00", "merged", "all"))
    changes = Source(rules).run(CREATE).changes
    assert [str(c.target) for c in changes] == ["merged.all", "merged.tbl"]
    assert [c.id.ordinal for c in changes] == [0, 1]
    assert all("merged.tbl, merged.all" in c.error and c.after is None for c in changes)


def test_the_same_event_gives_the_same_result():
    first, second = Source(), Source()
    for ddl in (CREATE, "ALTER TABLE tbl00 ADD z INT", "ALTER TABLE tbl00 RENAME TO tbl01"):
        assert first.run(ddl) == second.run(ddl)


LEAVES_OUT = (replace(RULES[0], leave_out="secret.*"),)
WITH_SECRET = (
    "CREATE TABLE tbl00 (ID INT PRIMARY KEY, a INT, Secret INT NOT NULL UNIQUE, KEY k (a, Secret),"
    " KEY a (a), CHECK (a < secret))"
)


def test_columns_that_the_route_leaves_out_and_what_names_them_are_not_sent():
    source = Source(LEAVES_OUT)
    [created] = source.run(WITH_SECRET).changes
    assert names(created.after) == ["ID", "a"]
    assert created.after is not None
    assert [index.name for index in created.after.indexes] == ["PRIMARY", "a"]
    assert created.after.checks == ()

    [altered] = source.run("ALTER TABLE tbl00 DROP secret, ADD secret_b INT, ADD b INT").changes
    assert (names(altered.before), names(altered.after)) == (["ID", "a"], ["ID", "a", "b"])
    assert [entry.name for entry in altered.lineage] == ["ID", "a", "b"]
    tracked = source.schemas[shard("tbl00")]
    assert isinstance(tracked, TableSchema)
    assert names(tracked) == ["ID", "a", "secret_b", "b"]


@pytest.mark.parametrize(
    ("create", "alter", "error"),
    [
        ("CREATE TABLE tbl00 (secret INT PRIMARY KEY)", "", "the primary key needs"),
        (
            "CREATE TABLE tbl00 (id INT PRIMARY KEY, secret INT, g INT AS (secret + 1))", "",
            "g is computed from secret",
        ),
        (WITH_SECRET, "ALTER TABLE tbl00 RENAME COLUMN secret TO b", "was renamed to b"),
    ],
)  # fmt: skip
def test_what_cannot_be_left_out_holds_the_shard_and_says_why(create, alter, error):
    source = Source(LEAVES_OUT)
    [change] = source.run(create).changes
    if alter:
        [change] = source.run(alter).changes
    assert error in change.error
    assert change.hint
    assert change.after is None


def test_a_told_schema_is_without_the_columns_that_the_route_leaves_out():
    command = OperatorCommand(
        ChangeId("commands", 1), TargetTable("merged", "tbl"), CommandKind.SET_SCHEMA,
        shard("tbl00"), WITH_SECRET,
    )  # fmt: skip
    told_command = command_with_schema(command, ServerContext())
    assert names(told_command.schema) == ["ID", "a", "Secret"]
    assert names(command_without_left_out_columns(told_command, LEAVES_OUT).schema) == ["ID", "a"]
    assert command_without_left_out_columns(told_command, RULES) == told_command
    keyless = replace(told_command, schema=None)
    assert command_without_left_out_columns(keyless, LEAVES_OUT) == keyless


FOLDED = ServerContext(lower_names=True)


def test_a_source_that_compares_names_without_case_has_its_tables_in_lower_case() -> None:
    source = Source(context=FOLDED)
    ddl = "CREATE TABLE `Tbl00` (ID INT PRIMARY KEY, NAME VARCHAR(20))"
    made = source.run(ddl, image("CREATE", "tbl00", "ID", "NAME"), table="tbl00", database="Shop")
    assert [c.shard for c in made.changes] == [shard("tbl00")]
    (changed,) = source.run(
        "ALTER TABLE SHOP.TBL00 ADD c INT",
        image("ALTER", "tbl00", "ID", "NAME", "c"),
        table="tbl00",
    ).changes
    assert changed.shard == shard("tbl00") and not changed.error
    assert changed.after is not None and len(changed.after.columns) == 3
    (index,) = source.run("CREATE INDEX k ON tBl00 (c)").changes
    assert index.after is not None and index.after.index("k") is not None
    renamed = source.run("RENAME TABLE tbl00 TO TBL01", table="TBL01").changes
    assert {(c.shard, c.after is None) for c in renamed} == {
        (shard("tbl00"), True), (shard("tbl01"), False),
    }  # fmt: skip
    (gone,) = source.run("DROP TABLE TBL01", image("DROP", "tbl01"), table="tbl01").changes
    assert gone.shard == shard("tbl01") and gone.after is None


def test_a_database_has_one_name_whatever_its_case() -> None:
    source = Source(context=FOLDED)
    source.run("CREATE DATABASE Shop CHARSET latin1", database="Shop")
    (change,) = source.run(
        "CREATE TABLE SHOP.tbl00 (id INT PRIMARY KEY, a CHAR(3))",
        image("CREATE", "tbl00", "id", "a"), table="tbl00",
    ).changes  # fmt: skip
    assert change.after is not None and change.after.columns[1].type.charset == "latin1"
    source.run("DROP DATABASE `SHOP`", database="SHOP")
    assert not [s for s in source.schemas if s.table]
