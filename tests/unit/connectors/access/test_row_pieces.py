from __future__ import annotations

from typing import Any, cast

import pymysql
import pytest
from pymysql.constants import COMMAND
from pymysql.protocol import MysqlPacket

from shardmerge.connectors.access.mysql import Connection
from shardmerge.connectors.access.row_pieces import end_of_rows, row_pieces


class Server:
    """Describes two columns, and then sends pieces of rows."""

    encoding = "utf8"

    def __init__(self, *pieces: bytes | OSError) -> None:
        self.pieces, self.packets, self.closed = list(pieces), 0, False
        self.said: list[tuple[int, str]] = []
        self._rfile = self

    def _execute_command(self, command: int, sql: str) -> None:
        self.said.append((command, sql))

    def _read_packet(self) -> Any:
        self.packets += 1
        return MysqlPacket(b"\x02" if self.packets == 1 else b"\xfe\0\0\2\0", "utf8")

    def read1(self, _: int) -> bytes:
        piece = self.pieces.pop(0)
        if isinstance(piece, OSError):
            raise piece
        return piece

    def _force_close(self) -> None:
        self.closed = True


def test_pieces_come_behind_the_descriptions_of_the_columns() -> None:
    server = Server(b"ab", b"c")
    pieces = row_pieces(cast("Connection", server), "SELECT 1, 2")
    assert [next(pieces), next(pieces)] == [b"ab", b"c"]
    assert server.said == [(COMMAND.COM_QUERY, "SELECT 1, 2")]
    assert (server.packets, server.closed) == (4, False)


@pytest.mark.parametrize("end", [b"", ConnectionResetError("reset")])
def test_a_lost_connection_is_an_error(end: bytes | OSError) -> None:
    server = Server(b"ab", end)
    with pytest.raises(pymysql.OperationalError) as raised:
        list(row_pieces(cast("Connection", server), "SELECT 1, 2"))
    assert (raised.value.args[0], server.closed) == (2013, True)


def test_the_last_packet_tells_warnings_or_an_error() -> None:
    def end(packet: bytes) -> int:
        return end_of_rows(cast("Connection", Server()), packet)

    assert end(b"\xfe\x03\x00\x02\x00") == 3
    with pytest.raises(pymysql.OperationalError) as raised:
        end(b"\xff\x25\x05#70100interrupted")
    assert raised.value.args[0] == 1317
