"""The log events of the processes, as their source text has them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ROOMS = ("agents", "connectors", "spark_sink")
_LEVELS = ("info", "warning", "error", "exception")
_LOGGERS = ("log", "_LOG")


@dataclass(frozen=True, order=True, slots=True)
class Event:
    """One event.

    Attributes:
        name: The words before the first fact.
        room: The package that logs it.
        facts: Names of the facts that stand in the call itself.
    """

    name: str
    room: str
    level: str
    facts: tuple[str, ...]


def event_rows() -> list[Event]:
    """Every event of the long-running processes, by name."""
    found = set()
    for room in ROOMS:
        for path in (ROOT / room).rglob("*.py"):
            found |= set(_events(room, ast.parse(path.read_text(encoding="utf-8"))))
    return sorted(found)


def _events(room: str, tree: ast.Module) -> Iterator[Event]:
    for call in ast.walk(tree):
        if (
            isinstance(call, ast.Call)
            and isinstance(call.func, ast.Attribute)
            and call.func.attr in _LEVELS
            and isinstance(call.func.value, ast.Name)
            and call.func.value.id in _LOGGERS
            and call.args
        ):
            level = "error" if call.func.attr == "exception" else call.func.attr
            for text in _texts(call.args[0]):
                name = re.split(r" ?\w*=?%", text)[0].strip()
                facts = (*re.findall(r"(\w+)=%", text), *_extra(call))
                if name:
                    yield Event(name, room, level, facts)


def _texts(argument: ast.expr) -> Iterator[str]:
    if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
        yield argument.value
    elif isinstance(argument, ast.IfExp):
        yield from _texts(argument.body)
        yield from _texts(argument.orelse)


def _extra(call: ast.Call) -> tuple[str, ...]:
    for keyword in call.keywords:
        if keyword.arg == "extra" and isinstance(keyword.value, ast.Dict):
            keys = keyword.value.keys
            return tuple(str(key.value) for key in keys if isinstance(key, ast.Constant))
    return ()
