"""The rows of a query's result as the bytes in which the server sends them (MySQL protocol).

PyMySQL makes Python values of each packet, which takes most of the time that a client needs for a
row. Here it sends the query and reads the columns' descriptions, and the caller gets the rest.

Source: MySQL Internals, "Text Resultset"; the methods are those that PyMySQL's own results use.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pymysql
from pymysql.constants import COMMAND, CR
from pymysql.protocol import MysqlPacket

from .mysql import Connection

_PIECE_BYTES = 256 << 10


def row_pieces(connection: Connection, sql: str) -> Iterator[bytes]:
    """Run a query that answers with rows; their packets, in pieces of any length.

    The caller stops after the packet that ends the result (``end_of_rows``). If it stops before
    that, the connection cannot be used any more.

    Raises:
        pymysql.Error: The server refuses the query, or the connection was lost.
    """
    own: Any = connection
    own._execute_command(COMMAND.COM_QUERY, sql)
    columns = own._read_packet().read_length_encoded_integer()
    for _ in range(columns + 1):  # one packet more ends the descriptions
        own._read_packet()
    while True:
        try:
            piece: bytes = own._rfile.read1(_PIECE_BYTES)
        except OSError as error:
            own._force_close()
            raise pymysql.OperationalError(CR.CR_SERVER_LOST, f"lost in rows ({error})") from error
        if not piece:
            own._force_close()
            raise pymysql.OperationalError(CR.CR_SERVER_LOST, "lost in rows")
        yield piece


def end_of_rows(connection: Connection, packet: bytes) -> int:
    """What the packet behind the last row says: the number of the query's warnings.

    Raises:
        pymysql.Error: The server could not send all rows.
    """
    own: Any = connection
    last: Any = MysqlPacket(packet, own.encoding)
    last.check_error()
    return int.from_bytes(packet[1:3], "little")
