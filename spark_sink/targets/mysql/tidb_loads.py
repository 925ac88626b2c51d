"""Whether rows go into a TiDB by LOAD DATA, which is about three times as fast there as statements.

Where a TiDB refuses a row of many it answers before it has read all, and two of its threads read
the connection on: it hangs up, or the whole server dies (seen with 8.4: "invalid sequence", "slice
bounds out of range"). Older ones commit by LOAD DATA: rows would be there without their offset. So
it is used only

* from the version on with which it was tried;
* where a transaction of the sink is far below what the server takes, as far as it tells;
* by a process that has had no error from it: after the first one it writes by statements for good.
"""

from __future__ import annotations

import threading

import pymysql
from pymysql.cursors import Cursor

FROM_VERSION = (8, 0)
ROUND_BYTES = 8 << 20
"""Bound of what one transaction writes into a TiDB."""
_ROOM = 8 * ROUND_BYTES
"""A limit of the server below this is too near: it counts more than the bytes of the values."""

_lock = threading.Lock()
_refused: set[tuple[str, int]] = set()


def note_refusal(host: str, port: int) -> None:
    """Remember that a LOAD DATA was not carried out by a server, whatever the reason."""
    with _lock:
        _refused.add((host, port))


def loads(cursor: Cursor, version: tuple[int, ...], host: str, port: int) -> bool:
    """Whether this process writes rows into a TiDB by LOAD DATA.

    Args:
        cursor: Of a connection to it.
        version: Its own.
        host: Of the server.
        port: Likewise.

    Raises:
        pymysql.Error: It does not answer.
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
        # Who may not see it counts on what is documented: 100 MiB.
        return True
    return all(int(row[-1]) >= _ROOM for row in cursor.fetchall())
