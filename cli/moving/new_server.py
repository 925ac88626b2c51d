"""Asks servers for what ``move_rules`` judges."""

from __future__ import annotations

import pymysql
from pymysql.cursors import Cursor

from shardmerge.cli.clients import mysql_cursor
from shardmerge.connectors.access.mysql import mysql_error
from shardmerge.connectors.binlog.gtids import Gtids, gtids_of
from shardmerge.connectors.sources.source_binlog import gtids_before
from shardmerge.schemas.model.errors import ConfigError, StackError
from shardmerge.schemas.pipeline.settings import Source

from .move_rules import NewServer, ServerBefore


def ask(source: Source) -> NewServer:
    """What the server at a source's address says.

    Raises:
        StackError: It does not answer, or refuses the user.
    """
    try:
        with mysql_cursor(source) as cursor:
            cursor.execute("SHOW GLOBAL VARIABLES")
            variables = {str(name).lower(): str(value) for name, value in cursor.fetchall()}
            executed, purged = _gtids(cursor, source.flavour)
    except (pymysql.MySQLError, ConfigError) as error:
        raise StackError(
            f"source {source.name}: {source.host}:{source.port} does not answer:"
            f" {mysql_error(error)}",
            hint="is it the right address, and may the source's user log in there?",
            code="SM-6101",
        ) from error
    return NewServer(variables, executed, purged)


def ask_before(source: Source) -> ServerBefore | None:
    """What the server before says; None when it does not answer.

    Args:
        source: With that server's address.
    """
    try:
        with mysql_cursor(source) as cursor:
            # In this order: when it takes no writes, its transactions are all that there will be.
            cursor.execute("SELECT @@GLOBAL.read_only, @@GLOBAL.server_id")
            ((read_only, server_id),) = cursor.fetchall()
            executed, _ = _gtids(cursor, source.flavour)
            return ServerBefore(executed, read_only not in (0, "OFF"), str(server_id))
    except (pymysql.MySQLError, ConfigError):
        return None


def _gtids(cursor: Cursor, flavour: str) -> tuple[Gtids | None, Gtids | None]:
    """The transactions that a server has, and those that its binlog has no more."""
    if flavour != "mariadb":
        cursor.execute("SELECT @@GLOBAL.gtid_executed, @@GLOBAL.gtid_purged")
        ((executed, purged),) = cursor.fetchall()
        return gtids_of(str(executed or "")), gtids_of(str(purged or ""))
    cursor.execute("SELECT @@GLOBAL.gtid_binlog_pos")
    ((executed,),) = cursor.fetchall()
    cursor.execute("SHOW BINARY LOGS")
    files = [str(row[0]) for row in cursor.fetchall()]
    purged = gtids_before(cursor, files[0]) if files else None
    return gtids_of(str(executed or "")), purged
