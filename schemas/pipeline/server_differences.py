"""What the pipeline file says of a server, and how the server differs from it. Pure.

The grammar reads a source's DDL as the pipeline file describes its server, and the target's
statements are written for the kind and version that it names. If a server is not as described, DDL
would be read or written wrongly, without an error. So the connectors' deployment, the sink and
``shardmerge check`` compare server and file, by ``VERSION()``, ``sql_mode``,
``lower_case_table_names`` and ``explicit_defaults_for_timestamp``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from shardmerge.schemas.model.errors import ConfigError
from shardmerge.schemas.model.server_context import COMBINED_MODES, ServerContext
from shardmerge.schemas.model.server_facts import kind_and_version

from .settings import Source, Target

READING_MODES = (
    "ANSI_QUOTES", "NO_BACKSLASH_ESCAPES", "PIPES_AS_CONCAT", "IGNORE_SPACE", "REAL_AS_FLOAT",
    "HIGH_NOT_PRECEDENCE", "ORACLE",
)  # fmt: skip
"""SQL modes that change what a statement means."""
_OTHER_VERSION, _OTHER_MODE, _OTHER_NAMES = "SM-6105", "SM-6106", "SM-6113"
_OTHER_TIMESTAMPS = "SM-6115"


@dataclass(frozen=True, slots=True)
class ServerDifference:
    """One difference.

    Attributes:
        seen: What the server says, and what the pipeline file says.
        change: What to write into the pipeline file.
        fault: Whether DDL would be read or written wrongly; else it is something to know.
        code: See ``schemas.codes``.
    """

    seen: str
    change: str
    code: str
    fault: bool = True

    def __str__(self) -> str:
        return f"{self.seen}; {self.change}"


def source_differences(
    source: Source, version: str, sql_mode: str, names: str = "", timestamps: str = ""
) -> list[ServerDifference]:
    """How a source's server differs.

    Args:
        source: As the pipeline file describes it.
        version: ``VERSION()``; "" when it is not known.
        sql_mode: The server's global ``sql_mode``.
        names: Its ``lower_case_table_names``; "" when it is not known.
        timestamps: Its ``explicit_defaults_for_timestamp``; "" when it is not known.
    """
    found = _version_differences("flavour", source.flavour, source.version, version, digits=2)
    found += _mode_differences(source.sql_mode, sql_mode)
    found += _name_differences(source.lower_case_table_names, names)
    return [*found, *_timestamp_differences(source, timestamps)]


def target_differences(target: Target, version: str) -> list[ServerDifference]:
    """How the target's server differs; ``version`` as for ``source_differences``."""
    return _version_differences("kind", target.kind, target.version, version, digits=3)


def refuse_differences(where: str, differences: Sequence[ServerDifference]) -> None:
    """Raise one ``ConfigError`` that names all faults among the differences.

    Args:
        where: Which server, for the message.
        differences: Of this server.
    """
    if faults := [each for each in differences if each.fault]:
        raise ConfigError(
            f"{where} is not the server that the pipeline file describes: "
            + "; ".join(each.seen for each in faults),
            hint="; ".join(dict.fromkeys(each.change for each in faults)),
            code="SM-5106",
        )


def version_numbers(version: str) -> tuple[int, ...]:
    """The numbers that a version begins with; empty for none."""
    found = re.match(r"\d+(?:\.\d+)*", version)
    return tuple(int(number) for number in found[0].split(".")) if found else ()


def _version_differences(
    key: str, kind: str, version: str, real: str, *, digits: int
) -> list[ServerDifference]:
    """Whether a server is of the kind and version that the pipeline file says.

    ``digits``: how many numbers of the version count.
    """
    is_a, have = kind_and_version(real)
    if not real:
        return []
    numbers = ".".join(map(str, have))
    if is_a != kind:
        seen = f"it is {is_a} {real}, the pipeline file says {kind}"
        change = f'set {key} = "{is_a}" and version = "{numbers}"'
        return [ServerDifference(seen, change, _OTHER_VERSION)]
    told = version_numbers(version)
    same = min(len(told), digits)
    if have[:same] == told[:same]:
        return []
    seen = f"it is {kind} {real}, the pipeline file says {version}: DDL differs"
    fault = have[:2] != told[:2] or have < told
    return [ServerDifference(seen, f'set version = "{numbers}"', _OTHER_VERSION, fault)]


def _mode_differences(told: str, real: str) -> list[ServerDifference]:
    """SQL modes that change what a statement means and differ from the pipeline file."""
    sets = [
        {mode for part in text.split(",") if (mode := part.strip().upper())}
        for text in (told, real)
    ]
    for modes in sets:
        if modes & COMBINED_MODES:
            modes |= {"ANSI_QUOTES", "PIPES_AS_CONCAT", "IGNORE_SPACE"}
        if "ANSI" in modes:
            modes.add("REAL_AS_FLOAT")
    right = ",".join(mode for mode in READING_MODES if mode in sets[1])
    return [
        ServerDifference(
            f"sql_mode {mode} is {'on' if mode in sets[1] else 'off'} on the server, the pipeline "
            f"file says {'on' if mode in sets[0] else 'off'}: statements would be read wrongly",
            f'set sql_mode = "{right}"',
            _OTHER_MODE,
        )
        for mode in READING_MODES
        if mode in sets[0] ^ sets[1]
    ]


def _name_differences(told: int, real: str) -> list[ServerDifference]:
    """Whether the server compares the names of tables as the pipeline file says."""
    if not real or bool(told) == (real != "0"):
        return []
    seen = f"lower_case_table_names is {real}, the pipeline file says {told}: "
    if told:
        seen += "tables whose names differ only in case would be one"
    else:
        seen += (
            "a statement that writes a table's name in upper case would not be read as one of it"
        )
    # Most statements write names as they are stored, and the others hold their shards.
    change = f"set lower_case_table_names = {real}"
    return [ServerDifference(seen, change, _OTHER_NAMES, fault=bool(told))]


def _timestamp_differences(source: Source, real: str) -> list[ServerDifference]:
    """Whether the server makes TIMESTAMP columns NOT NULL as the pipeline file says."""
    told = "ON" if server_context(source).has_explicit_timestamps else "OFF"
    is_on = "ON" if real.upper() in ("ON", "1") else "OFF"
    if not real or told == is_on:
        return []
    why = "the pipeline file says" if source.explicit_defaults_for_timestamp else "by its version"
    seen = (
        f"explicit_defaults_for_timestamp is {is_on}, {why} {told}: a TIMESTAMP column that says "
        "neither NULL nor NOT NULL would be taken for another one"
    )
    change = f"set explicit_defaults_for_timestamp = '{is_on}'"
    return [ServerDifference(seen, change, _OTHER_TIMESTAMPS)]


def server_context(source: Source) -> ServerContext:
    """What the grammar must know about a source's server.

    Raises:
        ConfigError: The version is not numbers with points.
    """
    numbers = source.version.split(".")
    if not all(number.isdigit() for number in numbers):
        raise ConfigError(
            f"source {source.name}: version {source.version!r} is not numbers with points",
            hint="SELECT VERSION() tells it; write it without what follows the numbers",
            code="SM-5004",
        )
    return ServerContext(
        flavour=source.flavour,
        version=tuple(int(number) for number in numbers),
        sql_mode=frozenset(m.strip().upper() for m in source.sql_mode.split(",") if m.strip()),
        charset=source.charset,
        lower_names=source.lower_case_table_names != 0,
        explicit_timestamps={"ON": True, "OFF": False}.get(source.explicit_defaults_for_timestamp),
    )


def server_contexts(sources: Iterable[Source]) -> dict[str, ServerContext]:
    """Source → what the grammar must know about its server.

    Raises:
        ConfigError: See ``server_context``.
    """
    return {source.name: server_context(source) for source in sources}


def utf8mb4_defaults(sources: Iterable[Source]) -> frozenset[str]:
    """The default collations of utf8mb4 on the servers of some sources.

    These are the defaults of the servers' versions. (On a server with another default, tables get
    collations that the statements do not show; `shardmerge check` reports such a server.)

    Raises:
        ConfigError: See ``server_context``.
    """
    return frozenset(server_context(source).default_collation("utf8mb4") for source in sources)
