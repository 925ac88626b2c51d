"""Loads the compiled code, and calls it. Its structures are those of record_lines.c."""

from __future__ import annotations

import platform
from ctypes import (
    CDLL,
    POINTER,
    Structure,
    c_char_p,
    c_int64,
    c_uint8,
    c_uint32,
    c_uint64,
    c_void_p,
)  # fmt: skip
from functools import cache

from shardmerge.connectors.event_log import logger

from . import sources

log = logger(__name__)


class Text(Structure):
    """Bytes and their number; Python keeps the bytes."""

    _fields_ = (("start", c_char_p), ("size", c_uint32))


class CColumn(Structure):
    """A column of a row image."""

    _fields_ = (
        ("name", Text),
        ("kind", c_uint8),
        ("key", c_uint8),
        ("zero_for_null", c_uint8),
        ("width", c_uint32),
    )


class CLayout(Structure):
    """The records of one shape."""

    _fields_ = (
        ("columns", POINTER(CColumn)),
        ("order", POINTER(c_uint32)),
        ("column_count", c_uint32),
        ("order_count", c_uint32),
        *((name, Text) for name in ("ending", "source", "database", "table")),
        *((name, Text) for name in ("epoch_name", "epoch")),
    )


class CBounds(Structure):
    """Which records are taken."""

    _fields_ = (("prefix", Text), ("file", Text), ("low", c_int64), ("high", c_int64))


class CMade(Structure):
    """What was made of the records."""

    _fields_ = (
        ("lines", c_void_p),
        ("lines_size", c_uint64),
        ("lines_used", c_uint64),
        ("texts", c_void_p),
        ("texts_size", c_uint64),
        ("texts_used", c_uint64),
        ("integers", c_void_p),
        ("operations", c_void_p),
        ("is_full", c_uint8),
    )


VALUE_BYTES = 24
"""The size of ``struct value``."""


def text(data: bytes) -> Text:
    """Bytes for the compiled code; a ``Structure`` that has it keeps them."""
    return Text(data, len(data))


@cache
def library() -> CDLL | None:
    """The compiled code; None where it cannot be used. Then Python does its work, more slowly.

    A library that was compiled from other code than the one here is not used: its structures may be
    others.
    """
    path = sources.library_path(platform.machine())
    try:
        found = CDLL(str(path))
        found.shardmerge_sources.restype = c_char_p
        is_current = found.shardmerge_sources().decode() == sources.digest()
    except (OSError, AttributeError) as error:
        log.info("compiled_code_missing", path=path.name, reason=str(error))
        return None
    if not is_current:
        log.info("compiled_code_missing", path=path.name, reason="compiled from other code")
        return None
    found.shardmerge_take.restype = c_uint32
    found.shardmerge_take.argtypes = (
        POINTER(CLayout), POINTER(CBounds), c_char_p, c_void_p, c_uint32, c_void_p, POINTER(CMade),
    )  # fmt: skip
    return found
