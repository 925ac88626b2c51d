"""Servers of other versions and flavours as sources: with a binlog, and with GTIDs or without."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from shardmerge.local.install.artifacts import DEFAULT_CACHE, resolve
from shardmerge.schemas.model.errors import StackError

from .mysql import mysql_spec, prepare_data
from .other_versions import NAMES, initialise, provide, server_spec
from .processes import ProcessSpec

Say = Callable[[str], None]


def source_spec(
    name: str,
    process: str,
    directory: Path,
    port: int,
    server_id: int,
    *,
    gtid: bool = True,
    cache: Path = DEFAULT_CACHE,
    say: Say = lambda _: None,
) -> ProcessSpec:
    """The process of a server that writes a binlog, for ``LocalStack.add``.

    Args:
        name: One of ``NAMES``.
        process: Name of the process.
        directory: For its data, which is made if it is missing.
        port: On 127.0.0.1.
        server_id: Unique among servers and connectors.
        gtid: Whether transactions have GTIDs from the start. MariaDB's always have.
        cache: Where programs are kept.
        say: Called with a line of progress.

    Raises:
        StackError: There is no server of that name, or it could not be had.
    """
    if name not in NAMES:
        raise StackError(f"no server {name!r}", hint=f"one of {', '.join(NAMES)}", code="SM-4610")
    directory = directory.absolute()
    data = directory / "data"
    mode = "ON" if gtid else "OFF"
    gtids = (f"--gtid-mode={mode}", f"--enforce-gtid-consistency={mode}")
    if name == "mysql80":
        artifacts = resolve(cache, say)
        prepare_data(artifacts, data)
        spec = mysql_spec(artifacts, process, data, port, server_id, binlog=True)
        return replace(spec, argv=(*spec.argv, *gtids))
    program = provide(name, cache, say)
    initialise(program, directory, data)
    spec = server_spec(program, directory, data, port)
    kept = tuple(option for option in spec.argv if option != "--skip-log-bin")
    options: tuple[str, ...] = (
        f"--server-id={server_id}",
        "--log-bin=binlog",
        "--binlog-row-image=FULL",
    )
    options += ("--binlog-format=ROW",) if name == "mysql57" or name.startswith("mariadb") else ()
    options += () if name.startswith("mariadb") else gtids
    return replace(spec, name=process, argv=(*kept, *options))
