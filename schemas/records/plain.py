"""Frozen dataclasses ⇄ plain values (dict, list, str, int, bool, None) and canonical JSON.

One converter serves state in RocksDB, exports and the Avro codec. The field's type decides how a
plain value is read back. The data name a class only where a field takes one of several records:
``{"<class>": {<fields>}}``, as Avro's JSON encoding does.

``plain_fields`` tells which fields a record has in its plain form.
"""

from __future__ import annotations

import json
import types
from collections.abc import Callable, Mapping
from dataclasses import is_dataclass
from enum import Enum
from functools import cache
from operator import attrgetter
from typing import Any, TypeVar, Union, get_args, get_origin

from shardmerge.schemas.model.errors import ContractError

from .plain_fields import alternatives, plain_fields, record_writer
from .plain_readers import reader

T = TypeVar("T")

_text = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode
"""One encoder for all values: ``json.dumps`` makes a new one at each call."""


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
        return _record_writer(kind)(value)
    raise TypeError(f"{type(value).__name__} has no plain form")


def from_plain(cls: type[T], plain: Any) -> T:
    """Read a value of type ``cls`` back.

    Fields that the plain form lacks take their default, so that older data stays readable.

    Raises:
        ContractError: The data does not fit the type.
    """
    kind: Any = cls
    try:
        return reader(kind)(plain)  # type: ignore[no-any-return]
    except (TypeError, KeyError, ValueError, AttributeError) as error:
        raise ContractError(f"not a {cls.__name__}: {error}", code="SM-2103") from error


def dump(value: Any) -> bytes:
    """Canonical JSON of a value: equal values give equal bytes."""
    return _text(to_plain(value)).encode()


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


@cache
def _record_writer(cls: Any) -> Callable[[Any], dict[str, Any]]:
    return record_writer(plain_fields(cls), _writer)


@cache
def _writer(kind: Any) -> Callable[[Any], Any] | None:
    """The function that converts a field's value to its plain form; None: the value is plain."""
    if alternatives(kind):
        return _named
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is tuple and arguments[1:] == (Ellipsis,):
        item = _writer(arguments[0])
        return list if item is None else lambda values: [item(value) for value in values]
    if origin in (Union, types.UnionType):
        members = [member for member in arguments if member is not type(None)]
        inner = _writer(members[0]) if len(members) == 1 else to_plain
        return None if inner is None else lambda value: None if value is None else inner(value)
    if kind in (str, int, bool):
        return None
    if isinstance(kind, type) and issubclass(kind, Enum):
        return attrgetter("value")
    if isinstance(kind, type) and is_dataclass(kind):
        # Looked for at the first value: a record may hold itself.
        return lambda value: _record_writer(value.__class__)(value)
    return to_plain


def _named(value: Any) -> Any:
    return {type(value).__name__: to_plain(value)}
