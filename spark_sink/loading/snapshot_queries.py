"""The SQL that takes a consistent snapshot at a known position of the binlog. Pure.

A snapshot is exact for one table at any position between two others if three things are true. The
server had committed everything before the first position when the snapshot was taken. The second
position was read after the snapshot was taken. No event between the two is about the table
(``may_change``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from shardmerge.schemas.model.mysql_text import string_literal
from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.model.position import SourcePosition

from .chunk_queries import table_name

MOST_EVENTS = 20_000
"""Most events that are looked through. More come only from a server that is too busy for that."""
_HARMLESS = frozenset(
    {
        "Anonymous_Gtid", "Anonymous_GTID", "Gtid", "GTID", "Gtid_tagged", "Gtid_list",
        "Previous_gtids", "Format_desc", "Xid", "Rows_query", "Annotate_rows",
        "Write_rows", "Update_rows", "Delete_rows", "Update_rows_partial",
        "Write_rows_v1", "Update_rows_v1", "Delete_rows_v1",
        "Binlog_checkpoint", "Heartbeat",
    }
)  # fmt: skip
"""Events that name no table. Events of rows stand behind one that does."""
_TRANSACTION_ENDS = ("BEGIN", "COMMIT", "ROLLBACK")
_WITH_SNAPSHOTS = frozenset({"innodb", "rocksdb"})


def events_between(begin: SourcePosition) -> str:
    """Asks for the events of a binlog file from a position on."""
    return (
        f"SHOW BINLOG EVENTS IN {string_literal(begin.file)} FROM {begin.pos} LIMIT {MOST_EVENTS}"
    )


def may_change(
    shard: ShardId, begin: SourcePosition, end: SourcePosition, events: Sequence[Sequence[Any]]
) -> bool:
    """Whether the binlog between two positions may have something about a table.

    Args:
        shard: The table.
        begin: Where the events begin.
        end: The position up to which they count.
        events: As ``events_between`` gives them.
    """
    if begin.file != end.file:
        return True
    reached, ends = begin.pos, f"({shard.database}.{shard.table})".lower()
    for _, position, kind, _, next_position, info in events:
        if int(position) >= end.pos:
            break
        text = str(info)
        if kind == "Table_map":
            if text.lower().endswith(ends):
                return True
        elif kind == "Query":
            if text.strip() not in _TRANSACTION_ENDS:
                return True
        elif kind not in _HARMLESS:
            # For example the events of a compressed transaction, which are not shown.
            return True
        reached = int(next_position)
    return reached < end.pos


def show_commit_order() -> str:
    """Asks whether transactions are committed in the binlog's order; MariaDB has no such switch."""
    return "SHOW GLOBAL VARIABLES LIKE 'binlog_order_commits'"


def commits_in_order(rows: Sequence[Sequence[Any]]) -> bool:
    """Whether an answer to ``show_commit_order`` says so."""
    return all(str(value).upper() == "ON" for _, value in rows)


def show_place() -> str:
    """Asks for the position of the snapshot of the open transaction; MariaDB knows it."""
    return "SHOW STATUS LIKE 'binlog_snapshot_%'"


def told_place(epoch: int, rows: Sequence[Sequence[Any]]) -> SourcePosition | None:
    """The position in an answer to ``show_place``; None if the server does not know it.

    Args:
        epoch: Of the source.
        rows: The answer.
    """
    known = {str(name).lower(): str(value) for name, value in rows}
    file, position = known.get("binlog_snapshot_file"), known.get("binlog_snapshot_position")
    if not file or not position or not int(position):
        return None
    return SourcePosition(epoch, file, int(position), 0)


def lock_table(shard: ShardId) -> str:
    """Lets nobody write to a table, once all transactions that wrote to it have ended."""
    return f"LOCK TABLES {table_name(shard)} READ"


def show_engine(shard: ShardId) -> str:
    """Asks for the storage engine of a table."""
    return (
        "SELECT ENGINE FROM information_schema.TABLES"
        f" WHERE TABLE_SCHEMA = {string_literal(shard.database)}"
        f" AND TABLE_NAME = {string_literal(shard.table)}"
    )


def has_snapshots(engine: str) -> bool:
    """Whether tables of a storage engine can be read as of one moment."""
    return engine.lower() in _WITH_SNAPSHOTS
