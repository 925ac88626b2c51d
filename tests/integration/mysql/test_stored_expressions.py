"""Expressions have the text with which the servers store them: SHOW CREATE TABLE tells it."""

from __future__ import annotations

import dataclasses

import pymysql
import pytest

from shardmerge.schemas.ddl.apply.statements import apply_create
from shardmerge.schemas.ddl.changes import CreateTable
from shardmerge.schemas.ddl.grammar import ServerContext, parse
from shardmerge.schemas.model.errors import UnparsableDDL

from .stored_expressions import COLUMNS, HIGH_NOT, PIPES, PLAIN
from .twin import Twin

KINDS = ("VARCHAR(200)", "INT", "BLOB", "JSON", "GEOMETRY")
"""Types of the generated column: some functions fit only one of them."""


def _created(twin: Twin, expression: str) -> str:
    """The statement with that generated column which the server took; "" when it took none."""
    for kind in KINDS:
        sql = f"CREATE TABLE t ({COLUMNS}, z {kind} AS ({expression}))"
        if twin.is_taken(sql):
            return sql
    return ""


def _stored(sql: str, context: ServerContext) -> str:
    """The expression of the column z; or why the statement could not be read."""
    try:
        statement = parse(sql, context)
    except UnparsableDDL as error:
        return str(error)
    assert isinstance(statement, CreateTable)
    column = apply_create(statement, context).column("z")
    assert column is not None
    assert column.generated is not None
    return column.generated.expression


@pytest.mark.parametrize(
    ("mode", "expressions", "least"),
    [("", PLAIN, 400), ("PIPES_AS_CONCAT", PIPES, 30), ("HIGH_NOT_PRECEDENCE", HIGH_NOT, 15)],
)
def test_an_expression_has_the_text_that_the_server_stores(
    twin: Twin, mode: str, expressions: tuple[str, ...], least: int
) -> None:
    written = dataclasses.replace(twin.context, sql_mode=frozenset({mode} - {""}))
    wrong: list[str] = []
    taken = 0
    for expression in expressions:
        twin.query(f"SET SESSION sql_mode = '{mode}'")
        sql = _created(twin, expression)
        if not sql:
            continue
        taken += 1
        twin.query("SET SESSION sql_mode = ''")
        shown = str(twin.query("SHOW CREATE TABLE t")[0][1])
        twin.query("DROP TABLE t")
        ours, servers = _stored(sql, written), _stored(shown, twin.context)
        if ours != servers:
            wrong.append(f"{expression}: ours {ours}, the server's {servers}")
    assert not wrong, "\n".join(wrong)
    assert taken >= least


def test_what_is_stored_can_be_executed_and_is_stored_again(twin: Twin) -> None:
    wrong: list[str] = []
    for expression in PLAIN:
        sql = _created(twin, expression)
        if not sql:
            continue
        text = _stored(sql, twin.context)
        kind = sql.partition(", z ")[2].partition(" AS ")[0]
        twin.query("DROP TABLE t")
        try:
            twin.query(f"CREATE TABLE t ({COLUMNS}, z {kind} AS ({text}))")
        except pymysql.MySQLError as error:
            wrong.append(f"{expression}: {text}: {error}")
            continue
        shown = str(twin.query("SHOW CREATE TABLE t")[0][1])
        twin.query("DROP TABLE t")
        if (again := _stored(shown, twin.context)) != text:
            wrong.append(f"{expression}: {text} became {again}")
    assert not wrong, "\n".join(wrong)
