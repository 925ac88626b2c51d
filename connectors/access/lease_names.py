"""The named locks on a MySQL, MariaDB or TiDB target that tell which sink writes, and which wait.

Whoever can ask the server can see where these sinks run.

Source: MySQL Reference Manual, "Locking Functions": a name has at most 64 characters, belongs to
the whole server, and its lock ends with the connection.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from shardmerge.schemas.pipeline.settings import Pipeline

STANDBYS = 8
"""So many waiting sinks are shown; more may wait."""
SESSIONS = 256
"""So many sessions of a pipeline's sinks can be found by their locks."""
_MARKS_TRIED = 8
NO_FUNCTION = 1305
"""A server's error when it has no function of that name."""


@dataclass(frozen=True, slots=True)
class Sinks:
    """Where a pipeline's sinks run, as the target's server sees them.

    Attributes:
        writer: Host of the sink that has the lease, "unknown" if the server does not tell it; ""
            when no sink has it.
        standbys: Hosts of sinks that wait, likewise.
    """

    writer: str = ""
    standbys: tuple[str, ...] = ()


def lease_name(control_database: str, pipeline: str) -> str:
    """The lock of the sink that writes."""
    digest = sha256(f"{control_database}\0{pipeline}".encode()).hexdigest()
    return f"shardmerge.{digest[:40]}"


def standby_names(control_database: str, pipeline: str) -> tuple[str, ...]:
    """The locks of waiting sinks: each takes the first that is free."""
    name = lease_name(control_database, pipeline)
    return tuple(f"{name}.{number}" for number in range(1, STANDBYS + 1))


def session_mark(control_database: str, pipeline: str) -> str:
    """The beginning of the names of locks by which the sinks' sessions are found."""
    return f"{lease_name(control_database, pipeline)}.s"


def session_names(mark: str) -> tuple[str, ...]:
    """The names: each session that writes has the lock of one of them."""
    return tuple(f"{mark}{number}" for number in range(SESSIONS))


def take_mark(
    query: Callable[[str, Sequence[object]], Sequence[tuple[Any, ...]]], mark: str
) -> None:
    """Take the lock of one of ``session_names``, if one of some of them is free.

    Args:
        query: Asks on the session.
        mark: Beginning of the names.
    """
    sql = "SELECT GET_LOCK(CONCAT(%s, (CONNECTION_ID() + %s) %% %s), 0)"
    for attempt in range(_MARKS_TRIED):
        ((got,),) = query(sql, (mark, attempt, SESSIONS))
        if got == 1:
            return


def names_of(pipeline: Pipeline) -> tuple[str, tuple[str, ...]]:
    """The lock of a pipeline's writer, and those of its standbys."""
    of = pipeline.target.control_database, pipeline.name
    return lease_name(*of), standby_names(*of)


def sinks_at(
    query: Callable[[str, Sequence[object]], Sequence[tuple[Any, ...]]],
    lease: str,
    standby_names: Sequence[str],
) -> Sinks:
    """Where the sink runs that has the writer's lease, and where standbys wait.

    Args:
        query: Asks the target's server, and raises its client's error. Earlier versions of TiDB
            answer with the error ``NO_FUNCTION``: they lack IS_USED_LOCK.
        lease: Name of the lock of the sink that writes.
        standby_names: Names of the locks of sinks that wait.

    Source: MySQL Reference Manual and TiDB documentation, "Locking Functions".
    """
    names = (lease, *standby_names)
    locks = ", ".join(["IS_USED_LOCK(%s)"] * len(names))
    ((*holders, version),) = query(f"SELECT {locks}, VERSION()", names)
    if not any(holders):
        return Sinks()
    hosts: dict[int, str] = {}
    if "TiDB" not in str(version):  # which says 1 for each lock of another session
        found = query(
            "SELECT ID, HOST FROM information_schema.PROCESSLIST WHERE ID IN %s",
            ([holder for holder in holders if holder],),
        )
        hosts = {int(number): str(host).rpartition(":")[0] for number, host in found}
    writer, *standbys = (hosts.get(int(h), "unknown") if h else "" for h in holders)
    return Sinks(writer, tuple(host for host in standbys if host))
