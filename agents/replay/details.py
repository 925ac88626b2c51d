"""What differs between two records, in words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from shardmerge.connectors.formats.stored_record import StoredRecord
from shardmerge.schemas.model.errors import ContractError
from shardmerge.schemas.records import codec
from shardmerge.schemas.records.plain import to_plain

_MOST_FIELDS = 8
_MOST_CHARACTERS = 120


def details(expected: StoredRecord, found: StoredRecord) -> tuple[str, ...]:
    """Field by field, where both can be read; never empty."""
    try:
        theirs = codec.decode(found.value or b"")
        ours = codec.decode(expected.value or b"")
    except ContractError as error:
        return (f"what is in the topic cannot be read: {error.message}",)
    pairs = [
        *_differing(to_plain(ours), to_plain(theirs), ""),
        *_differing(_headers(expected), _headers(found), "header "),
    ]
    told = [
        f"{path}: {_short(one)} by the fold, {_short(other)} in the topic"
        for path, one, other in pairs[:_MOST_FIELDS]
    ]
    if len(pairs) > _MOST_FIELDS:
        told.append(f"and {len(pairs) - _MOST_FIELDS} more fields")
    return tuple(told or ["the fields are equal, the bytes are not"])


def key_text(key: bytes | None) -> str:
    """A record's key as people read it."""
    return "(no key)" if key is None else key.decode("utf-8", "backslashreplace")


def _headers(record: StoredRecord) -> dict[str, str]:
    return {n: (v or b"").decode("utf-8", "backslashreplace") for n, v in record.headers}


def _differing(ours: Any, theirs: Any, path: str) -> Iterator[tuple[str, Any, Any]]:
    """The innermost fields that differ: path, ours, theirs."""
    if ours == theirs:
        return
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for name in dict.fromkeys((*ours, *theirs)):
            point = "." if path and not path.endswith(" ") else ""
            yield from _differing(ours.get(name), theirs.get(name), f"{path}{point}{name}")
    elif isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        for number, (one, other) in enumerate(zip(ours, theirs, strict=True)):
            yield from _differing(one, other, f"{path}[{number}]")
    else:
        yield path, ours, theirs


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _MOST_CHARACTERS else text[:_MOST_CHARACTERS] + "…"
