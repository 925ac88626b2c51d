"""What a target is expected to hold has the texts that the target's own server shows."""

from __future__ import annotations

from dataclasses import replace

import pytest

from shardmerge.schemas.ddl.apply.actions import schema_after
from shardmerge.schemas.ddl.apply.statements import apply_create
from shardmerge.schemas.ddl.apply.stored_texts import (
    stored_check,
    stored_column,
    stored_default,
    stored_index,
    stored_schema,
    stored_text,
    texts_of,
    with_texts,
)
from shardmerge.schemas.ddl.changes import CreateTable
from shardmerge.schemas.ddl.expressions import canonical
from shardmerge.schemas.ddl.grammar import parse
from shardmerge.schemas.model.actions import (
    CheckAddition,
    ColumnAddition,
    ColumnChange,
    DefaultChange,
    IndexAddition,
    TableCreation,
)
from shardmerge.schemas.model.errors import UnparsableDDL
from shardmerge.schemas.model.names import TargetTable
from shardmerge.schemas.model.server_context import ServerContext
from shardmerge.schemas.model.tables import (
    Check,
    Column,
    Default,
    DefaultKind,
    Generated,
    Index,
    IndexKind,
    IndexPart,
    TableSchema,
)
from shardmerge.schemas.model.types import ColumnType
from tests.integration.mysql.stored_expressions import PLAIN

MYSQL = ServerContext(version=(8, 0, 36))
OLD_MYSQL = ServerContext(version=(8, 0, 15))
MARIADB = ServerContext("mariadb", (10, 11))
TARGET = TargetTable("m", "t")


def table(columns: str, context: ServerContext) -> TableSchema:
    statement = parse(f"CREATE TABLE t ({columns})", context)
    assert isinstance(statement, CreateTable)
    return apply_create(statement, context)


@pytest.mark.parametrize(
    ("text", "context", "stored"),
    [
        # Written by a source of another kind or version.
        ("json_pretty(`j`)", MARIADB, "json_detailed(`j`)"),
        ("st_linefromtext(`a`)", MARIADB, "st_geometryfromtext(`a`)"),
        ("(`a` like 'x' escape '|')", OLD_MYSQL, "(`a` like 'x')"),
        ("json_length(`j`,'$.a')", MYSQL, "json_length(json_extract(`j`,'$.a'))"),
        # Written by an earlier version of the grammar.
        ("round(`a`)", MYSQL, "round(`a`,0)"),
        ("(`a` in (1))", MYSQL, "(`a` = 1)"),
        ("trim('x' from `a`)", MYSQL, "trim(both 'x' from `a`)"),
        # What the target's grammar does not have.
        ("nextval(shop.s) + @v", MYSQL, "nextval(shop.s) + @v"),
    ],
)
def test_a_text_has_the_form_that_the_server_stores(
    text: str, context: ServerContext, stored: str
) -> None:
    assert stored_text(text, context) == stored
    assert stored_text(stored, context) == stored


@pytest.mark.parametrize("context", [MYSQL, OLD_MYSQL, ServerContext(version=(5, 7)), MARIADB])
def test_reading_a_text_of_this_version_again_changes_nothing(context: ServerContext) -> None:
    texts = []
    for written in PLAIN:
        try:
            texts.append(canonical(written, context))
        except UnparsableDDL:
            continue  # a function of another server
    assert len(texts) > len(PLAIN) * 0.9
    assert [stored_text(text, context) for text in texts] == texts


def test_modes_of_the_server_do_not_change_how_a_canonical_text_is_read() -> None:
    modes = ("ANSI_QUOTES", "NO_BACKSLASH_ESCAPES", "PIPES_AS_CONCAT", "HIGH_NOT_PRECEDENCE")
    context = replace(MYSQL, sql_mode=frozenset(modes))
    for text in (r"concat(`a`,'\\n')", "(`a` or `b`)", "(not((`a` and `b`)))"):
        assert stored_text(text, context) == stored_text(text, MYSQL)
    real = replace(MYSQL, sql_mode=frozenset({"REAL_AS_FLOAT"}))
    assert stored_text("cast(`a` as real)", real) == "cast(`a` as float)"
    assert stored_text("cast(`a` as real)", MYSQL) == "cast(`a` as double)"


def test_only_texts_that_change_make_another_table() -> None:
    schema = table("a INT, g INT AS (a + 1), b INT DEFAULT (ROUND(1.5)), CHECK (a > 0)", MYSQL)
    assert [*texts_of(schema)] == ["(`a` + 1)", "round(1.5,0)", "(`a` > 0)"]
    assert with_texts(schema, lambda text: text) is schema
    other = with_texts(schema, lambda text: text.replace("`a`", "`z`"))
    assert [*texts_of(other)] == ["(`z` + 1)", "round(1.5,0)", "(`z` > 0)"]


@pytest.mark.parametrize("context", [MYSQL, OLD_MYSQL, MARIADB])
@pytest.mark.parametrize(
    "columns",
    [
        "j JSON, a VARCHAR(20), g VARCHAR(9) AS (TRIM('x' FROM a)), d DATETIME(3) DEFAULT NOW(3)",
        "a INT, CHECK (a IN (1)), b INT DEFAULT (ROUND(1.5)), c VARCHAR(36) DEFAULT (UUID())",
        "a INT, t TIMESTAMP DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP, KEY k (a)",
    ],
)
def test_what_the_server_itself_shows_stays_as_it_is(columns: str, context: ServerContext) -> None:
    schema = table(columns, context)
    assert stored_schema(schema, context) == schema
    assert schema_after(None, (TableCreation(schema),), TARGET, context) == schema


def test_every_part_that_an_action_makes_has_the_servers_texts() -> None:
    earlier = Generated("round(`a`)", stored=False)
    column = Column("g", ColumnType("int"), generated=earlier)
    default = Default(DefaultKind.EXPRESSION, "round(1.5)")
    index = Index("k", IndexKind.PLAIN, (IndexPart("", expression="round(`a`)"),))
    check = Check("c", "(`a` in (1))")

    before = table("a INT, g INT", MYSQL)
    after = schema_after(
        before,
        (
            ColumnChange("g", column),
            DefaultChange("a", default),
            IndexAddition(index),
            CheckAddition(check),
            ColumnAddition(Column("h", ColumnType("int"), generated=earlier)),
        ),
        TARGET,
        MYSQL,
    )

    assert [c.generated.expression for c in after.columns if c.generated] == ["round(`a`,0)"] * 2
    assert after.columns[0].default == Default(DefaultKind.EXPRESSION, "round(1.5,0)")
    assert [part.expression for part in after.indexes[0].parts] == ["round(`a`,0)"]
    assert [each.expression for each in after.checks] == ["(`a` = 1)"]
    assert stored_column(column, MYSQL).generated == Generated("round(`a`,0)", stored=False)
    assert stored_default(None, MYSQL) is None
    assert stored_index(index, MYSQL) == after.indexes[0]
    assert stored_check(check, MYSQL).expression == "(`a` = 1)"
