"""A server and the tracked schemas of its tables, side by side."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pymysql
from pymysql.cursors import Cursor

from shardmerge.connectors.local.artifacts import resolve
from shardmerge.connectors.local.mysql import PASSWORD, USER, mysql_spec, prepare_data
from shardmerge.connectors.local.processes import Supervisor
from shardmerge.schemas.apply import apply_alter, apply_create, apply_rename
from shardmerge.schemas.changes import (
    AlterDatabase,
    AlterTable,
    CreateDatabase,
    CreateTable,
    CreateTableLike,
    DropDatabase,
    DropTable,
    RenameTable,
    Statement,
    TableName,
)
from shardmerge.schemas.grammar import ServerContext, parse
from shardmerge.schemas.model import TableSchema
from shardmerge.schemas.names import quote_identifier

HOME = "c"
"""The database that unqualified names mean."""
OTHER = "other"
DATABASES = (HOME, OTHER)
Key = tuple[str, str]


@contextmanager
def running_server(directory: Path, port: int) -> Iterator[int]:
    """The local stack's MySQL in a directory of its own, stopped at the end."""
    artifacts = resolve()
    prepare_data(artifacts, directory / "data")
    supervisor = Supervisor(directory)
    spec = mysql_spec(artifacts, "mysql", directory / "data", port, 901, binlog=False)
    supervisor.spawn(spec)
    try:
        supervisor.wait_healthy(spec)
        yield port
    finally:
        supervisor.stop("mysql")


class Twin:
    """Executes statements on a server and on tracked schemas, and compares.

    Attributes:
        context: What the tracker knows of the server.
        tracked: Schemas by (database, table).
    """

    def __init__(self, port: int) -> None:
        self._connection = pymysql.connect(
            host="127.0.0.1", port=port, user=USER, password=PASSWORD, autocommit=True,
            charset="utf8mb4",
        )  # fmt: skip
        self._cursor: Cursor = self._connection.cursor()
        text = str(self.query("SELECT VERSION()")[0][0])
        version = tuple(int(part) for part in text.partition("-")[0].split("."))
        flavour = "mariadb" if "MariaDB" in text else "mysql"
        charset = str(self.query("SELECT @@character_set_server")[0][0])
        self.context = ServerContext(flavour, version, charset=charset, default_database=HOME)
        self.tracked: dict[Key, TableSchema] = {}
        self._databases: dict[str, tuple[str, str]] = {}
        self._shown: dict[Key, str] = {}
        self._read: dict[str, TableSchema] = {}
        self.query("SET foreign_key_checks = 0")
        self._mode("")

    def close(self) -> None:
        self._connection.close()

    def query(self, sql: str) -> tuple[tuple[object, ...], ...]:
        """Rows of a statement's answer."""
        self._cursor.execute(sql)
        return tuple(self._cursor.fetchall())

    def _mode(self, mode: str) -> None:
        self.query(f"SET SESSION sql_mode = 'STRICT_TRANS_TABLES{mode}'")

    def reset(self, statements: list[str]) -> None:
        """Begin anew with these statements, which must all be accepted."""
        for database in (*DATABASES, *self._databases):
            self.query(f"DROP DATABASE IF EXISTS {quote_identifier(database)}")
        self.tracked, self._databases = {}, {}
        self.query(f"CREATE DATABASE {HOME}")
        self.query(f"USE {HOME}")
        for sql in statements:
            self.query(sql)
            self._apply(parse(sql, self.context), self.context)

    def restore(self, shown: dict[Key, str], tracked: dict[Key, TableSchema]) -> bool:
        """Bring the tables back to an earlier state; False when only a reset can."""
        now = self.shown()
        for key in now.keys() - {key for key, sql in shown.items() if now.get(key) == sql}:
            self.query(f"DROP TABLE {quote_identifier(key[0])}.{quote_identifier(key[1])}")
        for key, sql in shown.items():
            if now.get(key) != sql:
                if not self.query(f"SHOW DATABASES LIKE '{key[0]}'"):
                    return False
                self.query(f"USE {key[0]}")
                self.query(sql)
        self.query(f"USE {HOME}")
        self.tracked = dict(tracked)
        self._databases = {}
        return self.shown() == shown

    def execute(self, sql: str, context: ServerContext | None = None) -> bool:
        """Execute on both; False when the server refuses, which leaves both unchanged."""
        context = context or self.context
        self._mode(",ANSI_QUOTES" if context.ansi_quotes else "")
        try:
            self.query(sql)
        except pymysql.MySQLError:
            return False
        finally:
            self._mode("")
        self._apply(parse(sql, context), context)
        return True

    def _apply(self, statement: Statement, context: ServerContext) -> None:
        match statement:
            case CreateTable() | CreateTableLike():
                self._create(statement, context)
            case AlterTable(name):
                key = self._key(name)
                if key in self.tracked or not statement.if_exists:
                    result = apply_alter(self.tracked[key], statement, key[1], context)
                    self.tracked[key] = result.schema
                    if result.renamed_to is not None:
                        self.tracked[self._key(result.renamed_to)] = self.tracked.pop(key)
            case DropTable(names):
                for name in () if statement.temporary else names:
                    self.tracked.pop(self._key(name), None)
            case RenameTable(pairs):
                for old, new in pairs:
                    if (schema := self.tracked.pop(self._key(old), None)) is not None:
                        self.tracked[self._key(new)] = apply_rename(schema, old.table, new.table)
            case CreateDatabase() | AlterDatabase():
                self._databases[statement.name] = (statement.charset, statement.collation)
            case DropDatabase(name):
                self.tracked = {k: s for k, s in self.tracked.items() if k[0] != name}

    def _create(self, statement: CreateTable | CreateTableLike, context: ServerContext) -> None:
        key = self._key(statement.name)
        if statement.temporary or (statement.if_not_exists and key in self.tracked):
            return
        like = None
        if isinstance(statement, CreateTableLike):
            like = self.tracked[self._key(statement.like)]
        charset, collation = self._databases.get(key[0], ("", ""))
        self.tracked[key] = apply_create(
            statement, context, charset, like, database_collation=collation
        )

    @staticmethod
    def _key(name: TableName) -> Key:
        return (name.database or HOME, name.table)

    def differences(self) -> list[str]:
        """Where the tracked schemas differ from SHOW CREATE TABLE; empty when they are equal."""
        found: list[str] = []
        shown = self.shown()
        for key in sorted(set(shown) | set(self.tracked)):
            if key not in shown or key not in self.tracked:
                found.append(
                    f"{key} is {'tracked' if key in self.tracked else 'on the server'} only"
                )
                continue
            tracked, server = self.tracked[key], self._parsed(key, shown[key])
            # The order of indexes depends on the table's history, and means nothing.
            found += compare(key, _by_name(tracked), _by_name(server))
            if self._shown.get(key) != shown[key]:
                found += self._against_information_schema(key)
        self._shown = shown
        return found

    def shown(self) -> dict[Key, str]:
        """SHOW CREATE TABLE of every table."""
        shown: dict[Key, str] = {}
        for database in DATABASES:
            if not self.query(f"SHOW DATABASES LIKE '{database}'"):
                continue
            for row in self.query(f"SHOW FULL TABLES FROM {database}"):
                if row[1] == "BASE TABLE":
                    name = str(row[0])
                    sql = f"SHOW CREATE TABLE {database}.{quote_identifier(name)}"
                    shown[database, name] = str(self.query(sql)[0][1])
        return shown

    def _parsed(self, key: Key, sql: str) -> TableSchema:
        if sql not in self._read:
            context = dataclasses.replace(self.context, default_database=key[0])
            statement = parse(sql, context)
            assert isinstance(statement, CreateTable), sql
            self._read[sql] = apply_create(statement, context)
        return self._read[sql]

    def _against_information_schema(self, key: Key) -> list[str]:
        """Names, types and nullability once more, from a source that needs no grammar."""
        rows = self.query(
            "SELECT column_name, data_type, is_nullable, character_set_name"
            " FROM information_schema.columns"
            f" WHERE table_schema = '{key[0]}' AND table_name = {quote_string(key[1])}"
            " ORDER BY ordinal_position"
        )
        told = [(str(n), str(t), str(null) == "YES", str(c or "")) for n, t, null, c in rows]
        ours = [
            (c.name, _data_type(c.type.name), c.nullable, c.type.charset.replace("binary", ""))
            for c in self.tracked[key].columns
        ]
        told = [
            (n, _data_type(t), null, {"utf8": "utf8mb3", "binary": ""}.get(c, c))
            for n, t, null, c in told
        ]
        return [] if told == ours else [f"{key} columns: tracked {ours}, server {told}"]


def _by_name(schema: TableSchema) -> TableSchema:
    indexes = tuple(sorted(schema.indexes, key=lambda index: index.name.lower()))
    return dataclasses.replace(schema, indexes=indexes)


def quote_string(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "''") + "'"


def _data_type(name: str) -> str:
    return "geometrycollection" if name == "geomcollection" else name


def compare(key: Key, tracked: TableSchema, server: TableSchema) -> list[str]:
    """The parts in which two schemas differ, told one by one."""
    found: list[str] = []
    for part in ("columns", "indexes", "checks", "foreign_keys"):
        ours, theirs = getattr(tracked, part), getattr(server, part)
        for place in range(max(len(ours), len(theirs))):
            one = ours[place] if place < len(ours) else None
            two = theirs[place] if place < len(theirs) else None
            if _without_comment(one) != _without_comment(two):
                found.append(f"{key} {part}[{place}]: tracked {one}, server {two}")
    for part in ("charset", "collation"):
        if getattr(tracked, part) != getattr(server, part):
            found.append(f"{key} {part}: {getattr(tracked, part)}, {getattr(server, part)}")
    return found


def _without_comment(item: object) -> object:
    # A comment passes through the connection's charset and proves nothing about the grammar.
    if dataclasses.is_dataclass(item) and not isinstance(item, type) and hasattr(item, "comment"):
        return dataclasses.replace(item, comment="")
    return item
