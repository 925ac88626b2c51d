"""The tables of one server, and how DDL statements change them.

This is what the tracker does with events, but without snapshots, statements with unknown parts, and
lineage, which only events need. It is used to check files of statements, in benchmarks and tests.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from shardmerge.schemas.ddl.changes import (
    AlterDatabase,
    AlterTable,
    CreateDatabase,
    CreateTable,
    CreateTableLike,
    DropDatabase,
    DropTable,
    Irrelevant,
    MovePartition,
    RenameTable,
    Statement,
    TableMove,
    TableName,
    TruncateTable,
)
from shardmerge.schemas.model.errors import UnsupportedDDL
from shardmerge.schemas.model.frozen import replace
from shardmerge.schemas.model.server_context import ServerContext
from shardmerge.schemas.model.tables import TableSchema

from .databases import Defaults, defaults_after, in_database
from .statements import apply_alter, apply_create, apply_rename

Key: TypeAlias = tuple[str, str]
"""Database and table."""


@dataclass(slots=True)
class Catalog:
    """The databases and tables of a server.

    Attributes:
        tables: Table → normalised schema.
        databases: Database → default charset and collation, for databases that statements named.
    """

    tables: dict[Key, TableSchema] = field(default_factory=dict)
    databases: dict[str, Defaults] = field(default_factory=dict)

    def copy(self) -> Catalog:
        """Another catalog with the same contents."""
        return Catalog(dict(self.tables), dict(self.databases))

    def execute(self, statement: Statement, context: ServerContext) -> None:
        """Apply one statement. Temporary tables are ignored, since they are not replicated.

        Raises:
            UnsupportedDDL: The statement contradicts the tables, or its effect is not known. Then
                nothing has changed, except after a RENAME TABLE or DROP TABLE of several tables.
        """
        match statement:
            case CreateTable() | CreateTableLike():
                self._create(statement, context)
            case AlterTable():
                self._alter(statement, context)
            case DropTable():
                self._drop(statement, context)
            case RenameTable(pairs):
                for old, new in pairs:
                    self._move(_key(old, context), _key(new, context))
            case CreateDatabase(name):
                if not (statement.if_not_exists and self._has_database(name)):
                    if statement.replaces:
                        self._drop_database(name)
                    self._set_defaults(statement, context)
            case AlterDatabase():
                self._set_defaults(statement, context)
            case DropDatabase(name):
                self._drop_database(name)
            case TruncateTable() | Irrelevant():
                pass

    def _create(self, statement: CreateTable | CreateTableLike, context: ServerContext) -> None:
        key = _key(statement.name, context)
        if statement.temporary or (statement.if_not_exists and key in self.tables):
            return
        like = None
        if isinstance(statement, CreateTableLike):
            like = self.tables.get(_key(statement.like, context))
        self.tables[key] = apply_create(statement, self._inside(key, context), like)

    def _alter(self, statement: AlterTable, context: ServerContext) -> None:
        key = _key(statement.name, context)
        if statement.if_exists and key not in self.tables:
            return
        result = apply_alter(self._known(key), statement, key[1], self._inside(key, context))
        self.tables[key] = result.schema
        if result.renamed_to is not None:
            del self.tables[key]
            self.tables[_key(result.renamed_to, context)] = result.schema
        for action in statement.actions:
            if isinstance(action, MovePartition):
                moved = _key(action.table, context)
                if action.move is TableMove.GONE:
                    self.tables.pop(moved, None)
                elif action.move is TableMove.MADE:
                    self.tables[moved] = replace(result.schema, partitioning="")

    def _drop(self, statement: DropTable, context: ServerContext) -> None:
        for name in () if statement.temporary else statement.names:
            key = _key(name, context)
            if not statement.if_exists:
                self._known(key)
            self.tables.pop(key, None)

    def _move(self, old: Key, new: Key) -> None:
        schema = self._known(old)
        del self.tables[old]
        self.tables[new] = apply_rename(schema, old[1], new[1])

    def _has_database(self, name: str) -> bool:
        return name in self.databases or any(key[0] == name for key in self.tables)

    def _drop_database(self, name: str) -> None:
        self.databases.pop(name, None)
        self.tables = {key: t for key, t in self.tables.items() if key[0] != name}

    def _set_defaults(
        self, statement: CreateDatabase | AlterDatabase, context: ServerContext
    ) -> None:
        name = statement.name or context.default_database
        defaults = defaults_after(statement, self.databases.get(name), context)
        if defaults is not None:
            self.databases[name] = defaults

    def _inside(self, key: Key, context: ServerContext) -> ServerContext:
        return in_database(context, self.databases.get(key[0]))

    def _known(self, key: Key) -> TableSchema:
        schema = self.tables.get(key)
        if schema is None:
            raise UnsupportedDDL(
                f"there is no table {'.'.join(filter(None, key))}",
                hint="its CREATE TABLE must come before",
                code="SM-1103",
            )
        return schema


def _key(name: TableName, context: ServerContext) -> Key:
    return (name.database or context.default_database, name.table)
