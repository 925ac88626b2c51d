"""The servers that the contract is run with, and what each of them has."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path

import pymysql
from pymysql.cursors import Cursor

from shardmerge.local.servers.mysql import PASSWORD, USER
from shardmerge.local.servers.source_servers import source_spec
from shardmerge.local.servers.stack import LocalStack, Ports
from shardmerge.schemas.model.errors import TargetError
from shardmerge.spark_sink.targets.mysql.session import MySqlSession
from tests.integration.spark.exactness import Item
from tests.integration.spark.ways import SourceServer
from tests.whole import IS_WHOLE

ROOT = Path(__file__).resolve().parents[2]
CACHE = ROOT / ".local" / "cache"
MARIADB_JSON = "LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"
EVERY = ("mysql57", "mysql80", "mysql97", "mariadb1011", "mariadb118")


def kinds(*else_these: str) -> tuple[str, ...]:
    """The servers of a module: every one for ``make test-all``, else these."""
    return EVERY if IS_WHOLE else else_these


@dataclass(frozen=True, slots=True)
class Kind:
    """A server that runs as a source.

    Attributes:
        name: One of ``EVERY``.
        process: Its process in the stack.
        server: Where it is, and what it says of itself.
    """

    name: str
    process: str
    server: SourceServer

    @property
    def is_mariadb(self) -> bool:
        return self.server.flavour == "mariadb"

    def connect(self) -> pymysql.Connection[Cursor]:
        """A connection that commits every statement, in UTC."""
        return connect(self.server.port)

    def run(self, *statements: str) -> tuple[tuple[object, ...], ...]:
        """Execute statements; gives the rows of the last one."""
        with self.connect() as connection, connection.cursor() as cursor:
            for sql in statements:
                cursor.execute(sql)
            return tuple(cursor.fetchall())


def connect(port: int) -> pymysql.Connection[Cursor]:
    return pymysql.connect(
        host="127.0.0.1",
        port=port,
        user=USER,
        password=PASSWORD,
        autocommit=True,
        charset="utf8mb4",
        init_command="SET time_zone = '+00:00'",
    )


def start(stack: LocalStack, name: str, number: int, *options: str) -> Kind:
    """Start a server of that name beside the stack; ``number`` tells it from its likes."""
    process = f"{name}-{number}"
    port = Ports.free().source1
    spec = source_spec(name, process, stack.directory / process, port, 1000 + number, cache=CACHE)
    stack.add(replace(spec, argv=(*spec.argv, *options)))
    with connect(port) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT VERSION()")
        ((text,),) = cursor.fetchall()
    found = re.match(r"\d+\.\d+\.\d+", text)
    assert found is not None
    flavour = "mariadb" if "MariaDB" in text else "mysql"
    return Kind(name, process, SourceServer(port, flavour, found[0]))


def only_what_it_has(session: MySqlSession, item: Item) -> Item | None:
    """A column with the values that the server takes; None when it has no such type.

    MariaDB has fewer charsets and collations. Its JSON is a text with a check. Its text of cp932
    holds its shard unless it is ASCII: tests/integration/connect/test_mariadb.py. What MySQL 5.7
    shows of JSON differs from what 8.0 shows of the same value: line ends of a binary
    value as they are, and -0.0 as -0.
    """
    if session.is_mariadb and item.definition.startswith("JSON"):
        item = replace(item, definition=item.definition.replace("JSON", MARIADB_JSON))
    elif session.is_mariadb and item.column == "c_cp932":
        item = replace(item, literals=tuple(text for text in item.literals if text.isascii()))
    elif item.definition.startswith("JSON") and is_57(session):
        shown = rf"REPLACE(REPLACE({item.shown}, '\n', '\\n'), '-0.0', '-0')"
        item = replace(item, shown=shown)
    try:
        session.execute(f"CREATE TABLE tried (`{item.column}` {item.definition})")
    except TargetError:
        return None
    try:
        taken = tuple(literal for literal in item.literals if _is_taken(session, literal))
    finally:
        session.execute("DROP TABLE tried")
    return replace(item, literals=taken) if taken else None


def is_57(session: MySqlSession) -> bool:
    """Whether the server is a MySQL 5.7."""
    ((version,),) = session.query("SELECT VERSION()")
    return str(version).startswith("5.7.")


def _is_taken(session: MySqlSession, literal: str) -> bool:
    try:
        session.execute(f"INSERT INTO tried VALUES ({literal})")
    except TargetError:
        return False
    return True
