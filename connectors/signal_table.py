"""Makes the signal table of a source, and checks that the connector's user may write to it."""

from __future__ import annotations

import pymysql

from shardmerge.schemas.errors import StackError
from shardmerge.schemas.names import SIGNAL_TABLE, quote_identifier
from shardmerge.schemas.pipeline import Pipeline, Source

from .signals import signal_database, signal_table_ddl

_DENIED = (1044, 1142)
_PROBE = "shardmerge-probe"


def prepare_signal_table(pipeline: Pipeline, source: Source, timeout_s: int = 10) -> None:
    """Make a source's signal table if it is missing, and try the rights that marks need.

    Safe to call again. A connector stops when it meets rows of a table that it does not know: it
    must have read the table in its first snapshot, or see the CREATE TABLE in the binlog.

    Raises:
        StackError: The server cannot be reached or refuses; the hint says what to grant.
    """
    database = quote_identifier(signal_database(pipeline, source))
    table = f"{database}.{SIGNAL_TABLE}"
    try:
        with (
            pymysql.connect(
                host=source.host,
                port=source.port,
                user=source.user,
                password=source.password,
                connect_timeout=timeout_s,
            ) as connection,
            connection.cursor() as cursor,
        ):
            try:
                for statement in signal_table_ddl(pipeline, source):
                    cursor.execute(statement)
            except pymysql.MySQLError as error:
                # It may be there already, made by somebody who has the right.
                if error.args[0] not in _DENIED:
                    raise
            cursor.execute(f"INSERT INTO {table} VALUES (%s, 'probe', NULL)", (_PROBE,))
            cursor.execute(f"DELETE FROM {table} WHERE id = %s", (_PROBE,))
            # Never committed: nothing of it comes into the binlog.
            connection.rollback()
    except pymysql.MySQLError as error:
        reason = error.args[1] if len(error.args) > 1 else str(error)
        raise StackError(
            f"source {source.name}: user {source.user!r} cannot make or write {table}, which "
            f"snapshots of single tables need: {reason}",
            hint=f"GRANT CREATE, SELECT, INSERT, DELETE ON {database}.* TO {source.user!r}",
        ) from None
