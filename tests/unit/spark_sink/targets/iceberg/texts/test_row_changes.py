"""Changes of rows as MERGEs: what every statement that changes rows becomes."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardmerge.schemas.effects.added_column_values import fill_text
from shardmerge.schemas.model.actions import ColumnRemoval, DefaultFill
from shardmerge.schemas.model.errors import UnsupportedDDL
from shardmerge.schemas.model.names import ShardId, TargetTable, quote_identifier
from shardmerge.schemas.model.origin import Origin, OriginColumn, OriginPart
from shardmerge.schemas.model.tables import Column
from shardmerge.schemas.records.decisions import TargetStatement
from shardmerge.schemas.records.earlier_statements import actions_of
from shardmerge.schemas.target.dialects.spark import SparkDialect
from shardmerge.schemas.target.row_statements import clearing, copying, deletion, filling, removal
from shardmerge.spark_sink.targets.iceberg.texts.row_changes import merge_sql
from tests.strategies import ALL_TYPES, table
from tests.target_statements import NO_REASON

SPARK = SparkDialect()
TARGET = TargetTable("m", "t")
SHARD = ShardId("s1", "app", "a")
NAMES = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=20)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
ORIGIN = Origin((OriginColumn(OriginPart.SHARD, "_s"),))


def column(definition: str, name: str = "c") -> Column:
    return replace(table(f"create table t (c {definition})").columns[0], name=name)


def parts(statement: TargetStatement) -> tuple[str, str]:
    """Condition and change of the MERGE that a statement becomes."""
    assert statement.actions == actions_of(statement.sql), "an earlier record has the text alone"
    merge = merge_sql("`x`", statement.actions).removeprefix(
        "MERGE INTO `x` t USING (SELECT 1) s ON "
    )
    condition, _, then = merge.rpartition(" WHEN MATCHED THEN ")
    return condition, then


def text_of(literal: str) -> str:
    """A string literal as Spark reads it."""
    assert literal[0] == literal[-1] == "'"
    assert not re.search(r"(?<!\\)(?:\\\\)*'.", literal[1:-1])
    escaped = {"n": "\n", "r": "\r", "u0000": "\0"}
    escape = re.compile(r"\\(u0000|.)", re.DOTALL)
    found = escape.sub(lambda m: escaped.get(m[1], m[1]), literal[1:-1])
    assert isinstance(found, str)
    return found


@given(st.builds(TargetTable, NAMES, NAMES), NAMES, st.builds(ShardId, TEXTS, TEXTS, TEXTS))
def test_every_removal_is_a_merge_of_the_same_condition(
    target: TargetTable, name: str, shard: ShardId
) -> None:
    origin = Origin((OriginColumn(OriginPart.TABLE, name),))

    condition, then = parts(removal(target, shard, origin, NO_REASON))

    assert then == "DELETE"
    head = f"t.{quote_identifier(name)} = "
    assert condition.startswith(head)
    assert text_of(condition.removeprefix(head)) == shard.table


@given(TEXTS, TEXTS)
def test_every_value_is_set_and_compared(text: str, name: str) -> None:
    shard = ShardId("s1", "app", name)
    literal = SPARK.row_value(f"value {text}", column("varchar(30)"))
    assert literal is not None and text_of(literal) == text
    values = [(column("varchar(30)"), literal)]

    condition, then = parts(filling(TARGET, shard, ORIGIN, values, NO_REASON, dialect=SPARK))

    assert then == f"UPDATE SET t.`c` = {literal}"
    assert condition.endswith(f" AND NOT (t.`c` <=> {literal})")


def test_statements_as_merges() -> None:
    values = [
        (column("int", "a`b"), "-7"), (column("decimal(9,2)", "d"), "1.5"),
        (column("date", "e"), "DATE '2020-02-03'"), (column("int", "n"), "NULL"),
    ]  # fmt: skip
    fill = filling(TARGET, SHARD, ORIGIN, values, NO_REASON, dialect=SPARK)

    assert merge_sql("`lake`.`m`.`t`", fill.actions) == (
        "MERGE INTO `lake`.`m`.`t` t USING (SELECT 1) s ON t.`_s` = 's1/app.a' AND NOT ("
        "t.`a``b` <=> -7 AND t.`d` <=> 1.5 AND t.`e` <=> DATE '2020-02-03' AND t.`n` <=> NULL)"
        " WHEN MATCHED THEN UPDATE SET "
        "t.`a``b` = -7, t.`d` = 1.5, t.`e` = DATE '2020-02-03', t.`n` = NULL"
    )
    assert parts(clearing(TARGET, NO_REASON)) == ("true", "DELETE")
    assert merge_sql("`x`", actions_of("DELETE FROM `m`.`t` WHERE `a` = 'it''s \\\\'")) == (
        "MERGE INTO `x` t USING (SELECT 1) s ON t.`a` = 'it\\'s \\\\' WHEN MATCHED THEN DELETE"
    )


@pytest.mark.parametrize(
    ("overwrites", "condition", "assignments"),
    [
        (True, "t.`old` IS NOT NULL", "t.`new` = t.`old`, t.`old` = NULL"),
        (False, "t.`new` IS NULL AND t.`old` IS NOT NULL", "t.`new` = t.`old`"),
    ],
)
def test_values_that_move_to_another_column(
    overwrites: bool, condition: str, assignments: str
) -> None:
    gone, kept = column("int", "old"), column("int", "new")
    found = parts(copying(TARGET, gone, kept, [], overwrites=overwrites))

    assert found == (condition, f"UPDATE SET {assignments}")


def test_every_default_of_every_type_that_has_a_literal_is_read() -> None:
    read = set()
    for kind in ALL_TYPES:
        for nullable in (True, False):
            one = Column("c", kind, nullable=nullable)
            literal = SPARK.row_value(fill_text(one), one)
            if literal is not None:
                fill = filling(TARGET, SHARD, ORIGIN, [(one, literal)], NO_REASON, dialect=SPARK)
                assert parts(fill)[1] == f"UPDATE SET t.`c` = {literal}"
                read.add((kind.name, nullable))
    assert {("int", True), ("int", False), ("varchar", False), ("time", False)} <= read


@pytest.mark.parametrize(
    "sql",
    [
        "", "SELECT 1", "DELETE FROM t", "DELETE FROM `m`.`t` WHERE ", "TRUNCATE TABLE `m`.`t`",
        "DELETE FROM `m`.`t` WHERE `a` = 1 OR `b` = 2", "DELETE FROM `m`.`t` LIMIT 1",
        "DELETE FROM `m`.`t` WHERE `a` = `b`", "DELETE FROM `m`.`t` WHERE NOT (`a` = 1",
        "UPDATE `m`.`t` SET `a` = 1", "UPDATE `m`.`t` SET WHERE `a` = 1",
        "UPDATE `m`.`t` SET `a` = 1, WHERE `a` = 1",
        "UPDATE `m`.`t` SET `a` = now() WHERE `a` = 1",
        "UPDATE `m`.`t` SET `a` = 'x' WHERE CAST(CONVERT(`a` USING utf8mb4) AS BINARY) <=> 'x'",
    ],
)  # fmt: skip
def test_another_statement_is_refused(sql: str) -> None:
    with pytest.raises(UnsupportedDDL, match="is not known"):
        merge_sql("`x`", actions_of(sql))


def test_what_changes_no_rows_is_no_merge() -> None:
    for actions in ((ColumnRemoval("c"),), (DefaultFill("c"),)):
        with pytest.raises(UnsupportedDDL, match=f"no {type(actions[0]).__name__}"):
            merge_sql("`x`", actions)


def test_the_rows_of_several_shards_are_deleted_together() -> None:
    two = deletion(TARGET, (SHARD, ShardId("s2", "app", "b")), ORIGIN, NO_REASON)
    assert parts(two) == ("(t.`_s` = 's1/app.a') OR (t.`_s` = 's2/app.b')", "DELETE")
