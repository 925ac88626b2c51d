"""Numbers of errors that MySQL, MariaDB and TiDB give, by what the sink does about them.

Source: MySQL 8.0 Error Message Reference; TiDB documentation, "Error Codes and Troubleshooting",
and ``pkg/errno/errcode.go`` of TiDB 8.4 (8000 to 9999 are TiDB's alone).
"""

from __future__ import annotations

from shardmerge.schemas.model.errors import TargetError

LOCK_WAIT_TIMEOUT, DEADLOCK, NO_TABLE = 1205, 1213, 1146
PACKET_TOO_LARGE, RESULT_TOO_LARGE = 1153, 1301
"""Larger than max_allowed_packet; a connection keeps the value that it had at its start."""
TRANSACTION_TOO_LARGE = frozenset({8004, 8175, 8176})
"""Larger than TiDB's ``txn-total-size-limit``, a session's memory quota, the server's memory limit.
"""
LOST = frozenset(
    {2002, 2003, 2006, 2013, 2014, 2055, 1053, 1152, 1158, 1159, 1160, 1161, 1184, 1927, 4031}
)
"""The connection cannot be made or is gone: whether the last statement took effect is unknown."""
CONFLICTS = frozenset({
    LOCK_WAIT_TIMEOUT,
    DEADLOCK,
    8002,  # TiDB: conflict of a SELECT … FOR UPDATE
    8005,  # write conflict, found before COMMIT
    8022,  # COMMIT failed and was rolled back
    8027,  # the schema that the session knows is out of date
    8028,  # the schema changed during the transaction
    9004,  # a lock of another transaction could not be resolved in time
    9007,  # write conflict
})  # fmt: skip
"""The transaction failed because of a concurrent one: it is repeated as it is."""
RETRYABLE = LOST | CONFLICTS | TRANSACTION_TOO_LARGE | {
    1021,  # disk full
    1040,  # too many connections
    1041,  # out of memory
    1114,  # the table is full
    1203,  # too many connections of this user
    1206,  # more locks than the lock table holds
    1290,  # read-only, as after a fail-over
    1317,  # query execution was interrupted
    1637,  # too many transactions
    1836,  # read-only mode
    3024,  # maximum execution time
    3675,  # tablespace full
    8020,  # TiDB: somebody has locked the table
    8229,  # a transaction lived longer than max-txn-ttl
    8252, 8253, 8254,  # a resource group has used up what it may
    9001,  # PD does not answer in time
    9002,  # TiKV does not answer in time
    9003,  # TiKV is busy
    9005,  # a region is not available
    9006,  # a transaction is older than what is kept
    9008,  # TiKV has reached its limit of requests
    9010,  # TiKV had a stale command
    9011,  # TiKV has no current time yet
}  # fmt: skip
"""Errors that come from the server's state, not from the statement."""


def target_error(number: int, text: str, sql: str, where: str, max_packet: int) -> TargetError:
    """The error for a statement that the server refused, or did not answer.

    Args:
        number: The server's, or the client's.
        text: What it says.
        sql: The statement.
        where: Host and port of the server.
        max_packet: Bytes of the largest statement that it takes.
    """
    size = len(sql.encode())
    # The server hangs up in the middle of a packet that is too large. One byte of the packet is the
    # command.
    if number in LOST | {PACKET_TOO_LARGE} and size + 1 >= max_packet:
        return TargetError(
            f"a statement of {size} bytes, perhaps of one row, is larger than"
            f" max_allowed_packet of the target, {max_packet} [{PACKET_TOO_LARGE}]",
            number=PACKET_TOO_LARGE,
            statement=sql[:2_000],
            hint=f"raise max_allowed_packet on the target {where}",
            code="SM-3102",
        )
    return TargetError(
        f"{text} [{number}]",
        number=number,
        statement=sql[:2_000],
        retryable=number in RETRYABLE,
        hint=f"check the target {where}" if number in LOST else "",
        code="SM-3111" if number in LOST else "SM-3101",
    )
