"""Reading a server's binlog beside a connector that reads it all the time."""

from __future__ import annotations

import subprocess
import sys

import pytest

from shardmerge.cli.moving.new_binlog import rows_of
from shardmerge.connectors.access.mysql import connect
from shardmerge.connectors.binlog.binlog_events import RowsEvent
from shardmerge.connectors.sources.source_binlog import SourceBinlog
from shardmerge.local.servers.mysql import PASSWORD, USER
from shardmerge.schemas.pipeline.settings import Source
from tests.breadth import with_further
from tests.running import wait_for, with_tests

from .conftest import source_server

CONNECTOR_ID = 4711
CONNECTOR = """
import sys
from pymysqlreplication import BinLogStreamReader
from pymysqlreplication.row_event import WriteRowsEvent
port, user, password, server_id, file, pos = sys.argv[1:]
for _ in BinLogStreamReader(
    connection_settings={
        "host": "127.0.0.1", "port": int(port), "user": user, "passwd": password,
    },
    server_id=int(server_id), blocking=True, resume_stream=True, log_file=file, log_pos=int(pos),
    only_events=[WriteRowsEvent],
):
    print("row", flush=True)
"""
"""It reads as a connector does, and connects again when its connection is lost."""


# The library connects by a name that its driver has given up.
@pytest.mark.filterwarnings("ignore:'db' is deprecated:DeprecationWarning")
@pytest.mark.parametrize("name", with_further("mysql80", "mariadb1011"))
def test_counting_rows_leaves_the_connector_its_connection(
    name: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """A server ends the stream of a replica when another one comes with the same server id.

    Source: MySQL Reference Manual, "Replication and Binary Logging Options" (``server_id``).
    """
    with source_server(name, tmp_path_factory.getbasetemp(), 900) as port:
        _count_beside_a_connector(port)


def _count_beside_a_connector(port: int) -> None:
    source = Source("s", "127.0.0.1", port, USER, PASSWORD, CONNECTOR_ID)
    binlog = SourceBinlog(source)
    start = binlog.end()
    with connect(source, autocommit=True) as connection, connection.cursor() as cursor:
        for statement in (
            "CREATE DATABASE binlog_reading",
            "CREATE TABLE binlog_reading.t (id INT)",
            "INSERT INTO binlog_reading.t VALUES (1), (2), (3)",
        ):
            cursor.execute(statement)

        def streams() -> list[int]:
            cursor.execute("SHOW PROCESSLIST")
            return [row[0] for row in cursor.fetchall() if row[4] == "Binlog Dump"]

        words = [str(port), USER, PASSWORD, str(CONNECTOR_ID), start.file, str(start.pos)]
        with subprocess.Popen(
            [sys.executable, "-c", CONNECTOR, *words], stdout=subprocess.PIPE, env=with_tests()
        ) as connector:
            try:
                assert connector.stdout is not None
                assert connector.stdout.readline() == b"row\n"
                [stream] = streams()
                [event] = [
                    e for e in binlog.logged(start.file, start.pos) if isinstance(e, RowsEvent)
                ]

                assert rows_of(source, event) == 3

                cursor.execute("INSERT INTO binlog_reading.t VALUES (4)")
                assert connector.stdout.readline() == b"row\n"
                # The stream by which rows were counted ends a moment later.
                wait_for(lambda: len(streams()) == 1, "one stream")
                assert streams() == [stream]
            finally:
                connector.kill()
