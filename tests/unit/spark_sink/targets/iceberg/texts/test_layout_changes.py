"""What the statements of the Iceberg dialect make of a layout, and what is none of them."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardmerge.schemas.lattice.join import join_all
from shardmerge.schemas.lattice.joined import JoinedTable
from shardmerge.schemas.model.actions import Action, Adoption, ColumnRename
from shardmerge.schemas.model.errors import SourceError, UnsupportedDDL
from shardmerge.schemas.model.names import TargetTable
from shardmerge.schemas.model.tables import Column, TableSchema
from shardmerge.schemas.records.earlier_statements import actions_of
from shardmerge.schemas.target.dialects.dialect import Rendered
from shardmerge.schemas.target.dialects.spark import SparkDialect
from shardmerge.schemas.target.dialects.spark_types import can_widen, spark_type
from shardmerge.schemas.target.target_table import target_schema
from shardmerge.spark_sink.targets.iceberg.texts.layout import (
    Field,
    Layout,
    difference,
    iceberg_type,
    layout_of,
    misfit,
    schema_json,
)
from shardmerge.spark_sink.targets.iceberg.texts.layout_changes import (
    created,
    layout_after,
    new_layout,
    there_already,
)
from tests.strategies import ALL_TYPES, by_name, names_of, table

SPARK = SparkDialect()
NAMES = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=20)
TARGETS = st.builds(TargetTable, NAMES, NAMES)
COMMENTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
COLUMNS = st.builds(
    Column, NAMES, st.sampled_from(ALL_TYPES), nullable=st.booleans(), comment=COMMENTS
)
TARGET = TargetTable("db", "t")


def only(rendering: object) -> tuple[Action, ...]:
    assert isinstance(rendering, tuple)
    [one] = rendering
    assert isinstance(one, Rendered)
    assert one.actions == actions_of(one.sql), "an earlier record has the text alone"
    return one.actions


def clause(text: str) -> tuple[Action, ...]:
    found = actions_of(f"ALTER TABLE `db`.`t` {text}")
    assert found
    return found


def field(column: Column, number: int) -> Field:
    kind = iceberg_type(spark_type(column.type))
    return Field(number, column.name, kind, not column.nullable, column.comment)


@given(
    TARGETS,
    st.lists(COLUMNS, min_size=1, max_size=6, unique_by=lambda c: c.name.lower()),
    COMMENTS,
)
def test_every_created_table_has_the_layout_of_its_columns(
    target: TargetTable, columns: list[Column], comment: str
) -> None:
    schema = TableSchema(tuple(columns), comment=comment)

    made = created(only(SPARK.create_table(target, schema)))

    fields = tuple(field(column, n) for n, column in enumerate(columns, 1))
    assert made is not None and made.comment == comment
    assert new_layout(made) == Layout(fields, len(fields))


@given(TARGETS, COLUMNS, NAMES)
def test_every_alter_table_changes_what_it_names(
    target: TargetTable, column: Column, to: str
) -> None:
    first = Column(f"{column.name}_", column.type)
    before = Layout((field(first, 1),), 7)
    added = Column(column.name, column.type, nullable=True, comment=column.comment)

    def after(layout: Layout, rendering: object) -> Layout:
        actions = only(rendering)
        assert created(actions) is None
        return layout_after(layout, actions)

    wider = after(before, SPARK.add_column(target, added))
    assert wider.fields == (*before.fields, field(added, 8)) and wider.last_id == 8
    if before.field(to) is None:
        renamed = after(wider, SPARK.rename_column(target, added, to))
        assert [f.name for f in renamed.fields] == [first.name, to]
        assert [f.id for f in renamed.fields] == [1, 8]
    narrow = after(wider, SPARK.drop_column(target, added))
    assert narrow == Layout(before.fields, 8)


@given(st.sampled_from(ALL_TYPES), st.sampled_from(ALL_TYPES), COMMENTS)
def test_columns_change_as_the_dialect_says(a: object, b: object, comment: str) -> None:
    before = Column("c", a, nullable=False)  # type: ignore[arg-type]
    after = Column("c", b, nullable=True, comment=comment)  # type: ignore[arg-type]
    rendering = SPARK.change_column(TARGET, before, after, in_key=False)
    if not isinstance(rendering, tuple):
        assert not can_widen(spark_type(before.type), spark_type(after.type))
        return
    layout = Layout((field(before, 3),), 3)
    for one in rendering:
        layout = layout_after(layout, only((one,)))
    assert layout.fields == (field(after, 3),)


def test_iceberg_promotes_what_the_dialect_widens() -> None:
    types = {spark_type(kind) for kind in ALL_TYPES}
    for a in types:
        for b in types:
            assert can_widen(iceberg_type(a), iceberg_type(b)) == can_widen(a, b)


@pytest.mark.parametrize(
    "sql",
    [
        "", "SELECT 1", "DROP TABLE `db`.`t`", "CREATE TABLE `db`.`t` (`a` int) USING parquet",
        "CREATE TABLE `db`.`t` (`a` int,) USING iceberg", "CREATE TABLE `db`.`t` () USING iceberg",
        "ALTER TABLE `db`.`t` ADD COLUMN `a` int FIRST",
        "ALTER TABLE `db`.`t` DROP COLUMN `a`, DROP COLUMN `b`",
        "ALTER TABLE `db`.`t` ALTER COLUMN `a` SET NOT NULL",
        "ALTER TABLE `db`.`t` MODIFY COLUMN `a` bigint", "ALTER TABLE `db`.`t` ADD INDEX `i` (`a`)",
    ],
)  # fmt: skip
def test_another_statement_is_refused(sql: str) -> None:
    with pytest.raises(UnsupportedDDL):
        layout_after(Layout((Field(1, "a", "int"), Field(2, "b", "int")), 2), actions_of(sql))


@pytest.mark.parametrize(
    ("action", "reason"),
    [
        ("ADD COLUMN `B` int", "already"), ("ADD COLUMN `c` int NOT NULL", "NOT NULL"),
        ("DROP COLUMN `x`", "no column x"), ("DROP COLUMN `id`", "identifier"),
        ("RENAME COLUMN `id` TO `b`", "already"), ("RENAME COLUMN `x` TO `y`", "no column x"),
        ("ALTER COLUMN `b` TYPE int", "does not change"),
        ("ALTER COLUMN `x` DROP NOT NULL", "no column x"),
    ],
)  # fmt: skip
def test_what_does_not_apply_is_refused_with_the_reason(action: str, reason: str) -> None:
    layout = Layout((Field(1, "id", "int", required=True), Field(2, "b", "long")), 2, (1,))

    with pytest.raises(UnsupportedDDL, match=reason) as raised:
        layout_after(layout, clause(action))
    assert isinstance(raised.value, SourceError)


@pytest.mark.parametrize(
    ("action", "already"),
    [
        ("ADD COLUMN `new` int", None), ("DROP COLUMN `id`", None), ("DROP COLUMN `gone`", ""),
        ("ADD COLUMN `B` bigint", ""), ("ADD COLUMN `b` int COMMENT 'c'", ""),
        ("ADD COLUMN `id` int NOT NULL", ""), ("RENAME COLUMN `x` TO `b`", None),
        ("ADD COLUMN `id` int", "column id is there already and does not fit: column id is NOT"),
        ("ADD COLUMN `b` string", "does not fit: column b: expected string, found long"),
    ],
)  # fmt: skip
def test_a_column_that_is_there_already_is_seen(action: str, already: str | None) -> None:
    layout = Layout((Field(1, "id", "int", required=True), Field(2, "b", "long")), 2, (1,))

    reason = there_already(layout, clause(action))

    if already:
        assert reason is not None and already in reason
    else:
        assert reason == already


def test_a_column_may_change_the_case_of_its_name() -> None:
    layout = Layout((Field(1, "a", "int"),), 1)

    assert layout_after(layout, (ColumnRename("a", "A"),)).fields == (Field(1, "A", "int"),)


def test_what_others_put_into_a_schema_stays() -> None:
    text = json.dumps(
        {
            "type": "struct", "schema-id": 4, "identifier-field-ids": [1],
            "fields": [
                {"id": 1, "name": "id", "required": True, "type": "int", "doc": "d"},
                {"id": 5, "name": "s", "required": False, "write-default": 3,
                 "type": {"type": "list", "element-id": 6, "element": "int",
                          "element-required": True}},
            ],
        }
    )  # fmt: skip
    layout = layout_of(text, 9)

    assert json.loads(schema_json(layout)) == {**json.loads(text), "schema-id": 0}
    assert layout.field("ID") == Field(1, "id", "int", required=True, doc="d")


def test_a_table_that_is_there_fits_when_it_accepts_the_rows() -> None:
    wanted = Layout((Field(1, "id", "int", required=True), Field(2, "v", "string")), 2)

    def there(*fields: Field) -> str:
        return misfit(wanted, Layout(fields, 9))

    key, text = Field(4, "ID", "long", required=True), Field(5, "v", "string")
    assert there(key, text, Field(6, "more", "int")) == ""
    assert there(key) == "it has no column v"
    assert "expected string, found int" in there(key, Field(5, "v", "int"))
    assert there(key, Field(5, "v", "string", required=True)) == "column v is NOT NULL"
    assert "more is NOT NULL" in there(key, text, Field(6, "more", "int", required=True))


def test_differences_are_told_by_column() -> None:
    a = Layout((Field(1, "id", "int", required=True), Field(2, "v", "string")), 2)
    b = Layout((Field(1, "id", "long"),), 1)

    assert difference(a, a) == ""
    assert difference(a, b) == (
        "column id: expected int NOT NULL, found long; column v: expected string, found None"
    )


def test_tables_without_a_common_primary_key_are_refused_when_the_target_is_planned() -> None:
    def planned(*tables: str) -> object:
        shards = [by_name(table(text)) for text in tables]
        joined = join_all(shards, names_of(shards))
        assert isinstance(joined, JoinedTable)
        return target_schema(joined, dialect=SPARK).refusal

    assert planned("create table t (a int primary key)") is None
    assert "primary key" in str(planned("create table t (a int)"))


def test_an_adoption_changes_no_table() -> None:
    layout = Layout((Field(1, "id", "int", required=True),), 1, (1,))
    assert there_already(layout, (Adoption("index:i", "INDEX"),)) == ""
