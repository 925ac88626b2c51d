"""What a target has otherwise than the shards, or does without, is told once, when it changes."""

from __future__ import annotations

from itertools import chain

import pytest

from shardmerge.schemas.lattice.join import join_tables
from shardmerge.schemas.lattice.joined import JoinedTable
from shardmerge.schemas.model.tables import TableSchema
from shardmerge.schemas.records.decisions import StatementKind, TargetStatement
from shardmerge.schemas.target.dialects.dialect import Dialect
from shardmerge.schemas.target.dialects.dialects import dialect_of
from shardmerge.schemas.target.dialects.spark import SparkDialect
from shardmerge.schemas.target.diff import CannotRender, diff
from shardmerge.schemas.target.target_table import TargetSchema, target_schema
from tests.strategies import table
from tests.target_moves import TARGET

SPARK = SparkDialect()
MYSQL_57 = dialect_of("mysql", "5.7.44")


class Rollout:
    """A target that follows what its shards have."""

    def __init__(self, dialect: Dialect) -> None:
        self.dialect = dialect
        self.joined: JoinedTable | None = None
        self.to: TargetSchema | None = None

    def shards(self, *definitions: str) -> tuple[tuple[TargetStatement, ...], tuple[str, ...]]:
        """The statements and the untold notes of a move to the join of these tables."""
        schemas: list[TableSchema] = [table(f"create table t ({d})") for d in definitions]
        joined = join_tables(schemas)
        assert isinstance(joined, JoinedTable)
        columns = self.to.columns if self.to else ()
        to = target_schema(joined, columns, TARGET.table, dialect=self.dialect)
        schema = self.to.schema if self.to else None
        statements = diff(schema, columns, to, TARGET, self.dialect)
        assert not isinstance(statements, CannotRender)
        notes = to.unreported_notes(self.to.sentences if self.to else (), statements)
        self.to = to
        self.codes = [note.code for note in notes]
        return statements, tuple(note.text for note in notes)


def reasons(statements: tuple[TargetStatement, ...]) -> str:
    return "; ".join(statement.reason for statement in statements)


def test_a_new_table_tells_everything_in_its_reason() -> None:
    statements, notes = Rollout(SPARK).shards("id int primary key, a decimal(65,3), check (a > 1)")
    assert notes == ()
    for words in ("the primary key is left out", "65 digits", "is left out: an Iceberg table has"):
        assert words in reasons(statements)


@pytest.mark.parametrize(
    ("dialect", "shard", "says"),
    [
        (SPARK, "id int primary key, a int, key ka (a)", "index ka is left out"),
        (SPARK, "id int primary key, a int, check (a > 1)", "check ((`a` > 1)) is left out"),
        (SPARK, "id int primary key, a int, constraint n check (a > 1)", "is left out"),
        (MYSQL_57, "id int primary key, a int, key kf ((a + 1))", "has no functional indexes"),
        (MYSQL_57, "id int primary key, a int, check (a > 1)", "could not drop it again"),
        (dialect_of("mariadb", "10.11"), "id int primary key, a int, key kf ((a + 1))", "kf"),
        (dialect_of("tidb", "7.5"), "id int primary key, a int, check (a > 1)", "forgets checks"),
    ],
)
def test_what_is_left_out_is_told_with_the_last_shard_that_gets_it_and_not_again(
    dialect: Dialect, shard: str, says: str
) -> None:
    plain = "id int primary key, a int"
    rollout = Rollout(dialect)
    assert rollout.shards(plain, plain)[1] == ()
    assert rollout.shards(shard, plain) == ((), ())
    statements, (note,) = rollout.shards(shard, shard)
    assert statements == () and says in note
    added, again = rollout.shards(f"{shard}, b int", shard)
    assert again == () and says not in reasons(added)
    assert rollout.shards(plain, f"{shard}, b int")[1] == ()
    assert says in rollout.shards(f"{shard}, b int", f"{shard}, b int")[1][0]


def test_a_column_that_keeps_the_wider_type_is_told_with_its_name() -> None:
    rollout = Rollout(SPARK)
    rollout.shards("id int primary key, a bigint", "id int primary key, a int")
    statements, notes = rollout.shards("id int primary key, a int", "id int primary key, a int")
    assert statements == ()
    assert notes == ("a: it stays bigint, Iceberg narrows no type",)


def test_a_statement_that_tells_a_note_is_enough() -> None:
    rollout = Rollout(SPARK)
    rollout.shards("id int primary key")
    statements, notes = rollout.shards("id int primary key, t time")
    assert "a number of microseconds" in reasons(statements) and notes == ()


@pytest.mark.parametrize("kind", ["text", "json", "blob"])
def test_a_column_without_a_default_is_nullable_until_every_shard_has_it(kind: str) -> None:
    without, having = "id int primary key", f"id int primary key, c {kind} not null"
    rollout = Rollout(MYSQL_57)
    rollout.shards(without, without, without)
    first, _ = rollout.shards(having, without, without)
    assert [s.kind for s in first] == [StatementKind.EXPANDING]
    assert "NOT NULL" not in first[0].sql and "rows without it get NULL" in first[0].reason
    assert rollout.shards(having, having, without) == ((), ())
    last, _ = rollout.shards(having, having, having)
    assert [s.kind for s in last] == [StatementKind.CONTRACTING]
    assert last[0].sql.startswith("ALTER TABLE `merged`.`t` MODIFY COLUMN `c` ")
    assert last[0].sql.endswith(" NOT NULL")
    back, _ = rollout.shards(having, without, having)
    assert [s.kind for s in back] == [StatementKind.EXPANDING]
    assert "NOT NULL" not in back[0].sql
    gone = tuple(chain.from_iterable(rollout.shards(without, without, without)[:1]))
    assert [s.sql for s in gone] == ["ALTER TABLE `merged`.`t` DROP COLUMN `c`"]
