"""DDL in, what was understood out: ``statements.sql`` against ``understood.txt``.

``pytest tests/golden/parse --update-golden`` rewrites the second; review the difference.
"""

from __future__ import annotations

from pathlib import Path

from shardmerge.schemas.ddl.apply.statements import apply_create
from shardmerge.schemas.ddl.changes import AlterTable, CreateTable, Statement, TableName
from shardmerge.schemas.ddl.describe import column_text, describe
from shardmerge.schemas.ddl.grammar import ServerContext, parse
from shardmerge.schemas.model.tables import Index, TableSchema
from tests.ddl_files import OWN, read

EXPECTED = Path(__file__).with_name("understood.txt")
SERVER = ServerContext(version=(8, 0, 36), default_database="d")


def test_every_statement_is_understood_as_before(update_golden: bool) -> None:
    pieces: list[str] = []
    for written in read(OWN):
        context = written.context(SERVER)
        lines = understood(parse(written.sql, context), context)
        pieces.append("\n".join([written.sql, *(f"    {line}" for line in lines)]))
    text = "\n\n".join(pieces) + "\n"
    if update_golden:
        EXPECTED.write_text(text, encoding="utf-8")
    assert text == EXPECTED.read_text(encoding="utf-8")


def understood(statement: Statement, context: ServerContext) -> list[str]:
    """Lines that tell what a statement means."""
    if isinstance(statement, CreateTable):
        schema = apply_create(statement, context)
        return [f"create {name(statement.name)}", *schema_lines(schema)]
    if isinstance(statement, AlterTable):
        return [
            f"alter {name(statement.name)}",
            *(f"  {describe(action, None)}" for action in statement.actions),
        ]
    return [repr(statement)]


def schema_lines(schema: TableSchema) -> list[str]:
    """A normalised schema, one line for each part."""
    lines = [f"  {column_text(column)}" for column in schema.columns]
    lines += [f"  {index_line(index)}" for index in schema.indexes]
    lines += [f"  check {c.name} {c.expression} {c.enforced}" for c in schema.checks]
    lines += [f"  {key}" for key in schema.foreign_keys]
    rest = (schema.charset, schema.collation, schema.comment, schema.options)
    return [*lines, f"  {rest} {schema.partitioning}".rstrip()]


def index_line(index: Index) -> str:
    parts = ", ".join(
        (part.column or part.expression)
        + (f"({part.length})" if part.length is not None else "")
        + (" desc" if part.descending else "")
        for part in index.parts
    )
    hidden = " invisible" if index.invisible else ""
    return f"{index.kind} {index.name} ({parts}){hidden} {index.parser}".rstrip()


def name(table: TableName) -> str:
    return f"{table.database}.{table.table}" if table.database else table.table
