"""The lock for the DDL of one target. The sink, ``shardmerge drift heal`` and ``cutover`` take it.

It is a named lock of the server (``GET_LOCK``). If the connection is lost while a statement runs,
the server holds the lock until it has ended the statement.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager

from shardmerge.schemas.model.errors import TargetError
from shardmerge.schemas.model.names import TargetTable
from shardmerge.spark_sink.targets.mysql.session import MySqlSession

from .introspection import unfinished_job


def lock_name(pipeline: str, target: TargetTable) -> str:
    """The name of the lock under which a pipeline executes DDL on a target."""
    digest = hashlib.sha256(f"{pipeline} {target}".encode()).hexdigest()[:32]
    return f"shardmerge-ddl-{digest}"


@contextmanager
def ddl_lock(
    session: MySqlSession, pipeline: str, target: TargetTable, wait_s: int
) -> Iterator[None]:
    """Hold the lock while the body runs.

    Args:
        session: The session that holds the lock.
        pipeline: The pipeline's name.
        target: The table.
        wait_s: Longest wait for it, in seconds.

    Raises:
        TargetError: Somebody else holds it (``retryable``).
    """
    lock = lock_name(pipeline, target)
    with session.keeping():
        ((taken,),) = session.query("SELECT GET_LOCK(%s, %s)", (lock, wait_s))
        if taken != 1:
            raise TargetError(
                f"another DDL statement of this pipeline is still running on {target}",
                retryable=True,
                hint="wait for it: see SHOW PROCESSLIST there",
                code="SM-3105",
            )
        try:
            yield
        finally:
            # If the connection is lost, the server itself releases the lock after the statement.
            if session.is_open:
                session.query("SELECT RELEASE_LOCK(%s)", (lock,))


def check_no_job(session: MySqlSession, target: TargetTable) -> None:
    """Check that a TiDB has no unfinished statement on the table in its DDL queue.

    Raises:
        TargetError: It has one (``retryable``), so the table's final schema is not known yet.
    """
    if not session.is_tidb:
        return
    job = unfinished_job(session, target)
    if job:
        raise TargetError(
            f"TiDB is still executing a statement on {target} whose session is gone: {job}",
            retryable=True,
            hint="wait for it: see ADMIN SHOW DDL JOBS on the target",
            code="SM-3105",
        )
