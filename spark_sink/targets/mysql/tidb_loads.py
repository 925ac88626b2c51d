"""Whether rows are written into a TiDB by LOAD DATA, about three times as fast as statements.

When a TiDB refuses a row of a LOAD DATA, it answers before it has read all data. Then two of its
threads read from the connection: it hangs up, or the whole server dies (seen with 8.4: "invalid
sequence", "slice bounds out of range"). In older versions LOAD DATA commits the transaction, so
rows would be committed without their offset. Therefore LOAD DATA is used only

* from the version on with which it was tested;
* if a transaction of the sink is far below the server's limits, as far as the server shows them;
* in a process that has had no error with it: after the first error it uses statements for good.
"""

from __future__ import annotations

import threading

import pymysql
from pymysql.cursors import Cursor

FROM_VERSION = (8, 0)
ROUND_BYTES = 8 << 20
"""Bound of what one transaction writes into a TiDB."""
_ROOM = 8 * ROUND_BYTES
"""The server's limits must be at least this: it counts more than the bytes of the values."""

_lock = threading.Lock()
_refused: set[tuple[str, int]] = set()


def note_refusal(host: str, port: int) -> None:
    """Remember that a LOAD DATA failed on a server, whatever the reason."""
    with _lock:
        _refused.add((host, port))


def may_load(cursor: Cursor, version: tuple[int, ...], host: str, port: int) -> bool:
    """Whether this process writes rows into a TiDB by LOAD DATA.

    Args:
        cursor: Of a connection to the server.
        version: The server's version.
        host: Of the server.
        port: Of the server.

    Raises:
        pymysql.Error: The server does not answer.
    """
    with _lock:
        if version < FROM_VERSION or (host, port) in _refused:
            return False
    cursor.execute("SELECT @@tidb_mem_quota_query")
    ((quota,),) = cursor.fetchall()
    if 0 < int(quota) < _ROOM:
        return False
    try:
        cursor.execute("SHOW CONFIG WHERE name = 'performance.txn-total-size-limit'")
    except (pymysql.OperationalError, pymysql.InternalError, pymysql.ProgrammingError):
        # Without the right to see it the documented default is assumed: 100 MiB.
        return True
    return all(int(row[-1]) >= _ROOM for row in cursor.fetchall())
