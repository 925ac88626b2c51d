from __future__ import annotations

from dataclasses import replace

import pytest

from shardmerge.agents.tracking.tracked import LastStatement, Tracked, Unknown
from shardmerge.agents.tracking.tracker import (
    TrackResult,
    command_with_schema,
    command_without_left_out_columns,
    track,
)
from shardmerge.connectors.debezium.envelope import ColumnImage, SchemaChangeEvent, TableChange
from shardmerge.schemas.ddl.grammar import ServerContext
from shardmerge.schemas.effects.row_effects import moved_rows
from shardmerge.schemas.model.names import ShardId, TargetTable
from shardmerge.schemas.model.position import SourcePosition
from shardmerge.schemas.model.tables import TableSchema
from shardmerge.schemas.pipeline.routing import RoutingRule
from shardmerge.schemas.records.decisions import Outcome
from shardmerge.schemas.records.operator_commands import CommandKind, OperatorCommand
from shardmerge.schemas.records.schema_changes import ChangeId

RULES = (RoutingRule("s1", "shop", r"tbl\d\d", "merged", "tbl"),)
CREATE = "CREATE TABLE tbl00 (ID INT PRIMARY KEY, NAME VARCHAR(20))"


class Source:
    """A source that is tracked: each statement is one event."""

    def __init__(self, rules=RULES, context: ServerContext | None = None) -> None:
        self.rules = rules
        self.context = context or ServerContext()
        self.schemas: dict[ShardId, Tracked] = {}
        self.offset = -1
        self.last: LastStatement | None = None

    def run(
        self,
        ddl: str,
        *tables: TableChange,
        snapshot: bool = False,
        table: str = "",
        database: str = "shop",
        pos: int | None = None,
        epoch: int = 0,
        gtid: str = "",
        unread: str = "",
    ) -> TrackResult:
        self.offset += 1
        pos = 100 + self.offset if pos is None else pos
        position = SourcePosition(epoch, "binlog.000001", pos, 0)
        event = SchemaChangeEvent(
            "s1", self.offset, database, ddl, position, snapshot, table, tables, 5, gtid, unread
        )
        result = track(self.schemas, event, self.rules, self.context, self.last)
        self.last = result.last
        for shard, value in result.puts.items():
            if value is None:
                self.schemas.pop(shard, None)
            else:
                self.schemas[shard] = value
        return result


def shard(table: str, database: str = "shop") -> ShardId:
    return ShardId("s1", database, table)


def image(type_: str, table: str, *columns: str, charset: str = "") -> TableChange:
    described = tuple(ColumnImage(c, "INT") for c in columns)
    return TableChange(type_, "shop", table, described, charset)


def names(schema: TableSchema | None) -> list[str]:
    assert schema is not None
    return [column.name for column in schema.columns]


@pytest.fixture
def source() -> Source:
    made = Source()
    made.run(CREATE)
    return made


def test_a_statement_that_nobody_could_tell_holds_its_shards_alone(source: Source):
    source.run("CREATE TABLE tbl01 (ID INT PRIMARY KEY)")

    result = source.run("ALTER TABLE tbl00 ADD a INT", unread="nobody knows tbl00")

    (change,) = result.changes
    assert change.shard == shard("tbl00") and change.error == "nobody knows tbl00"
    assert "set-schema" in change.hint and "reread" in change.hint
    assert isinstance(source.schemas[shard("tbl00")], Unknown)
    assert isinstance(source.schemas[shard("tbl01")], TableSchema)


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
    assert "raise the epoch" in change.hint
    (change,) = source.run("ALTER TABLE tbl00 ADD c INT", pos=400).changes
    assert "went back" in change.error, "until the table is described anew"
    source = Source()
    source.run(CREATE)
    source.run("ALTER TABLE tbl00 ADD a INT", pos=500)
    (change,) = source.run("ALTER TABLE tbl00 ADD b INT", pos=300, epoch=1).changes
    assert not change.error
    assert change.position > SourcePosition(0, "binlog.999999", 4, 0)


def test_a_snapshot_behind_a_statement_is_no_repetition(source):
    source.run("ALTER TABLE tbl00 ADD a INT", pos=500)
    described = "CREATE TABLE tbl00 (ID INT PRIMARY KEY)"
    for _ in range(2):
        assert source.run(described, pos=500, snapshot=True).changes
    assert not source.run("ALTER TABLE tbl00 ADD a INT", pos=500).changes


def test_a_database_default_is_inherited_by_new_tables():
    source = Source()
    source.run("CREATE DATABASE shop CHARACTER SET latin1")
    (change,) = source.run(CREATE).changes
    assert change.after is not None and change.after.charset == "latin1"


def charset(source: Source, ddl: str = CREATE, *tables: TableChange) -> tuple[str, str]:
    (change,) = source.run(ddl, *tables).changes
    assert change.after is not None and not change.error
    return change.after.charset, change.after.collation


def test_a_text_that_the_connector_decodes_wrongly_holds_its_shard():
    source = Source()
    source.run("CREATE DATABASE shop CHARACTER SET utf8mb4")
    columns = (ColumnImage("ID", "INT"), ColumnImage("NAME", "VARCHAR", "latin1"))
    told = TableChange("CREATE", "shop", "tbl00", columns, "latin1")

    (change,) = source.run(CREATE, told).changes

    assert "NAME is utf8mb4, not latin1" in change.error and change.code == "SM-1115"
    assert isinstance(source.schemas[shard("tbl00")], Unknown)
    columns = (columns[0], ColumnImage("NAME", "VARCHAR", "utf8mb4"))
    source.run("DROP TABLE tbl00")
    (again,) = source.run(CREATE, TableChange("CREATE", "shop", "tbl00", columns)).changes
    assert not again.error


SERVER_LATIN1 = "SET character_set_server=latin1, collation_server=latin1_bin"


def test_a_database_that_says_no_charset_has_the_servers_as_the_snapshot_tells_it():
    source = Source()
    result = source.run(SERVER_LATIN1, snapshot=True, database="")
    assert result.ignored is not None and "is not executed" in result.ignored.reason
    source.run("CREATE DATABASE shop")
    assert charset(source) == ("latin1", "latin1_bin")


@pytest.mark.parametrize("told", ["latin1", "LATIN1"])
def test_a_new_table_of_an_unknown_database_has_the_charset_that_debezium_tells(told):
    # The database had no table when the snapshot was taken: that tells nothing about it.
    created = image("CREATE", "tbl00", "ID", "NAME", charset=told)
    assert charset(Source(), CREATE, created) == ("latin1", "")


def test_without_a_word_of_debezium_it_has_the_servers():
    source = Source()
    source.run(SERVER_LATIN1, snapshot=True, database="")
    assert charset(source) == ("latin1", "latin1_bin")


def test_debeziums_word_for_the_servers_charset_leaves_its_collation():
    source = Source()
    source.run(SERVER_LATIN1, snapshot=True, database="")
    created = image("CREATE", "tbl00", "ID", "NAME", charset="latin1")
    assert charset(source, CREATE, created) == ("latin1", "latin1_bin")


@pytest.mark.parametrize(
    ("ddl", "expected"),
    [
        (f"{CREATE} CHARSET utf8mb4", ("utf8mb4", "")),
        (f"{CREATE} COLLATE ucs2_bin", ("ucs2", "ucs2_bin")),
        ("CREATE TABLE tbl00 LIKE tbl07", ("utf8mb4", "")),
    ],
)
def test_what_a_statement_says_goes_before_debeziums_word(ddl, expected):
    source = Source()
    source.run("CREATE TABLE tbl07 (ID INT, NAME CHAR(5)) CHARSET utf8mb4")
    created = image("CREATE", "tbl00", "ID", "NAME", charset="latin1")
    assert charset(source, ddl, created) == expected


def test_what_is_known_of_a_database_goes_before_debeziums_word():
    source = Source()
    source.run("CREATE DATABASE shop COLLATE latin1_bin")
    created = image("CREATE", "tbl00", "ID", "NAME", charset="utf8mb4")
    assert charset(source, CREATE, created) == ("latin1", "latin1_bin")


@pytest.mark.parametrize(
    "before", ["CREATE DATABASE shop", "CREATE TABLE tbl07 (ID INT)", "CREATE SCHEMA shop"]
)
def test_a_database_that_exists_is_not_made_again(before):
    source = Source()
    source.run(before)
    result = source.run("CREATE DATABASE IF NOT EXISTS shop CHARSET latin1")
    assert result.ignored is not None and "exists already" in result.ignored.reason
    assert charset(source) == ("utf8mb4", "")


def test_a_database_that_is_made_anew_after_its_drop_has_new_defaults(source):
    source.run("DROP DATABASE shop")
    source.run("CREATE DATABASE IF NOT EXISTS shop CHARSET latin1")
    assert charset(source) == ("latin1", "")


def test_a_database_that_nothing_names_is_not_the_server():
    source = Source()
    result = source.run("ALTER DATABASE CHARSET latin1", database="")
    assert result.puts == {}
    assert result.ignored is not None and "tells no database" in result.ignored.reason


def test_replacing_a_database_ends_every_shard_in_it(source):
    changes = source.run("CREATE OR REPLACE DATABASE shop CHARSET latin1").changes
    assert [(c.shard.table, c.after) for c in changes] == [("tbl00", None)]
    assert charset(source) == ("latin1", "")


def test_an_alter_that_asks_for_the_default_gets_the_databases():
    source = Source()
    source.run("CREATE DATABASE shop CHARSET latin1")
    source.run(f"{CREATE} CHARSET ucs2")
    assert charset(source, "ALTER TABLE tbl00 CONVERT TO CHARACTER SET DEFAULT") == ("latin1", "")


def test_unrouted_tables_are_tracked_for_a_rename_into_a_shard(source):
    source.run("CREATE TABLE _tbl00_gho LIKE tbl00")
    ignored = source.run("ALTER TABLE _tbl00_gho ADD z INT").ignored
    assert ignored is not None and "no routing rule matches s1/shop._tbl00_gho" in ignored.reason
    left = source.run("RENAME TABLE tbl00 TO _tbl00_del").changes
    assert [(c.shard, c.after) for c in left] == [(shard("tbl00"), None)]
    (arrived,) = source.run("RENAME TABLE _tbl00_gho TO tbl00").changes
    assert arrived.before is None and names(arrived.after) == ["ID", "NAME", "z"]


def test_a_renamed_shard_arrives_before_it_leaves(source):
    changes = source.run("ALTER TABLE tbl00 RENAME TO tbl01, ADD z INT").changes
    assert [(c.shard.table, c.id.ordinal, c.id.count) for c in changes] == [
        ("tbl01", 0, 2), ("tbl00", 1, 2),
    ]  # fmt: skip
    assert names(changes[0].after) == ["ID", "NAME", "z"]
    assert changes[1].after is None and not changes[1].error


def test_tables_can_change_places_in_one_statement(source):
    source.run("CREATE TABLE tbl01 (ID INT PRIMARY KEY, other INT)")
    changes = source.run("RENAME TABLE tbl00 TO t, tbl01 TO tbl00, t TO tbl01").changes
    found = {c.shard.table: (names(c.before), names(c.after)) for c in changes}
    assert found == {
        "tbl00": (["ID", "NAME"], ["ID", "other"]),
        "tbl01": (["ID", "other"], ["ID", "NAME"]),
    }


def test_a_rename_of_a_table_whose_database_is_told_nowhere_holds_all_it_can_mean(source):
    source.run("CREATE TABLE tbl00 (ID INT PRIMARY KEY)", database="other")
    changes = source.run("RENAME TABLE tbl00 TO shop.tbl01", database="shop").changes
    assert {c.shard for c in changes} == {shard("tbl00"), shard("tbl01")}
    assert all("does not tell which table" in c.error for c in changes)


def test_a_table_that_changes_places_with_a_partition_is_told_that_its_rows_moved(source):
    source.run("CREATE TABLE parted (ID INT PRIMARY KEY) PARTITION BY HASH (ID)")
    (change,) = source.run("ALTER TABLE parted EXCHANGE PARTITION p0 WITH TABLE tbl00").changes
    assert change.shard == shard("tbl00") and change.before == change.after is not None
    assert moved_rows(change.actions) == ("EXCHANGE PARTITION p0 WITH TABLE tbl00",)


@pytest.fixture
def mariadb() -> Source:
    made = Source(context=ServerContext("mariadb", (10, 11)))
    made.run(CREATE)
    made.run("CREATE TABLE tbl07 (ID INT PRIMARY KEY) PARTITION BY HASH (ID)")
    return made


def test_a_table_that_becomes_a_partition_is_gone(mariadb):
    ddl = "ALTER TABLE tbl07 CONVERT TABLE tbl00 TO PARTITION p VALUES LESS THAN (5)"
    changed, gone = mariadb.run(ddl).changes
    assert changed.shard == shard("tbl07") and len(moved_rows(changed.actions)) == 1
    assert (gone.shard, gone.after, gone.error) == (shard("tbl00"), None, "")


def test_a_partition_that_becomes_a_table_holds_that_table(mariadb):
    changed, made = mariadb.run("ALTER TABLE tbl07 CONVERT PARTITION p TO TABLE tbl09").changes
    if changed.shard != shard("tbl07"):
        changed, made = made, changed
    assert len(moved_rows(changed.actions)) == 1 and not changed.error
    assert made.shard == shard("tbl09") and "partition of another table" in made.error


def test_it_holds_all_tables_that_the_statement_can_mean(source):
    source.run("CREATE TABLE parted (ID INT PRIMARY KEY) PARTITION BY HASH (ID)")
    source.run("CREATE TABLE tbl00 (ID INT PRIMARY KEY)", database="other")
    ddl = "ALTER TABLE shop.parted EXCHANGE PARTITION p0 WITH TABLE tbl00"
    (change,) = source.run(ddl).changes
    assert "does not tell which table it means" in change.error


def test_dropping_a_database_ends_every_shard_in_it(source):
    source.run("CREATE TABLE tbl01 (ID INT PRIMARY KEY)")
    changes = source.run("DROP DATABASE shop").changes
    assert [(c.shard.table, c.after) for c in changes] == [("tbl00", None), ("tbl01", None)]
    assert source.schemas == {}


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


def test_a_statement_that_is_not_understood_holds_its_shard_with_place_and_remedy(source):
    (change,) = source.run("ALTER TABLE tbl00 FROBNICATE x", table="tbl00").changes
    assert "at character 19" in change.error
    assert change.error.endswith("\n                  ^")
    assert change.hint and change.after is None
    assert isinstance(source.schemas[shard("tbl00")], Unknown)


def test_later_changes_of_an_unknown_table_hold_too_until_it_is_described(source):
    source.run("ALTER TABLE tbl00 FROBNICATE x", table="tbl00")
    (change,) = source.run("ALTER TABLE tbl00 ADD z INT").changes
    assert "FROBNICATE" in change.error and "binlog.000001:101" in change.error
    (change,) = source.run(CREATE, snapshot=True).changes
    assert not change.error and names(change.after) == ["ID", "NAME"]


def test_an_unknown_table_can_be_dropped(source):
    source.run("ALTER TABLE tbl00 FROBNICATE x", table="tbl00")
    (change,) = source.run("DROP TABLE `shop`.`tbl00`").changes
    assert not change.error and change.after is None


def test_a_statement_of_which_no_table_is_known_holds_every_shard_of_its_database(source):
    source.run("CREATE TABLE tbl01 (ID INT PRIMARY KEY)")
    source.run("CREATE TABLE tbl02 (ID INT PRIMARY KEY)", database="other")
    changes = source.run("FROBNICATE ALL").changes
    assert [c.shard for c in changes] == [shard("tbl00"), shard("tbl01")]
    assert all("not clear which tables" in c.hint for c in changes)


def test_columns_that_debezium_reads_otherwise_make_the_schema_unknown(source):
    ddl = "ALTER TABLE tbl00 ADD z INT"
    (change,) = source.run(ddl, image("ALTER", "tbl00", "ID", "z", "NAME")).changes
    assert "not certain" in change.error
    assert isinstance(source.schemas[shard("tbl00")], Unknown)


def test_the_text_counts_where_debezium_reads_another_number_of_columns(source):
    ddl = "ALTER TABLE tbl00 RENAME COLUMN ID TO x, ADD z INT, RENAME COLUMN NAME TO ID"
    (change,) = source.run(ddl, image("ALTER", "tbl00", "ID", "z")).changes
    assert not change.error and change.after is not None
    assert [column.name for column in change.after.columns] == ["x", "ID", "z"]


def test_a_column_that_only_debezium_sees_is_found_after_any_statement(source):
    (change,) = source.run("FLUSH TABLES", image("ALTER", "tbl00", "ID", "NAME", "z")).changes
    assert "not certain" in change.error


def test_a_defect_of_our_own_holds_the_shard_and_says_where(source, monkeypatch):
    def broken(*_):
        raise IndexError("oops")

    monkeypatch.setattr("shardmerge.agents.tracking.statements.apply_alter", broken)
    (change,) = source.run("ALTER TABLE tbl00 ADD z INT", table="tbl00").changes
    assert "IndexError: oops (test_tracker.py:" in change.error
    assert "report it" in change.hint


def test_an_alter_of_a_table_that_was_never_described_is_an_error():
    (change,) = Source().run("ALTER TABLE tbl00 ADD z INT").changes
    assert "its CREATE TABLE was not seen" in change.error


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


def test_foreign_keys_follow_their_parent() -> None:
    source = Source(rules=(RoutingRule("s1", "shop|old", r"\w+", "merged", "tbl"),))
    source.run("CREATE TABLE p (id INT PRIMARY KEY, up INT, FOREIGN KEY (up) REFERENCES p (id))")
    source.run("CREATE TABLE c (p INT, FOREIGN KEY (p) REFERENCES p (id))")
    source.run("CREATE TABLE x (p INT, FOREIGN KEY (p) REFERENCES shop.p (id))", database="old")

    def parents() -> list[tuple[str, str, tuple[str, ...]]]:
        tables = [s for s in source.schemas.values() if isinstance(s, TableSchema)]
        keys = [key for table in tables for key in table.foreign_keys]
        return [(key.parent_database, key.parent_table, key.parent_columns) for key in keys]

    result = source.run("RENAME TABLE p TO q")
    assert parents() == [("", "q", ("id",)), ("shop", "q", ("id",)), ("", "q", ("id",))]
    changed = {change.shard.table: change.actions for change in result.changes}
    assert changed["c"] == changed["x"] == ("FOREIGN KEY follows shop.q",)
    source.run("ALTER TABLE q RENAME COLUMN id TO ident, RENAME TO old.r")
    both = {("", "r", ("ident",)), ("old", "r", ("ident",))}
    assert set(parents()) == both
    source.run("RENAME TABLE c TO old.c")
    assert set(parents()) == {("", "r", ("ident",))}
