"""Frozen dataclasses ⇄ plain values (dict, list, str, int, bool, None) and canonical JSON.

One converter serves state in RocksDB, exports and the Avro codec. The field's type decides how a
plain value is read back. The data name a class only where a field takes one of several records:
``{"<class>": {<fields>}}``, as Avro's JSON encoding does.

A field with the metadata ``FLAT`` holds an inner record. In the plain form, the fields of the inner
record are beside the fields of the outer one.
"""

from __future__ import annotations

import json
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from enum import Enum
from functools import cache
from operator import attrgetter
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from shardmerge.schemas.model.errors import ContractError

T = TypeVar("T")

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


def to_plain(value: Any) -> Any:
    """The plain form of a value: records become dicts with every field, tuples lists."""
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, str):
        return value
    if isinstance(value, (tuple, list)):
        return [to_plain(item) for item in value]
    if isinstance(value, Mapping):
        return {key: to_plain(item) for key, item in value.items()}
    if is_dataclass(value):
        kind: Any = type(value)
        return {name: write(get(value)) for name, get, write in _writers(kind)}
    raise TypeError(f"{type(value).__name__} has no plain form")


def from_plain(cls: type[T], plain: Any) -> T:
    """Read a value of type ``cls`` back.

    Fields that the plain form lacks take their default, so that older data stays readable.

    Raises:
        ContractError: The data does not fit the type.
    """
    kind: Any = cls
    try:
        return _reader(kind)(plain)  # type: ignore[no-any-return]
    except (TypeError, KeyError, ValueError, AttributeError) as error:
        raise ContractError(f"not a {cls.__name__}: {error}", code="SM-2103") from error


def dump(value: Any) -> bytes:
    """Canonical JSON of a value: equal values give equal bytes."""
    return json.dumps(
        to_plain(value), sort_keys=True, separators=(",", ":"), ensure_ascii=False
    ).encode()


def load(cls: type[T], data: bytes) -> T:
    """Read what ``dump`` wrote.

    Raises:
        ContractError: Not JSON, or not of that type.
    """
    try:
        plain = json.loads(data)
    except ValueError as error:
        raise ContractError(f"not a {cls.__name__}: {error}", code="SM-2103") from error
    return from_plain(cls, plain)


def alternatives(kind: Any) -> tuple[type, ...]:
    """The records that a field of this type can hold; empty when it can hold only one type."""
    if get_origin(kind) not in (Union, types.UnionType):
        return ()
    members = tuple(m for m in get_args(kind) if m is not type(None))
    return members if len(members) > 1 and all(map(is_dataclass, members)) else ()


@cache
def _writers(cls: Any) -> tuple[tuple[str, Callable[[Any], Any], Callable[[Any], Any]], ...]:
    """Per field of the plain form: its name, the getter of its value, the converter to plain."""
    return tuple(
        (field.name, attrgetter(field.path), _writer(field.kind)) for field in plain_fields(cls)
    )


def _writer(kind: Any) -> Callable[[Any], Any]:
    """The function that converts a field's value to its plain form."""
    if alternatives(kind):
        return _named
    if get_origin(kind) is tuple and alternatives(get_args(kind)[0]):
        return lambda values: [_named(value) for value in values]
    return to_plain


def _named(value: Any) -> Any:
    return {type(value).__name__: to_plain(value)}


@cache
def _reader(kind: Any) -> Callable[[Any], Any]:
    origin = get_origin(kind)
    if records := alternatives(kind):
        return _named_reader(records)
    if origin in (Union, types.UnionType):
        members = [m for m in get_args(kind) if m is not type(None)]
        if len(members) != 1:
            raise TypeError(f"{kind} is ambiguous in plain form")
        inner = _reader(members[0])
        return lambda plain: None if plain is None else inner(plain)
    if origin is tuple:
        arguments = get_args(kind)
        if len(arguments) == 2 and arguments[1] is Ellipsis:
            item = _reader(arguments[0])
            return lambda plain: tuple([item(p) for p in plain])
        items = [_reader(a) for a in arguments]
        return lambda plain: tuple([read(p) for read, p in zip(items, plain, strict=True)])
    if origin is not None and issubclass(origin, Mapping):
        item = _reader(get_args(kind)[1])
        return lambda plain: {key: item(p) for key, p in plain.items()}
    if is_dataclass(kind):
        return _record_reader(kind)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return kind
    if kind in (str, int, bool):
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
    readers: dict[str, tuple[str, Callable[[Any], Any]]] = {}
    flat = flat_defaults(cls)

    def read(plain: Any) -> Any:
        if not readers:  # on first use: a record may hold itself
            readers.update({f.name: (f.path, _reader(f.kind)) for f in plain_fields(cls)})
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
