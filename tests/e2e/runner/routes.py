"""Which shards a scenario's route names, in whatever words it says so."""

from __future__ import annotations

import fnmatch
import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Route:
    """Which tables are merged.

    Attributes:
        databases: The shards' databases, as the file names them.
        tables: Regular expression of their tables' names.
        is_usual: Whether the rules that all scenarios share do for it.
    """

    databases: tuple[str, ...]
    tables: str
    is_usual: bool


USUAL = Route(("app1", "app2"), "t_.*", is_usual=True)
_TEXT = re.compile(
    r"(?P<from>.+?)(?:\s+(?:of|on|from)\s+(?:every|each|all|any)\s+sources?)?"
    r"\s*(?:->|=>|→|\binto\b)\s*(?P<to>\S+)"
)


def read_route(text: str, tables: list[tuple[str, str]]) -> tuple[Route, str]:
    """A route and its target, from ``app1.t_*, app2.t_? of every source -> merged.t``.

    Patterns may use ``*``, ``?``, ``[…]`` or ``%``. One without a database, or with a wildcard for
    it, is of every database in which the scenario has shards.

    Args:
        text: Of the file.
        tables: (database, table) of the scenario's shards.

    Raises:
        ValueError: The text is no route.
    """
    found = _TEXT.fullmatch(" ".join(text.split()))
    if found is None:
        raise ValueError(f"route {text!r} is not like `app1.t_* of every source -> merged.t`")
    databases: dict[str, None] = {}
    patterns: dict[str, None] = {}
    for written in re.split(r"\s*,\s*|\s+and\s+", found["from"]):
        pattern = written.replace("`", "").replace("%", "*")
        database, dot, table = pattern.rpartition(".")
        wanted = database if dot else "*"
        known = {name for name, _ in tables if fnmatch.fnmatchcase(name, wanted)}
        if not known and not re.search(r"[*?\[]", wanted):
            known = {wanted}
        databases |= dict.fromkeys(sorted(known))
        patterns[_regex(table)] = None
    if not databases:
        raise ValueError(f"route {text!r} names the database of no shard")
    target = found["to"].replace("`", "")
    usual = set(databases) <= set(USUAL.databases) and list(patterns) == [_regex("t_*")]
    if usual and target == "merged.t":
        return USUAL, target
    return Route(tuple(databases), "|".join(patterns), is_usual=False), target


def _regex(wildcard: str) -> str:
    """A wildcard as a regular expression for a whole name."""
    pieces = re.split(r"(\*|\?|\[[^\]]*\])", wildcard)
    signs = {"*": ".*", "?": "."}
    return "".join(signs.get(p, p if p.startswith("[") else re.escape(p)) for p in pieces)
