"""Makes lines of records by the compiled code: a ``RecordLines``."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from ctypes import CDLL, addressof, byref, create_string_buffer, string_at
from typing import Any

from msgspec.json import encode

from shardmerge.spark_sink.rows.decoding.row_decoder import before_payload
from shardmerge.spark_sink.rows.folding.line_maker import TakenRecords

from .layouts import Layout
from .library import VALUE_BYTES, CBounds, CMade, text

_MOST_RECORDS = 1_000
_MOST_BYTES = 4 << 20
"""Of the records of one call, if they are several."""
_LINES_BYTES = 1 << 20
_WIDEST = 32
_NO_END = 1 << 62
_NOTHING = TakenRecords((), (), b"")


class CompiledRecordLines:
    """See ``RecordLines``. Its buffers are used again by every call."""

    def __init__(self, library: CDLL, layout: Layout) -> None:
        self._take = library.shardmerge_take
        self._layout = layout
        self._integers = array("q", bytes(8 * _MOST_RECORDS * layout.integers))
        self._operations = create_string_buffer(_MOST_RECORDS)
        self._values = create_string_buffer(VALUE_BYTES * layout.columns)
        self._lines = create_string_buffer(_LINES_BYTES)
        self._texts = create_string_buffer(_LINES_BYTES if layout.texts else 1)
        self._prefix = b""

    def take(
        self, values: Sequence[bytes], file: str, low: float, high: float, *, wrapped: bool
    ) -> TakenRecords:
        """See ``RecordLines``."""
        values = values[:_MOST_RECORDS]
        while len(values) > 1 and sum(map(len, values)) > _MOST_BYTES:
            values = values[: len(values) // 2]
        bounds = CBounds(
            text(self._prefix_of(values[0]) if wrapped else b""),
            text(encode(file)),
            int(low),
            int(min(high, _NO_END)),
        )
        sizes = array("I", map(len, values))
        made = self._made(max(sizes))
        count = self._take(
            byref(self._layout.structure),
            byref(bounds),
            b"".join(values),
            sizes.buffer_info()[0],
            len(sizes),
            self._values,
            byref(made),
        )
        lines = string_at(made.lines, made.lines_used)
        texts = string_at(made.texts, made.texts_used)
        if not (count and _is_utf8(lines) and _is_utf8(texts)):
            return _NOTHING
        return TakenRecords(
            self._keys(count, texts), lines.split(b"\n")[:-1], self._operations.raw[:count]
        )

    def _prefix_of(self, value: bytes) -> bytes:
        """The bytes before a record's payload. They are the same until the shard's next DDL."""
        if not self._prefix or not value.startswith(self._prefix):
            # A record without the prefix of Connect's converter is refused: it begins otherwise.
            self._prefix = before_payload(value) or b"\0"
        return self._prefix

    def _made(self, longest: int) -> CMade:
        """The place for results; large enough for at least one record of that many bytes."""
        layout = self._layout
        needed = 3 * (longest + layout.widths) + _WIDEST * layout.columns + len(layout.ending) + 2
        if needed > len(self._lines):
            self._lines = create_string_buffer(needed)
        if layout.texts and needed > len(self._texts):
            self._texts = create_string_buffer(needed)
        return CMade(
            addressof(self._lines),
            len(self._lines),
            0,
            addressof(self._texts),
            len(self._texts),
            0,
            self._integers.buffer_info()[0],
            addressof(self._operations),
        )

    def _keys(self, count: int, texts: bytes) -> Sequence[Any]:
        layout = self._layout
        integers = self._integers[: count * layout.integers]
        found = texts.decode().split("\n")[:-1]
        parts: list[Sequence[Any]] = [
            integers[n :: layout.integers].tolist() if is_integer else found[n :: layout.texts]
            for is_integer, n in layout.key
        ]
        return parts[0] if len(parts) == 1 else list(zip(*parts, strict=True))


def _is_utf8(data: bytes) -> bool:
    if data.isascii():
        return True
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True
