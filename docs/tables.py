"""Tables of Markdown from dataclasses, docstrings and values. Pure."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator
from dataclasses import MISSING, dataclass, fields, is_dataclass
from typing import Any

_ENTRY = re.compile(r"\n {4}(?=\w[\w, ]*:)")


@dataclass(frozen=True, slots=True)
class Key:
    """One key of the pipeline file."""

    name: str
    type: str
    default: str
    meaning: str


def attributes(record: type) -> dict[str, str]:
    """The meaning of each field, from the ``Attributes`` section of a class's docstring."""
    text = inspect.cleandoc(record.__doc__ or "")
    section = text.partition("Attributes:\n")[2].partition("\n\n")[0]
    found = {}
    for entry in _ENTRY.split(f"\n{section}")[1:]:
        names, _, meaning = entry.partition(":")
        for name in names.split(","):
            found[name.strip()] = re.sub(r" See `[\w.]+`\.", "", markdown(meaning))
    return found


def markdown(text: str) -> str:
    """A docstring's text as one line of Markdown, for a cell of a table."""
    return " ".join(text.split()).replace("``", "`").replace("|", "\\|").replace('""', '`""`')


def first_paragraph(documented: object) -> str:
    """The first paragraph of a docstring."""
    return markdown((inspect.getdoc(documented) or "").partition("\n\n")[0])


def value_text(value: Any) -> str:
    """A default as the pipeline file writes it."""
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if value == ():
        return "none"
    return f"`{value}`" if isinstance(value, int) else f'`"{value}"`'.replace("|", "\\|")


def table(head: str, rows: Iterable[tuple[str, ...]]) -> str:
    """Rows as a table of Markdown; ``head`` names the columns, with bars between them."""
    lines = [f"| {head} |", "|" + "---|" * (head.count("|") + 1)]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])


def key_table(keys: list[Key]) -> str:
    """Keys as a table."""
    rows = [(f"`{key.name}`", key.type, key.default, key.meaning) for key in keys]
    return table("key | type | default | meaning", rows)


def record_keys(record: Any, left_out: tuple[str, ...] = ()) -> list[Key]:
    """The keys of a table that is read into one dataclass."""
    meanings = attributes(record)
    keys = []
    for each in fields(record):
        if each.name not in left_out:
            is_table = each.type in ("Tls", "Properties")
            default = "required"
            if is_table:
                default = "none"
            elif each.default is not MISSING:
                default = value_text(each.default)
            kind = "table" if is_table else f"{each.type}".replace("tuple[str, ...]", "list of str")
            keys.append(Key(each.name, kind, default, meanings[each.name]))
    return keys


def parts_of(record: Any) -> Iterator[Any]:
    """A record, and the records in its fields."""
    yield record
    for each in fields(record):
        value = getattr(record, each.name)
        if is_dataclass(value):
            yield from parts_of(value)
