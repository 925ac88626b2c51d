"""The tables after the statements of a schema history, by our own grammar. Pure.

Debezium's descriptions in the history are what its own parser made of the statements. Where that
parser misreads a statement (``RENAME COLUMN a TO b, RENAME COLUMN b TO a`` loses a column, 3.6.1),
or cannot read it, the tables are derived again from the statements' texts.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TypeAlias

from shardmerge.schemas.ddl.apply.statements import apply_alter, apply_create
from shardmerge.schemas.ddl.changes import (
    AlterTable,
    CreateTable,
    CreateTableLike,
    DropDatabase,
    DropTable,
    RenameTable,
    RenameTableTo,
    Statement,
    TableName,
)
from shardmerge.schemas.ddl.grammar import ServerContext, concerned_tables, parse
from shardmerge.schemas.model.errors import SourceError, UnsupportedDDL
from shardmerge.schemas.model.tables import TableSchema

from .history import HistoryRecord, named_table

SchemaOrError: TypeAlias = TableSchema | SourceError
"""A table's schema, or why it cannot be told."""


class HistoryTables:
    """The tables of one source, statement by statement.

    Args:
        context: How the source's server reads a statement.
    """

    def __init__(self, context: ServerContext) -> None:
        self._context = context
        self._tables: dict[TableName, SchemaOrError] = {}

    def take_history(self, records: Iterable[HistoryRecord]) -> None:
        """Take the statements of the records, in order.

        A statement that Debezium read twice is taken once. Our own records are taken if they were
        written for a statement that Debezium could not read; other corrections are not taken.
        """
        taken: set[tuple[str, int, str]] = set()
        for record in records:
            if not record.text or (record.is_own and not record.statement):
                continue
            place = (record.offset.file, record.offset.pos, record.text)
            if not record.snapshot and place in taken:
                continue
            taken.add(place)
            charsets = {
                str(change["id"]): str((change.get("table") or {}).get("defaultCharsetName") or "")
                for change in record.changes
            }
            self.take(record.text, record.database, charsets)

    def take(
        self, sql: str, database: str, charsets: dict[str, str] | None = None
    ) -> tuple[TableName, ...]:
        """Take a statement; returns the tables that it makes, changes or removes.

        Args:
            sql: The text.
            database: Its default database.
            charsets: Debezium's table id → default charset of a table whose CREATE names none.
        """
        context = replace(self._context, default_database=database)
        try:
            statement = parse(sql, context)
        except SourceError as error:
            names = [qualified(name, database) for name in concerned_tables(sql, context)]
            self._tables.update(dict.fromkeys(names, error))
            return tuple(names)
        return self._execute(statement, database, context, charsets or {})

    def table(self, name: TableName) -> SchemaOrError | None:
        """A table as it is now; None when there is none of that name."""
        return self._tables.get(name)

    def _execute(
        self,
        statement: Statement,
        database: str,
        context: ServerContext,
        charsets: dict[str, str],
    ) -> tuple[TableName, ...]:
        match statement:
            case CreateTable() | CreateTableLike() | DropTable() if statement.temporary:
                return ()
            case CreateTable() | CreateTableLike():
                return self._create(statement, database, context, charsets)
            case AlterTable():
                return self._alter(statement, database, context)
            case DropTable():
                names = [qualified(name, database) for name in statement.names]
                for name in names:
                    self._tables.pop(name, None)
                return tuple(names)
            case RenameTable():
                pairs = [(qualified(a, database), qualified(b, database))
                         for a, b in statement.pairs]  # fmt: skip
                for old, new in pairs:
                    self._rename(old, new)
                return tuple(dict.fromkeys(name for pair in pairs for name in pair))
            case DropDatabase():
                names = [name for name in self._tables if name.database == statement.name]
                for name in names:
                    del self._tables[name]
                return tuple(names)
            case _:
                return ()

    def _create(
        self,
        statement: CreateTable | CreateTableLike,
        database: str,
        context: ServerContext,
        charsets: dict[str, str],
    ) -> tuple[TableName, ...]:
        name = qualified(statement.name, database)
        if statement.if_not_exists and name in self._tables:
            return ()
        for number, charset in charsets.items():
            if charset and named_table(number) == (name.database, name.table):
                context = replace(context, charset=charset, collation="")
        like = None
        if isinstance(statement, CreateTableLike):
            found = self._tables.get(qualified(statement.like, database))
            like = found if isinstance(found, TableSchema) else None
        try:
            self._tables[name] = apply_create(statement, context, like)
        except SourceError as error:
            self._tables[name] = error
        return (name,)

    def _alter(
        self, statement: AlterTable, database: str, context: ServerContext
    ) -> tuple[TableName, ...]:
        name = qualified(statement.name, database)
        before = self._tables.get(name)
        if isinstance(before, TableSchema):
            try:
                self._tables[name] = apply_alter(before, statement, name.table, context).schema
            except SourceError as error:
                self._tables[name] = error
        elif before is None:
            self._tables[name] = UnsupportedDDL(
                f"the CREATE TABLE of {name.database}.{name.table} is not in the schema history",
                code="SM-4503",
            )
        renamed = [a.to for a in statement.actions if isinstance(a, RenameTableTo)]
        if not renamed:
            return (name,)
        new = qualified(renamed[0], database)
        self._rename(name, new)
        return (name, new)

    def _rename(self, old: TableName, new: TableName) -> None:
        found = self._tables.pop(old, None)
        if found is not None:
            self._tables[new] = found


def qualified(name: TableName, database: str) -> TableName:
    """A statement's name of a table with its database: the default one if it names none."""
    return name if name.database else TableName(database, name.table)
