"""How one worker runs: environment and arguments as one frozen value."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from shardmerge.schemas.model.errors import ConfigError

PREFIX = "SHARDMERGE_AGENTS_"


@dataclass(frozen=True, slots=True)
class AgentSettings:
    """Settings of one worker; what all processes must agree on is in the pipeline file.

    Attributes:
        data_directory: Where the RocksDB tables are. Two workers never share one.
        web_host, web_port: Where the pages are served. Everybody may read them: another host than
            the loopback is for closed networks only. The table ``[web]`` of the pipeline file says
            who may give commands.
        session_timeout_s: After this long without a heartbeat a dead worker's partitions go to
            another one, or to its restart. With less than 6 a worker that was cut off from the
            network could write when it is back.
        commit_interval_s: Pause between commits of what was acknowledged. What was not committed
            is recognised as repeated after a crash.
        table_copies: 1: the worker copies the tables of other workers, and takes over without
            reading a whole changelog. 0: it does not.
        log_level: From which level on log records count: ``DEBUG``, ``INFO``, ``WARNING`` or
            ``ERROR``.
        failpoint: Where the worker kills itself, for tests: ``<place>:<passing>``.
    """

    data_directory: Path = Path("shardmerge-agents")
    web_host: str = "127.0.0.1"
    web_port: int = 6066
    session_timeout_s: int = 6
    commit_interval_s: int = 2
    table_copies: int = 1
    log_level: str = "INFO"
    failpoint: str = ""


def from_env(env: Mapping[str, str]) -> AgentSettings:
    """Read ``SHARDMERGE_AGENTS_<FIELD>``.

    Raises:
        ConfigError: A name is unknown, or a value is not of its field's type.
    """
    readers: dict[str, Callable[[str], Any]] = {"Path": Path, "str": str, "int": _integer}
    kinds = {f.name: readers[str(f.type)] for f in fields(AgentSettings)}
    values: dict[str, Any] = {}
    for name, text in sorted(env.items()):
        if not name.startswith(PREFIX):
            continue
        field = name.removeprefix(PREFIX).lower()
        if field not in kinds:
            known = ", ".join(PREFIX + f.upper() for f in kinds)
            raise ConfigError(
                f"environment variable {name} is not known", hint=f"known: {known}", code="SM-5501"
            )
        try:
            values[field] = kinds[field](text)
        except ValueError as error:
            raise ConfigError(f"environment variable {name}: {error}", code="SM-5501") from None
    return replace(AgentSettings(), **values)


def _integer(text: str) -> int:
    if not text.isdecimal():
        raise ValueError(f"{text!r} is not a whole number")
    return int(text)
