"""Origin columns, and what becomes of rows that are gone without row events."""

from __future__ import annotations

from dataclasses import replace

import pytest

from shardmerge.agents.coordination import coordinator
from shardmerge.schemas.ddl.apply.statements import apply_create
from shardmerge.schemas.ddl.changes import CreateTable
from shardmerge.schemas.ddl.grammar import parse
from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.model.origin import NO_ORIGIN, Origin, OriginColumn, OriginPart
from shardmerge.schemas.model.policies import EARLIEST_POLICIES, Mode, RowsPolicy
from shardmerge.schemas.model.position import SourcePosition
from shardmerge.schemas.model.shard_columns import Lineage
from shardmerge.schemas.model.tables import TableSchema
from shardmerge.schemas.records.decisions import Decision, FixupKind, Outcome
from shardmerge.schemas.records.operator_commands import CommandKind
from shardmerge.schemas.records.schema_changes import ChangeId, SchemaChange
from shardmerge.schemas.target.dialects.spark import SparkDialect
from tests.strategies import table
from tests.unit.agents.sql_line import BASE, CONTEXT, SHARD_COLUMN, TARGET, SqlLine, shard_of, sql

IN_KEYS = Origin(SHARD_COLUMN.columns, in_keys=True)
COLUMN = "`_shard` varchar(194) COLLATE utf8mb4_bin NOT NULL"
OF_S1 = "`_shard` = 's1/app.t'"


def keys(line: SqlLine) -> dict[str, tuple[str, ...]]:
    assert line.target is not None
    return {index.name: index.columns for index in line.target.indexes}


def described(columns: str) -> TableSchema:
    statement = parse(f"CREATE TABLE t ({columns})", CONTEXT)
    assert isinstance(statement, CreateTable)
    return apply_create(statement, CONTEXT)


def rows_sql(decision: Decision) -> list[str]:
    return [s.sql for s in decision.statements if s.shard is not None]


def test_the_target_has_the_origin_columns_behind_the_shards() -> None:
    parts = (OriginPart.SOURCE, OriginPart.DATABASE, OriginPart.TABLE)
    origin = Origin(tuple(OriginColumn(part, f"_{part.value}") for part in parts))
    line = SqlLine(Mode.OPTIMISTIC, "s1", "s2", create="id INT PRIMARY KEY, a INT", origin=origin)
    assert line.target is not None
    names = [column.name for column in line.target.columns]
    assert names == ["id", "a", "_source", "_database", "_table"]
    assert keys(line) == {"PRIMARY": ("id",)}


def test_in_keys_they_end_the_primary_key_and_the_unique_keys() -> None:
    line = SqlLine(
        Mode.OPTIMISTIC, "s1", "s2",
        create="id INT PRIMARY KEY, a INT, b INT, UNIQUE u (a), KEY k (b)", origin=IN_KEYS,
    )  # fmt: skip
    assert keys(line) == {"PRIMARY": ("id", "_shard"), "u": ("a", "_shard"), "k": ("b",)}
    for source in ("s1", "s2"):
        decision = line.alter(source, "ADD UNIQUE v (b)")
    assert sql(decision) == ["ADD UNIQUE INDEX `v` (`b`, `_shard`)"]


def test_a_groups_value_has_a_typed_column_and_a_place_in_the_keys() -> None:
    number = OriginColumn(OriginPart.GROUP, "_n", "n", "smallint unsigned")
    origin = Origin((number,), in_keys=True)
    line = SqlLine(Mode.OPTIMISTIC, "s1", "s2", create="id INT PRIMARY KEY", origin=origin)
    assert line.target is not None
    assert [str(c.type.name) for c in line.target.columns] == ["int", "smallint"]
    assert line.target.columns[1].type.unsigned
    assert keys(line) == {"PRIMARY": ("id", "_n")}
    for source in ("s1", "s2"):
        line.alter(source, "ADD COLUMN a INT")
    assert line.columns == ["_n", "a", "id"]
    assert line.held == []


def test_they_stay_where_they_are_while_the_shards_change() -> None:
    line = SqlLine(Mode.OPTIMISTIC, "s1", "s2", create="id INT PRIMARY KEY, a INT", origin=IN_KEYS)
    for source in ("s1", "s2"):
        line.alter(source, "ADD COLUMN b INT NOT NULL DEFAULT 1")
        line.alter(source, "RENAME COLUMN a TO c")
    assert line.columns == ["_shard", "b", "c", "id"]
    assert line.held == []


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("action", ["ADD COLUMN _shard INT", "RENAME COLUMN a TO _SHARD"])
def test_a_shard_with_a_column_of_their_name_is_held_and_nobody_else(
    mode: Mode, action: str
) -> None:
    line = SqlLine(mode, "s1", "s2", create="id INT PRIMARY KEY, a INT", origin=SHARD_COLUMN)
    decision = line.alter("s1", action)
    assert decision.outcome is Outcome.HOLD
    if mode is Mode.OPTIMISTIC:
        assert "_shard" in decision.reason
        assert line.alter("s2", "ADD COLUMN b INT").outcome is Outcome.EMIT
        assert line.create("s3", "id INT PRIMARY KEY, a INT").outcome is not Outcome.HOLD
    assert line.held == ["s1"]
    back = "DROP COLUMN _shard" if "ADD" in action else "RENAME COLUMN _shard TO a"
    assert line.alter("s1", back).released == (shard_of("s1"),)


def test_the_target_keeps_the_origin_columns_that_it_began_with() -> None:
    line = SqlLine(Mode.OPTIMISTIC, "s1", "s2")
    line.origin = SHARD_COLUMN
    decision = line.alter("s1", "ADD COLUMN a INT")
    assert line.columns == ["a", "id"]
    assert decision.warnings == (
        "the route gives the target the origin columns _shard (shard), it keeps those that it "
        "began with: none",
    )


@pytest.mark.parametrize("mode", Mode)
def test_a_dropped_shards_rows_are_deleted_when_its_route_says_so(mode: Mode) -> None:
    line = SqlLine(mode, "s1", "s2", origin=SHARD_COLUMN, on_drop=RowsPolicy.DELETE)
    decision = line.drop("s1")
    assert rows_sql(decision) == [f"DELETE FROM `merged`.`t` WHERE {OF_S1}"]
    assert (decision.live, decision.warnings) == (False, ())


@pytest.mark.parametrize("name", ["_t_del", "_t_old"])
def test_a_swap_of_an_online_schema_change_deletes_nothing(name: str) -> None:
    line = SqlLine(Mode.OPTIMISTIC, "s1", "s2", origin=SHARD_COLUMN, on_drop=RowsPolicy.DELETE)
    decision = line.drop("s1", f"RENAME TO app.{name}")
    assert decision.statements == ()
    assert decision.warnings == ("rows of s1/app.t stay in the target",)


@pytest.mark.parametrize(("origin", "kinds"), [(NO_ORIGIN, "snapshot"), (SHARD_COLUMN, "update")])
def test_rows_get_their_value_by_a_statement_where_the_target_knows_them(
    origin: Origin, kinds: str
) -> None:
    line = SqlLine(Mode.OPTIMISTIC, "s1", "s2", origin=origin)
    line.alter("s2", "ADD COLUMN a INT DEFAULT 5")
    decision = line.alter("s1", "ADD COLUMN a INT NOT NULL DEFAULT 5, ADD COLUMN b INT DEFAULT 7")
    assert decision.fixups == ()
    decision = line.alter("s2", "ADD COLUMN b INT")
    assert [fixup.kind.value for fixup in decision.fixups] == [kinds]
    assert rows_sql(decision) == (
        ["UPDATE `merged`.`t` SET `b` = NULL WHERE `_shard` = 's2/app.t' AND NOT (`b` <=> NULL)"]
        if origin.columns
        else []
    )


def test_a_released_shards_rows_get_the_value_of_its_held_change() -> None:
    line = SqlLine(
        Mode.OPTIMISTIC, "s1", "s2", create="id INT PRIMARY KEY, a INT", origin=SHARD_COLUMN
    )
    line.alter("s2", "ADD COLUMN b VARCHAR(9) NOT NULL")
    line.alter("s1", "MODIFY a DATE, ADD COLUMN b VARCHAR(9) NOT NULL DEFAULT 'it''s'")
    decision = line.alter("s1", "MODIFY a INT")
    assert decision.released == (shard_of("s1"),)
    # The value of `a` after both conversions is not known: the rows are read again.
    assert [fixup.kind for fixup in decision.fixups] == [FixupKind.SNAPSHOT]


def test_statements_are_those_of_the_targets_kind() -> None:
    state = coordinator.initial(TARGET)
    schemas: dict[ShardId, TableSchema] = {}
    found: list[str] = []
    for number, (source, columns) in enumerate(
        [
            ("s1", "id INT PRIMARY KEY"), ("s2", "id INT PRIMARY KEY"),
            ("s1", "id INT PRIMARY KEY, b TIME NOT NULL DEFAULT '01:00:00'"),
            ("s2", "id INT PRIMARY KEY, b TIME NOT NULL DEFAULT '01:00:00'"),
        ]
    ):  # fmt: skip
        shard, after = shard_of(source), table(f"create table t ({columns})")
        change = SchemaChange(
            ChangeId(source, number), TARGET, shard,
            SourcePosition(0, "binlog.000001", 10 * number, 0), schemas.get(shard), after,
            (Lineage("id", "id"), Lineage("b", "")) if shard in schemas else (), (), "",
            policies=replace(EARLIEST_POLICIES, origin=SHARD_COLUMN),
        )  # fmt: skip
        schemas[shard] = after
        step = coordinator.decide(state, change, SparkDialect())
        assert step.decision is not None
        state = step.state
        found += rows_sql(step.decision)
    assert found == [
        f"UPDATE `merged`.`t` SET `b` = 3600000000 WHERE `_shard` = '{source}/app.t'"
        " AND NOT (`b` <=> 3600000000)"
        for source in ("s1", "s2")
    ]


def test_texts_are_compared_byte_by_byte() -> None:
    line = SqlLine(Mode.OPTIMISTIC, "s1", "s2", origin=SHARD_COLUMN)
    line.alter("s1", "ADD COLUMN b VARCHAR(9) NOT NULL DEFAULT 'x'")
    decision = line.alter("s2", "ADD COLUMN b VARCHAR(9) NOT NULL")
    assert rows_sql(decision) == [
        "UPDATE `merged`.`t` SET `b` = '' WHERE `_shard` = 's2/app.t' AND NOT ("
        "CAST(CONVERT(`b` USING utf8mb4) AS BINARY) <=> CAST(CONVERT('' USING utf8mb4) AS BINARY))"
    ]


def test_filling_rows_leaves_the_time_of_their_last_change_alone() -> None:
    stamp = "ts TIMESTAMP DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP"
    line = SqlLine(
        Mode.OPTIMISTIC, "s1", "s2", create=f"id INT PRIMARY KEY, {stamp}", origin=SHARD_COLUMN
    )
    line.alter("s2", "ADD COLUMN b INT NOT NULL DEFAULT 4")
    (filled,) = rows_sql(line.alter("s1", "ADD COLUMN b INT NOT NULL"))
    assert filled.startswith("UPDATE `merged`.`t` SET `b` = 0, `ts` = `ts` WHERE")


PLACED = Origin((OriginColumn(OriginPart.SHARD, "_shard"), OriginColumn(OriginPart.POSITION, "_p")))


@pytest.mark.parametrize("in_keys", [False, True])
def test_the_place_of_rows_without_a_key_is_their_key(in_keys: bool) -> None:
    line = SqlLine(
        Mode.OPTIMISTIC, "s1", "s2",
        create="a INT, b INT, UNIQUE u (b)", origin=replace(PLACED, in_keys=in_keys),
    )  # fmt: skip
    assert line.target is not None
    assert [column.name for column in line.target.columns] == ["a", "b", "_shard", "_p"]
    assert keys(line) == {"PRIMARY": ("_p",), "u": ("b", "_shard") if in_keys else ("b",)}
    for source in ("s1", "s2"):
        line.alter(source, "ADD COLUMN c INT")
        line.alter(source, "DROP COLUMN a")
    assert line.columns == ["_p", "_shard", "b", "c"]
    assert line.held == []


def test_rows_with_a_key_have_no_use_for_their_place() -> None:
    line = SqlLine(Mode.OPTIMISTIC, "s1", "s2", create="id INT PRIMARY KEY", origin=PLACED)
    assert line.columns == ["_shard", "id"]
    assert line.alter("s1", "ADD COLUMN b INT").outcome is Outcome.EMIT
    assert line.held == []


def test_the_place_goes_when_the_only_shard_gets_a_key() -> None:
    line = SqlLine(Mode.OPTIMISTIC, "s1", create="a INT NOT NULL, b INT", origin=PLACED)
    assert line.alter("s1", "ADD PRIMARY KEY (a)").outcome is Outcome.EMIT
    assert (line.columns, keys(line)) == (["_shard", "a", "b"], {"PRIMARY": ("a",)})


def test_a_shard_that_gives_its_key_up_is_held_since_its_rows_had_no_place() -> None:
    line = SqlLine(Mode.OPTIMISTIC, "s1", create="a INT PRIMARY KEY, b INT", origin=PLACED)
    decision = line.alter("s1", "DROP PRIMARY KEY")
    assert decision.outcome is Outcome.HOLD
    assert "_p" in decision.reason
    assert line.alter("s1", "ADD PRIMARY KEY (a)").released == (shard_of("s1"),)


def test_a_shard_without_a_key_and_with_a_column_of_that_name_is_held() -> None:
    line = SqlLine(Mode.OPTIMISTIC, "s1", "s2", create="a INT", origin=PLACED)
    decision = line.alter("s1", "ADD COLUMN _p INT")
    assert decision.outcome is Outcome.HOLD
    assert line.alter("s2", "ADD COLUMN b INT").outcome is Outcome.EMIT
    assert line.alter("s1", "DROP COLUMN _p").released == (shard_of("s1"),)


def test_rows_with_a_place_are_read_again_as_a_whole() -> None:
    """Debezium reads chunks of tables in the order of their keys."""
    origin = Origin((OriginColumn(OriginPart.POSITION, "_p"),))
    line = SqlLine(Mode.OPTIMISTIC, "s1", "s2", create="a INT", origin=origin)
    line.alter("s1", "ADD COLUMN b INT DEFAULT 7")
    decision = line.alter("s2", "ADD COLUMN b INT")
    # A place alone does not say whose a row is.
    assert [fixup.kind for fixup in decision.fixups] == [FixupKind.WHOLE] * 2


def test_a_shard_that_is_told_to_have_a_column_of_that_name_waits_until_it_has_it_no_more() -> None:
    line = SqlLine(Mode.OPTIMISTIC, "s0", "s1", create=BASE, origin=SHARD_COLUMN)
    line.unreadable("s1")
    columns = "id INT PRIMARY KEY, _shard INT, a INT"

    told = line.command(CommandKind.SET_SCHEMA, "s1", f"CREATE TABLE t ({columns})")
    line.schemas["s1"] = described(columns)

    assert (told.outcome, told.code) == (Outcome.HOLD, "SM-1206")
    assert line.alter("s1", "DROP COLUMN _shard").released == (shard_of("s1"),)


@pytest.mark.parametrize("definition", ["INT", "VARCHAR(194) COLLATE utf8mb4_bin NOT NULL"])
def test_a_shard_that_is_described_anew_with_a_column_of_that_name_waits(definition: str) -> None:
    line = SqlLine(Mode.OPTIMISTIC, "s0", "s1", create=BASE, origin=SHARD_COLUMN)

    again = line.create("s1", f"id INT PRIMARY KEY, _shard {definition}, a INT")

    assert (again.outcome, again.code) == (Outcome.HOLD, "SM-1206")
    assert line.alter("s1", "DROP COLUMN _shard").released == (shard_of("s1"),)


def test_a_second_shard_whose_server_numbers_the_rows_is_warned_of() -> None:
    generated = (
        "`my_row_id` bigint unsigned NOT NULL AUTO_INCREMENT /*!80023 INVISIBLE */, a INT,"
        " PRIMARY KEY (`my_row_id`)"
    )
    in_keys = Origin((OriginColumn(OriginPart.SHARD, "_shard"),), in_keys=True)
    for origin, warned in ((NO_ORIGIN, True), (in_keys, False)):
        shards = SqlLine(Mode.OPTIMISTIC, origin=origin)
        first = shards.create("s1", generated)
        second = shards.create("s2", generated)
        assert not first.warnings
        assert ("SM-1716" in second.warning_codes) is warned
        assert any("s2/app.t numbers its rows itself" in w for w in second.warnings) is warned
        again = shards.alter("s2", "ADD COLUMN b INT")
        assert "SM-1716" not in again.warning_codes
        (sent,) = first.statements
        assert "`my_row_id` bigint unsigned NOT NULL" in sent.sql
        assert "AUTO_INCREMENT" not in sent.sql
