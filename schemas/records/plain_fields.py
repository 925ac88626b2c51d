"""The fields of a record's plain form, and the function that makes it. Pure.

A field with the metadata ``FLAT`` holds an inner record. In the plain form, the fields of the inner
record are beside the fields of the outer one.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from typing import Any, Union, get_args, get_origin, get_type_hints

FLAT: Mapping[str, bool] = {"flat": True}
"""Metadata of a dataclass field whose value is a record that is written field by field. The field
must have a default: values that the plain form lacks are taken from it."""


@dataclass(frozen=True, slots=True)
class PlainField:
    """One field of a record's plain form.

    Attributes:
        name: Its name in the plain form.
        path: The attributes that lead from the record to the value, joined by dots.
        kind: The value's type.
    """

    name: str
    path: str
    kind: Any


@cache
def plain_fields(cls: type) -> tuple[PlainField, ...]:
    """The fields of a dataclass's plain form, in order."""
    hints = get_type_hints(cls)
    found: list[PlainField] = []
    for field in fields(cls):
        kind = hints[field.name]
        if field.metadata.get("flat"):
            found += [
                PlainField(part.name, f"{field.name}.{part.path}", part.kind)
                for part in plain_fields(kind)
            ]
        else:
            found.append(PlainField(field.name, field.name, kind))
    return tuple(found)


def flat_defaults(cls: type) -> dict[str, Any]:
    """The fields of a dataclass that have the metadata ``FLAT``, with their defaults."""
    return {f.name: f.default for f in fields(cls) if f.metadata.get("flat")}


def alternatives(kind: Any) -> tuple[type, ...]:
    """The records that a field of this type can hold; empty when it can hold only one type."""
    if get_origin(kind) not in (Union, types.UnionType):
        return ()
    members = tuple(m for m in get_args(kind) if m is not type(None))
    return members if len(members) > 1 and all(map(is_dataclass, members)) else ()


def record_writer(
    fields: Iterable[PlainField], writer: Callable[[Any], Callable[[Any], Any] | None]
) -> Callable[[Any], dict[str, Any]]:
    """The function that turns a record into a dict of plain fields.

    It has one expression for each field: such functions are the agents' most frequent work.

    Args:
        fields: Of the record's class, all of them or some.
        writer: Gives, for a field's type, the function that converts its value; None for a value
            that stays as it is.
    """
    scope: dict[str, Any] = {}
    items = []
    for number, field in enumerate(fields):
        value = f"record.{field.path}"
        if (write := writer(field.kind)) is not None:
            scope[f"write_{number}"] = write
            value = f"write_{number}({value})"
        items.append(f"{field.name!r}: {value}")
    text = f"def made(record): return {{{', '.join(items)}}}"
    exec(text, scope)  # noqa: S102 -- of field names alone
    made: Callable[[Any], dict[str, Any]] = scope["made"]
    return made
