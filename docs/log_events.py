"""The log events of all processes: what the code logs, and what ``log_events.toml`` says of it.

A log call is a call of a level's method on ``log``, the logger of a module. Its first argument is
the event, a literal ``noun_verb``; every other argument is a field, given by name. Then the events
and their fields can be read off the source text, and none can be missed:
``tests/unit/docs/test_log_events.py`` fails where a call is otherwise.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("agents", "cli", "connectors", "local", "schemas", "spark_sink")
MEANINGS = Path(__file__).with_name("log_events.toml")
LEVELS = {
    "debug": "debug", "info": "info", "warning": "warning", "warn": "warning", "error": "error",
    "exception": "error", "critical": "critical", "fatal": "critical", "log": "by call",
}  # fmt: skip
NAME = re.compile(r"[a-z]+(_[a-z]+)+")
_LOGGERS = re.compile(r"_?(log|logger|logging)", re.IGNORECASE)
FORM = ("connectors/event_log.py", "connectors/log_lines.py")
"""What logs there is how logging works."""


class UnclearCall(Exception):
    """A log call whose event or fields cannot be read off the source text."""


@dataclass(frozen=True, order=True, slots=True)
class Event:
    """One event, as one call logs it.

    Attributes:
        name: A noun and what happened to it.
        package: Whose code logs it.
        fields: Names, in the order of the call.
    """

    name: str
    package: str
    level: str
    fields: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Meanings:
    """What the page says.

    Attributes:
        events: Event → what it means.
        fields: Field → what its value is.
    """

    events: dict[str, str]
    fields: dict[str, str]


def logged_events() -> list[Event]:
    """Every event of every log call of the tree, by name.

    Raises:
        UnclearCall: A call does not have the form that the module's first lines say.
    """
    found = set()
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            name = path.relative_to(ROOT).as_posix()
            if name not in FORM:
                found |= set(events_in(path.read_text(encoding="utf-8"), name))
    return sorted(found)


def events_in(text: str, path: str) -> Iterator[Event]:
    """The events of one module's text; ``path`` names it, the package first."""
    package = path.partition("/")[0]
    for call in ast.walk(ast.parse(text)):
        if isinstance(call, ast.Call) and (level := _level(call)):
            place = f"{path}:{call.lineno}"
            if any(keyword.arg is None for keyword in call.keywords):
                raise UnclearCall(f"{place}: fields are given one by one")
            fields = tuple(str(keyword.arg) for keyword in call.keywords)
            if len(call.args) != 1:
                raise UnclearCall(f"{place}: the event is the only argument without a name")
            for name in _names(call.args[0], place):
                if not NAME.fullmatch(name):
                    raise UnclearCall(f"{place}: {name!r} is not a noun_verb")
                yield Event(name, package, level, fields)


def meanings() -> Meanings:
    """What ``log_events.toml`` says."""
    said = tomllib.loads(MEANINGS.read_text(encoding="utf-8"))
    return Meanings(said["events"], said["fields"])


def _level(call: ast.Call) -> str | None:
    """The level, if the call logs: ``log.info(…)``, ``self.log.info(…)``."""
    method = call.func
    if not isinstance(method, ast.Attribute) or method.attr not in LEVELS:
        return None
    on = method.value
    if isinstance(on, ast.Call) and isinstance(on.func, ast.Attribute):
        on = on.func.value  # log.bind(…).info(…)
    name = on.attr if isinstance(on, ast.Attribute) else on.id if isinstance(on, ast.Name) else ""
    return LEVELS[method.attr] if _LOGGERS.fullmatch(name) else None


def _names(argument: ast.expr, place: str) -> Iterator[str]:
    """The events that an argument can be: a literal, or one of two."""
    match argument:
        case ast.Constant(value=str(name)):
            yield name
        case ast.IfExp(body=body, orelse=other):
            yield from _names(body, place)
            yield from _names(other, place)
        case _:
            raise UnclearCall(f"{place}: the event is no literal")
