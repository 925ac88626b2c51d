"""What is asked of a source's server about tables that Debezium cannot read."""

from __future__ import annotations

from typing import Any, cast

from pymysql.cursors import Cursor

from shardmerge.connectors.debezium.unread_types import Unread
from shardmerge.connectors.sources.unread_tables import unread_tables
from shardmerge.schemas.pipeline.settings import Source

SOURCE = Source("s1", "h", 3306, "u", "p", 1, flavour="mariadb", databases=r"app")


class Server:
    """Answers with what a server's information_schema holds."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.rows: list[tuple[str, ...]] = []

    def execute(self, sql: str, arguments: tuple[object, ...] = ()) -> None:
        self.asked.append(sql)
        if "SYSTEM VERSIONED" in sql:
            self.rows = [("app", "v"), ("other", "v")]
        elif "COMPRESSED" in sql:
            self.rows = [("app", "t", "text"), ("other", "u", "text")]
        else:
            assert arguments == (("inet4", "inet6"),)
            self.rows = [("app", "t", "ip", "inet6"), ("other", "u", "ip", "inet4")]

    def fetchall(self) -> list[tuple[str, ...]]:
        return self.rows


def found(source: Source) -> Unread:
    return unread_tables(cast(Cursor, cast(Any, Server())), source)


def test_compressed_columns_count_in_databases_that_are_not_captured_too() -> None:
    assert found(SOURCE) == Unread(
        columns=("app.t.ip (INET6)",),
        versioned=("app.v",),
        compressed=("app.t.text", "other.u.text"),
    )


def test_a_mysql_server_is_not_asked() -> None:
    server = Server()
    source = Source("s1", "h", 3306, "u", "p", 1)
    assert unread_tables(cast(Cursor, cast(Any, server)), source) == Unread()
    assert server.asked == []
