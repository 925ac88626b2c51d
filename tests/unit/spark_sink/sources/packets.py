"""Rows in the packets of MySQL's text protocol."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import count

from shardmerge.spark_sink.sources.packed_rows import PackedRows

Row = Sequence[bytes | None]
MOST = 0xFFFFFF
END = b"\xfe\x00\x00\x02\x00"


def packet(payload: bytes, number: int = 0) -> bytes:
    """A payload with its header; in several packets if it is too long for one."""
    found = b""
    while True:
        part, payload = payload[:MOST], payload[MOST:]
        found += len(part).to_bytes(3, "little") + bytes([number & 255]) + part
        if len(part) < MOST:
            return found
        number += 1


def value(of: bytes | None) -> bytes:
    """A value behind its length."""
    if of is None:
        return b"\xfb"
    size = len(of)
    for first, width, most in ((b"\xfc", 2, 1 << 16), (b"\xfd", 3, 1 << 24)):
        if size < 251:
            return bytes([size]) + of
        if size < most:
            return first + size.to_bytes(width, "little") + of
    return b"\xfe" + size.to_bytes(8, "little") + of


def packets(rows: Iterable[Row], end: bytes = END) -> bytes:
    """Rows, and the packet behind them."""
    numbers = count(14)
    sent = b"".join(packet(b"".join(map(value, row)), next(numbers)) for row in rows)
    return sent + packet(end, next(numbers))


def packed(rows: Sequence[Row], columns: int) -> PackedRows:
    """Rows as a reader gets them."""
    found = PackedRows(columns)
    assert found.add(packets(rows)) == END
    return found
