"""A server and the tracked schemas of its tables, side by side."""

from __future__ import annotations

import dataclasses

import pymysql
from pymysql.cursors import Cursor

from shardmerge.local.servers.mysql import PASSWORD, USER
from shardmerge.schemas.ddl.apply.databases import Defaults, defaults_after, in_database
from shardmerge.schemas.ddl.apply.parents import follow_columns, follow_parent, move_child
from shardmerge.schemas.ddl.apply.statements import apply_alter, apply_create, apply_rename
from shardmerge.schemas.ddl.changes import (
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
from shardmerge.schemas.ddl.grammar import ServerContext, parse
from shardmerge.schemas.model.names import quote_identifier
from shardmerge.schemas.model.tables import Column, ForeignKey, Index, IndexKind, TableSchema

from .information import Information

HOME = "c"
"""The database that unqualified names mean."""
OTHER = "other"
DATABASES = (HOME, OTHER)
Key = tuple[str, str]


ZERO_MOMENT = "0000-00-00 00:00:00"


class ServerEnded(Exception):
    """The server died of a statement."""


class Twin:
    """Executes statements on a server and on tracked schemas, and compares.

    Attributes:
        context: What the tracker knows of the server.
        tracked: Schemas by (database, table).
        last_shown: SHOW CREATE TABLE as ``differences``, ``adopt`` or ``reset`` saw it last.
    """

    def __init__(self, port: int) -> None:
        self._connection = pymysql.connect(
            host="127.0.0.1", port=port, user=USER, password=PASSWORD, autocommit=True,
            charset="utf8mb4", ssl_disabled=True,
        )  # fmt: skip
        self._cursor: Cursor = self._connection.cursor()
        text = str(self.query("SELECT VERSION()")[0][0])
        version = tuple(int(part) for part in text.partition("-")[0].split("."))
        flavour = "mariadb" if "MariaDB" in text else "mysql"
        charset = str(self.query("SELECT @@character_set_server")[0][0])
        self.context = ServerContext(flavour, version, charset=charset, default_database=HOME)
        self.tracked: dict[Key, TableSchema] = {}
        self._databases: dict[str, Defaults] = {}
        self._first_databases: dict[str, Defaults] = {}
        self._is_shown = False
        self.last_shown: dict[Key, str] = {}
        self._read: dict[str, TableSchema] = {}
        self._hidden: dict[tuple[Key, str], ForeignKey] = {}
        self.query("SET foreign_key_checks = 0")
        self._mode("")
        self._information = Information(self.query, self.context)

    def close(self) -> None:
        self._connection.close()

    def query(self, sql: str) -> tuple[tuple[object, ...], ...]:
        """Rows of a statement's answer; raises ``ServerEnded`` when the server dies of it."""
        try:
            self._cursor.execute(sql)
            return tuple(self._cursor.fetchall())
        except pymysql.MySQLError:
            if not self._connection.open:
                raise ServerEnded(f"the server died of: {sql}") from None
            raise

    def _mode(self, mode: str) -> None:
        self.query(f"SET SESSION sql_mode = 'STRICT_TRANS_TABLES{mode}'")

    def reset(self, statements: list[str]) -> None:
        """Begin anew with these statements, which must all be accepted."""
        for database in (*DATABASES, *self._databases):
            if self.context.at_least(80022, None):
                self.is_taken(f"ALTER DATABASE {quote_identifier(database)} READ ONLY = 0")
            self.query(f"DROP DATABASE IF EXISTS {quote_identifier(database)}")
        self.tracked, self._databases, self._hidden = {}, {}, {}
        self.query(f"CREATE DATABASE {HOME}")
        self._databases[HOME] = (self.context.charset, self.context.collation)
        self.query(f"USE {HOME}")
        for sql in statements:
            self.query(sql)
            self._apply(parse(sql, self.context), self.context)
        self._first_databases = dict(self._databases)
        self.last_shown = self.shown()

    def restore(self, shown: dict[Key, str], tracked: dict[Key, TableSchema]) -> bool:
        """Bring the tables back to an earlier state; False when only a reset can."""
        if self._databases != self._first_databases:
            return False
        now = self.last_shown if self._is_shown else self.shown()
        self.tracked = dict(tracked)
        if now == shown:
            return True
        for key in now.keys() - {key for key, sql in shown.items() if now.get(key) == sql}:
            self.query(f"DROP TABLE {quote_identifier(key[0])}.{quote_identifier(key[1])}")
        for key, sql in shown.items():
            if now.get(key) != sql:
                if not self.query(f"SHOW DATABASES LIKE '{key[0]}'"):
                    return False
                self.query(f"USE {key[0]}")
                self.query(sql)
        self.query(f"USE {HOME}")
        self.last_shown = self.shown()
        return self.last_shown == shown

    def is_taken(self, sql: str) -> bool:
        """Whether the server takes a statement; the tracker does not see it."""
        try:
            self.query(sql)
        except pymysql.MySQLError:
            return False
        return True

    def execute(self, sql: str, context: ServerContext | None = None) -> bool:
        """Execute on both; False when the server refuses, which leaves both unchanged."""
        context = context or self.context
        self._is_shown = False
        self._mode(",ANSI_QUOTES" if context.ansi_quotes else "")
        # Without the checks an ALTER is done in place, and names keys and indexes in other ways.
        self.query("SET foreign_key_checks = 1")
        try:
            self.query(sql)
            self._connection.commit()  # CREATE TABLE … START TRANSACTION leaves one open.
        except pymysql.MySQLError:
            if "OR REPLACE" in sql:
                # MariaDB drops the old table before it finds fault with the new one.
                shown = self.shown()
                self.tracked = {key: s for key, s in self.tracked.items() if key in shown}
            if "RENAME INDEX" in sql:
                # Refused, it still makes an implicit index explicit while the table is cached.
                self.query("FLUSH TABLES")
            return False
        finally:
            if self._connection.open:
                self.query("SET foreign_key_checks = 0")
                self._mode("")
        self._apply(parse(sql, context), context)
        return True

    def _apply(self, statement: Statement, context: ServerContext) -> None:
        match statement:
            case CreateTable() | CreateTableLike():
                self._create(statement, context)
            case AlterTable():
                self._alter(statement, context)
            case DropTable(names):
                for name in () if statement.temporary else names:
                    self.tracked.pop(self._key(name), None)
            case RenameTable(pairs):
                for old, new in pairs:
                    if (before := self.tracked.get(self._key(old))) is not None:
                        moved = apply_rename(before, old.table, new.table)
                        self._move(self._key(old), self._key(new), moved)
            case CreateDatabase(name):
                if not (statement.if_not_exists and name in self._databases):
                    if statement.replaces:
                        self._forget(name)
                    self._set_defaults(statement, context)
            case AlterDatabase():
                self._set_defaults(statement, context)
            case DropDatabase(name):
                self._forget(name)

    def _alter(self, statement: AlterTable, context: ServerContext) -> None:
        key = self._key(statement.name)
        if key not in self.tracked and statement.if_exists:
            return
        inside = self._inside(key, context)
        result = apply_alter(self.tracked[key], statement, key[1], inside)
        self.tracked[key] = result.schema
        renamed = {line.before.lower(): line.name for line in result.lineage}
        for child, schema in self.tracked.items():
            self.tracked[child] = follow_columns(schema, child[0], key, renamed)
        if result.renamed_to is not None:
            self._move(key, self._key(result.renamed_to), result.schema)

    def _move(self, old: Key, new: Key, schema: TableSchema) -> None:
        del self.tracked[old]
        self.tracked[new] = move_child(schema, old[0], new[0])
        for child, other in self.tracked.items():
            self.tracked[child] = follow_parent(other, child[0], old, new)

    def _create(self, statement: CreateTable | CreateTableLike, context: ServerContext) -> None:
        key = self._key(statement.name)
        if statement.temporary or (statement.if_not_exists and key in self.tracked):
            return
        like = None
        if isinstance(statement, CreateTableLike):
            like = self.tracked[self._key(statement.like)]
        self.tracked[key] = apply_create(statement, self._inside(key, context), like)

    def _forget(self, database: str) -> None:
        self._databases.pop(database, None)
        self.tracked = {key: s for key, s in self.tracked.items() if key[0] != database}

    def _set_defaults(
        self, statement: CreateDatabase | AlterDatabase, context: ServerContext
    ) -> None:
        name = statement.name or HOME
        defaults = defaults_after(statement, self._databases.get(name), context)
        if defaults is not None:
            self._databases[name] = defaults

    def _inside(self, key: Key, context: ServerContext) -> ServerContext:
        return in_database(context, self._databases.get(key[0]))

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
            server = self._parsed(key, shown[key])
            if self.context.is_mariadb and self.tracked[key].foreign_keys != server.foreign_keys:
                self._follow_hidden_keys(key, server)
            found += compare(key, self.tracked[key], server)
            if self.last_shown.get(key) != shown[key]:
                found += self._information.differences(*key, self.tracked[key])
        self.last_shown, self._is_shown = shown, True
        return found

    def _follow_hidden_keys(self, key: Key, server: TableSchema) -> None:
        """Take foreign keys out of the tracked table that MariaDB has and does not show.

        It drops the last index of a foreign key that came with a RENAME COLUMN. Its dictionary
        still has the key then, and nothing shows it until it has an index again.
        """
        tracked = self.tracked[key]
        shown = {item.name.lower(): item for item in server.foreign_keys}
        kept = list(tracked.foreign_keys)
        for item in tracked.foreign_keys:
            where = f"FOR_NAME = '{key[0]}/{key[1]}' AND ID = '{key[0]}/{item.name}'"
            sql = f"SELECT 1 FROM information_schema.INNODB_SYS_FOREIGN WHERE {where}"
            if item.name.lower() not in shown and self.query(sql):
                self._hidden[key, item.name.lower()] = item
                kept.remove(item)
        for name in shown.keys() - {item.name.lower() for item in kept}:
            if (item_again := self._hidden.pop((key, name), None)) is not None:
                kept.append(item_again)
        kept.sort(key=lambda item: item.name.lower())
        self.tracked[key] = dataclasses.replace(tracked, foreign_keys=tuple(kept))

    def adopt(self) -> None:
        """Take the server's tables for the tracked ones."""
        self.last_shown = self.shown()
        self.tracked = {
            key: _still_implicit(self._parsed(key, sql), self.tracked.get(key))
            for key, sql in self.last_shown.items()
        }

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
            schema = apply_create(statement, context)
            # Executed, the text can say more than the table has: MariaDB's foreign keys can be
            # without an index, moments without the default that comes with ON UPDATE, and
            # AUTO_INCREMENT is NOT NULL unless NULL stands behind it.
            indexes = tuple(index for index in schema.indexes if not index.implicit)
            columns = tuple(_as_shown(column, sql) for column in schema.columns)
            self._read[sql] = dataclasses.replace(schema, columns=columns, indexes=indexes)
        return self._read[sql]


def _still_implicit(shown: TableSchema, tracked: TableSchema | None) -> TableSchema:
    """What is shown, with what the tracker knew of indexes that are not shown to be implicit."""
    known = {index.name for index in tracked.indexes if index.implicit} if tracked else set()
    indexes = tuple(
        dataclasses.replace(index, implicit=index.name in known) for index in shown.indexes
    )
    return dataclasses.replace(shown, indexes=indexes)


def _as_shown(column: Column, sql: str) -> Column:
    is_zero = column.default is not None and column.default.text.startswith(ZERO_MOMENT)
    if not (column.auto_increment or (column.on_update and is_zero)):
        return column
    head = f"\n  {quote_identifier(column.name)} "
    line = sql[sql.index(head) + 1 :].partition("\n")[0]
    default = column.default if " DEFAULT " in line else None
    nullable = column.nullable or (column.auto_increment and " NOT NULL " not in line)
    return dataclasses.replace(column, default=default, nullable=nullable)


def compare(key: Key, tracked: TableSchema, server: TableSchema) -> list[str]:
    """The parts in which two schemas differ, told one by one."""
    found: list[str] = []
    for place in range(max(len(tracked.columns), len(server.columns))):
        one = tracked.columns[place] if place < len(tracked.columns) else None
        two = server.columns[place] if place < len(server.columns) else None
        told = _told(_without_comment(one), _without_comment(two))
        found += [f"{key} column {one.name if one else place}{line}" for line in told]
    for part in ("indexes", "checks", "foreign_keys"):
        ours = {item.name.lower(): item for item in getattr(tracked, part)}
        theirs = {item.name.lower(): item for item in getattr(server, part)}
        for name in sorted(ours.keys() | theirs.keys()):
            one, two = ours.get(name), theirs.get(name)
            if one is None or two is None:
                side = "server" if one is None else "tracker"
                found.append(f"{key} {part} {name}: {side} only{_purpose(one or two, server)}")
            else:
                told = _told(_without_comment(one), _without_comment(two))
                found += [f"{key} {part} {name}{line}" for line in told]
    for part in ("charset", "collation"):
        if getattr(tracked, part) != getattr(server, part):
            found.append(f"{key} {part}: {getattr(tracked, part)}, {getattr(server, part)}")
    return found


def _purpose(item: object, schema: TableSchema) -> str:
    """Whether an index may be there only for a foreign key."""
    if not isinstance(item, Index):
        return ""
    heads = [tuple(map(str.lower, key.columns)) for key in schema.foreign_keys]
    own = tuple(column.lower() for column in item.columns)
    if any(own[: len(head)] == head for head in heads):
        return ", under a foreign key"
    is_plain = item.kind is IndexKind.PLAIN and not any(part.descending for part in item.parts)
    return ", perhaps made for a foreign key" if is_plain and len(own) == 1 else ""


def _told(one: object, two: object, path: str = "") -> list[str]:
    """The smallest parts in which two values differ."""
    if one == two:
        return []
    if dataclasses.is_dataclass(one) and type(one) is type(two):
        names = [field.name for field in dataclasses.fields(one)]
        return [
            line
            for name in names
            for line in _told(getattr(one, name), getattr(two, name), f"{path}.{name}")
        ]
    if isinstance(one, tuple) and isinstance(two, tuple) and len(one) == len(two):
        pairs = enumerate(zip(one, two, strict=True))
        return [line for place, pair in pairs for line in _told(*pair, f"{path}[{place}]")]
    return [f"{path}: tracked {one!r}, server {two!r}"]


def _without_comment(item: object) -> object:
    if isinstance(item, Index):
        # What the server shows cannot tell; of unique ones it tells the hash sometimes.
        hashed = item.hashed and not item.is_unique
        item = dataclasses.replace(item, implicit=False, hashed=hashed)
    # A comment passes through the connection's charset and proves nothing about the grammar.
    if dataclasses.is_dataclass(item) and not isinstance(item, type) and hasattr(item, "comment"):
        return dataclasses.replace(item, comment="")
    return item
