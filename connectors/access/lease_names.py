"""The named locks on a MySQL, MariaDB or TiDB target that tell which sink writes, and which wait.

Source: MySQL Reference Manual, "Locking Functions": a name has at most 64 characters, belongs to
the whole server, and its lock ends with the connection.
"""

from __future__ import annotations

from hashlib import sha256

from shardmerge.schemas.pipeline.settings import Pipeline

STANDBYS = 8
"""So many waiting sinks are shown; more may wait."""


def lease_name(control_database: str, pipeline: str) -> str:
    """The lock of the sink that writes."""
    digest = sha256(f"{control_database}\0{pipeline}".encode()).hexdigest()
    return f"shardmerge.{digest[:40]}"


def standby_names(control_database: str, pipeline: str) -> tuple[str, ...]:
    """The locks of waiting sinks: each takes the first that is free."""
    name = lease_name(control_database, pipeline)
    return tuple(f"{name}.{number}" for number in range(1, STANDBYS + 1))


def names_of(pipeline: Pipeline) -> tuple[str, tuple[str, ...]]:
    """The lock of a pipeline's writer, and those of its standbys."""
    of = pipeline.target.control_database, pipeline.name
    return lease_name(*of), standby_names(*of)
