"""Staged snapshots: no reader sees one until a commit makes it the table's current snapshot.

This is Iceberg's write-audit-publish: while ``spark.wap.id`` is set, a write only makes a snapshot
with that id. A MERGE always does so. A DELETE of whole files does not, because Iceberg's
``SparkTable.deleteWhere`` commits by itself; so the sink uses no DELETE.

Source: Iceberg documentation, "Branching and Tagging" (write-audit-publish).
"""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from .tables import CONFLICTS_OF_MERGE, IcebergTable, Moved, translated

_WAP_ID = "spark.wap.id"


def new_id() -> str:
    """An id to stage under."""
    return f"shardmerge-{uuid4()}"


def stage(session: Any, staged_as: str, sql: str, what: str) -> None:
    """Run a MERGE that stages a snapshot under an id; if it changes nothing, there may be none.

    Args:
        session: Spark's; nothing else writes through it meanwhile.
        staged_as: The id.
        sql: The MERGE.
        what: What is being done, for error messages.

    Raises:
        Moved: Somebody else changed the same rows.
        TargetError: Spark refuses it, or it cannot be executed now (``retryable``).
    """
    session.conf.set(_WAP_ID, staged_as)
    try:
        with translated(what, conflicts=CONFLICTS_OF_MERGE):
            session.sql(sql)
    finally:
        session.conf.unset(_WAP_ID)


def publishable(table: IcebergTable, staged_as: str) -> int | None:
    """The snapshot that was staged under an id; None when there is none.

    Raises:
        Moved: Its parent is not the table's current snapshot.
    """
    staged = table.staged(staged_as)
    if staged is None:
        return None
    snapshot, parent = staged
    if parent != table.snapshot_id:
        raise Moved
    return snapshot
