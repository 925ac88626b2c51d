"""Connections to the MySQL servers of the local line, for the demo and the tests."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from shardmerge.connectors.access.mysql import Connection, Server, connect
from shardmerge.local.servers.mysql import PASSWORD, USER
from shardmerge.local.servers.secured import Secured
from shardmerge.schemas.pipeline.settings import Source, Target
from shardmerge.schemas.pipeline.tls import Tls


def by_owner(server: Source | Target, secured: Secured) -> Source | Target:
    """A server of the stack; if the stack is secured, with the user who may do everything."""
    if not secured.is_on:
        return server
    return replace(server, user=USER, password=PASSWORD, tls=Tls())


def connected(server: Server, **options: Any) -> Connection:
    """A connection that commits every statement, in UTC; ``options`` are PyMySQL's."""
    init = options.pop("init_command", "SET time_zone = '+00:00'")
    return connect(
        server,
        charset="utf8mb4",
        autocommit=True,
        connect_timeout=10,
        init_command=init,
        **options,
    )


def sends_its_binlog(connection: Connection) -> bool:
    """Whether a server sends its binlog to somebody.

    A connector's snapshot is over then. Before that nobody may change a schema: Debezium lists the
    tables first and notes the binlog's position later, so a table that is made in between is in
    neither the snapshot nor the binlog that is read.
    """
    with connection.cursor() as cursor:
        return bool(
            cursor.execute(
                "SELECT 1 FROM information_schema.processlist WHERE command LIKE 'Binlog Dump%'"
            )
        )
