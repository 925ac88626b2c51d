"""Functions that read values from their plain form, one for each type. Pure."""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from functools import cache
from typing import Any, Union, get_args, get_origin

from shardmerge.schemas.model.frozen import slot_setters

from .plain_fields import alternatives, flat_defaults, plain_fields

_EXACT = (str, int, bool)


@cache
def reader(kind: Any) -> Callable[[Any], Any]:
    """The function that reads a value of a type from its plain form.

    The function raises TypeError, KeyError, ValueError or AttributeError if the data does not fit.
    """
    origin = get_origin(kind)
    if records := alternatives(kind):
        return _named_reader(records)
    if origin in (Union, types.UnionType):
        members = [m for m in get_args(kind) if m is not type(None)]
        if len(members) != 1:
            raise TypeError(f"{kind} is ambiguous in plain form")
        inner = reader(members[0])
        return lambda plain: None if plain is None else inner(plain)
    if origin is tuple:
        arguments = get_args(kind)
        if len(arguments) == 2 and arguments[1] is Ellipsis:
            item = reader(arguments[0])
            return lambda plain: tuple([item(p) for p in plain])
        items = [reader(a) for a in arguments]
        return lambda plain: tuple([read(p) for read, p in zip(items, plain, strict=True)])
    if origin is not None and issubclass(origin, Mapping):
        item = reader(get_args(kind)[1])
        return lambda plain: {key: item(p) for key, p in plain.items()}
    if is_dataclass(kind):
        return _record_reader(kind)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return kind
    if kind in _EXACT:
        return _exactly(kind)
    raise TypeError(f"{kind} has no plain form")


def _named_reader(records: tuple[type, ...]) -> Callable[[Any], Any]:
    readers = {cls.__name__: _record_reader(cls) for cls in records}

    def read(plain: Any) -> Any:
        # Avro's reader gives a pair: (full name, value).
        ((name, item),) = [plain] if isinstance(plain, tuple) else plain.items()
        return readers[name.rpartition(".")[2]](item)

    return read


def _record_reader(cls: Any) -> Callable[[Any], Any]:
    def read(plain: Any) -> Any:
        # Looked for at the first record: a record may hold itself.
        return _written_reader(cls)(plain)

    return read


@cache
def _written_reader(cls: Any) -> Callable[[Any], Any]:
    """A function with one line for each field: this is the agents' most frequent work.

    It is for values with all fields, as nearly all have them; others are read field by field.
    """
    found = plain_fields(cls)
    checked = _checked_reader(cls)
    setters = slot_setters(cls)
    if setters is None or flat_defaults(cls) or not all(field.init for field in fields(cls)):
        return checked
    scope: dict[str, Any] = {"new": object.__new__, "kind": cls, "checked": checked}
    scope |= {"names": {field.name for field in found}, "dict": dict}
    lines = [
        "def read(plain):",
        "    if plain.__class__ is not dict or plain.keys() != names:",
        "        return checked(plain)",
        "    value = new(kind)",
    ]
    for number, field in enumerate(found):
        scope |= {f"set_{number}": setters[field.name], f"read_{number}": reader(field.kind)}
        item = f"plain[{field.name!r}]"
        if field.kind in _EXACT:
            # A call for each text costs more than all else.
            lines.append(f"    if {item}.__class__ is not {field.kind.__name__}:")
            lines.append(f"        read_{number}({item})")
            lines.append(f"    set_{number}(value, {item})")
        else:
            lines.append(f"    set_{number}(value, read_{number}({item}))")
    exec("\n".join([*lines, "    return value"]), scope)  # noqa: S102 -- of field names alone
    read: Callable[[Any], Any] = scope["read"]
    return read


def _checked_reader(cls: Any) -> Callable[[Any], Any]:
    readers = {field.name: (field.path, reader(field.kind)) for field in plain_fields(cls)}
    flat = flat_defaults(cls)

    def read(plain: Any) -> Any:
        if not isinstance(plain, dict):
            raise TypeError(f"{cls.__name__} must be a record, not {type(plain).__name__}")
        if unknown := plain.keys() - readers.keys():
            raise TypeError(f"{cls.__name__} has no field {min(unknown)!r}")
        if not flat:
            return cls(**{name: readers[name][1](item) for name, item in plain.items()})
        values: dict[str, Any] = {}
        inner: dict[str, dict[str, Any]] = {name: {} for name in flat}
        for name, item in plain.items():
            path, reader = readers[name]
            owner, _, rest = path.partition(".")
            if rest:
                inner[owner][rest] = reader(item)
            else:
                values[name] = reader(item)
        return cls(**values, **{n: replace(default, **inner[n]) for n, default in flat.items()})

    return read


def _exactly(kind: type) -> Callable[[Any], Any]:
    def read(plain: Any) -> Any:
        if type(plain) is not kind:
            raise TypeError(f"expected {kind.__name__}, not {plain!r}")
        return plain

    return read
