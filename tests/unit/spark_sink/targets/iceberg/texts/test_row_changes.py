"""Changes of rows as MERGEs: each statement of the dialect is understood, nothing else is."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardmerge.schemas.effects.added_column_values import fill_text
from shardmerge.schemas.model.errors import UnparsableDDL
from shardmerge.schemas.model.names import (
    ShardId,
    TargetTable,
    quote_identifier,
)
from shardmerge.schemas.model.origin import (
    Origin,
    OriginColumn,
    OriginPart,
)
from shardmerge.schemas.model.tables import Column
from shardmerge.schemas.target.dialects.spark import SparkDialect
from shardmerge.schemas.target.row_statements import (
    copying,
    filling,
    removal,
)
from shardmerge.spark_sink.targets.iceberg.texts.row_changes import (
    RowChange,
    read_row_change,
)
from tests.strategies import ALL_TYPES, table

SPARK = SparkDialect()
TARGET = TargetTable("m", "t")
SHARD = ShardId("s1", "app", "a")
NAMES = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=20)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
ORIGIN = Origin((OriginColumn(OriginPart.SHARD, "_s"),))


def column(definition: str, name: str = "c") -> Column:
    return replace(table(f"create table t (c {definition})").columns[0], name=name)


def text_of(literal: str) -> str:
    """A string literal as Spark reads it."""
    assert literal[0] == literal[-1] == "'"
    assert not re.search(r"(?<!\\)(?:\\\\)*'.", literal[1:-1])
    escaped = {"n": "\n", "r": "\r", "0": "\0"}
    found = re.sub(r"\\(.)", lambda m: escaped.get(m[1], m[1]), literal[1:-1], flags=re.DOTALL)
    assert isinstance(found, str)
    return found


@given(st.builds(TargetTable, NAMES, NAMES), NAMES, st.builds(ShardId, TEXTS, TEXTS, TEXTS))
def test_every_removal_is_a_merge_of_the_same_condition(
    target: TargetTable, name: str, shard: ShardId
) -> None:
    origin = Origin((OriginColumn(OriginPart.TABLE, name),))

    found = read_row_change(removal(target, shard, origin, "").sql)

    assert (found.table, found.assignments) == (target, "")
    head = f"t.{quote_identifier(name)} = "
    assert found.condition.startswith(head)
    assert text_of(found.condition.removeprefix(head)) == shard.table


@given(TEXTS, TEXTS)
def test_every_value_is_set_and_compared(text: str, name: str) -> None:
    shard = ShardId("s1", "app", name)
    literal = SPARK.row_value(f"value {text}", column("varchar(30)"))
    assert literal is not None and text_of(literal) == text
    sql = filling(TARGET, shard, ORIGIN, [(column("varchar(30)"), literal)], "", dialect=SPARK).sql

    found = read_row_change(sql)

    assert found.assignments == f"t.`c` = {literal}"
    assert found.condition.endswith(f" AND NOT (t.`c` <=> {literal})")


def test_statements_as_merges() -> None:
    values = [
        (column("int", "a`b"), "-7"), (column("decimal(9,2)", "d"), "1.5"),
        (column("date", "e"), "DATE '2020-02-03'"), (column("int", "n"), "NULL"),
    ]  # fmt: skip
    change = read_row_change(filling(TARGET, SHARD, ORIGIN, values, "", dialect=SPARK).sql)

    assert change.merge_sql("`lake`.`m`.`t`") == (
        "MERGE INTO `lake`.`m`.`t` t USING (SELECT 1) s ON t.`_s` = 's1/app.a' AND NOT ("
        "t.`a``b` <=> -7 AND t.`d` <=> 1.5 AND t.`e` <=> DATE '2020-02-03' AND t.`n` <=> NULL)"
        " WHEN MATCHED THEN UPDATE SET "
        "t.`a``b` = -7, t.`d` = 1.5, t.`e` = DATE '2020-02-03', t.`n` = NULL"
    )
    assert read_row_change("DELETE FROM `m`.`t`") == RowChange(TARGET, "true")
    assert read_row_change("DELETE FROM `m`.`t` WHERE `a` = 'it''s \\\\'").merge_sql("`x`") == (
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
    found = read_row_change(copying(TARGET, gone, kept, [], overwrites=overwrites).sql)

    assert found == RowChange(TARGET, condition, assignments)


def test_every_default_of_every_type_that_has_a_literal_is_read() -> None:
    read = set()
    for kind in ALL_TYPES:
        for nullable in (True, False):
            one = Column("c", kind, nullable=nullable)
            literal = SPARK.row_value(fill_text(one), one)
            if literal is not None:
                sql = filling(TARGET, SHARD, ORIGIN, [(one, literal)], "", dialect=SPARK).sql
                assert read_row_change(sql).assignments == f"t.`c` = {literal}"
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
    with pytest.raises(UnparsableDDL, match="no change of rows"):
        read_row_change(sql)
