"""Makes lines of records by the compiled code: a ``RecordLines``."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from ctypes import CDLL, addressof, byref, create_string_buffer, string_at
from threading import local
from typing import Any

from msgspec.json import encode

from shardmerge.spark_sink.rows.decoding.row_decoder import before_payload
from shardmerge.spark_sink.rows.folding.line_maker import TakenRecords

from .layouts import Key, Layout
from .library import VALUE_BYTES, CBounds, CMade, text

_MOST_RECORDS = 1_000
_MOST_BYTES = 1 << 20
"""Of the records of one call, if they are several; and the least place for their lines."""
_WIDEST = 32
_NO_END = 1 << 62


class _Places(local):
    """The places for results. A thread has one of each, since nothing is kept between two calls."""

    def __init__(self) -> None:
        self.operations = create_string_buffer(_MOST_RECORDS)
        self.integers = array("q")
        self.values = self.lines = self.texts = create_string_buffer(1)

    def fit(self, layout: Layout, longest: int) -> None:
        """Make them large enough: for at least one record of that many bytes."""
        room = 3 * (longest + layout.widths) + _WIDEST * layout.columns + len(layout.ending) + 2
        room = max(room, _MOST_BYTES)
        if len(self.lines) < room:
            self.lines = create_string_buffer(room)
        if layout.texts and len(self.texts) < room:
            self.texts = create_string_buffer(room)
        if len(self.values) < VALUE_BYTES * layout.columns:
            self.values = create_string_buffer(VALUE_BYTES * layout.columns)
        missing = _MOST_RECORDS * layout.integers - len(self.integers)
        self.integers.frombytes(bytes(8 * max(0, missing)))


_places = _Places()


class CompiledRecordLines:
    """See ``RecordLines``."""

    def __init__(self, library: CDLL, layout: Layout) -> None:
        self._take = library.shardmerge_take
        self._layout = layout
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
        places = _places
        places.fit(self._layout, max(sizes))
        made = CMade(
            addressof(places.lines),
            len(places.lines),
            0,
            addressof(places.texts),
            len(places.texts),
            0,
            places.integers.buffer_info()[0],
            addressof(places.operations),
        )
        count = self._take(
            byref(self._layout.structure),
            byref(bounds),
            b"".join(values),
            sizes.buffer_info()[0],
            len(sizes),
            places.values,
            byref(made),
        )
        lines = string_at(made.lines, made.lines_used)
        texts = string_at(made.texts, made.texts_used)
        good = min(count, _readable(lines, 1), _readable(texts, self._layout.texts, count))
        return TakenRecords(
            self._keys(good, places.integers, texts) if good else (),
            lines.split(b"\n", good)[:good],
            places.operations.raw[:good],
            good < count or (count < len(values) and not made.is_full),
        )

    def _prefix_of(self, value: bytes) -> bytes:
        """The bytes before a record's payload. They are the same until the shard's next DDL."""
        if not self._prefix or not value.startswith(self._prefix):
            # A record without the prefix of Connect's converter is refused: it begins otherwise.
            self._prefix = before_payload(value) or b"\0"
        return self._prefix

    def _keys(self, count: int, integers: array[int], texts: bytes) -> Sequence[Any]:
        layout = self._layout
        used = integers[: count * layout.integers]
        found = _text_of(texts, count * layout.texts)
        parts: list[Sequence[Any]] = []
        for kind, n in layout.key:
            if kind is Key.TEXT:
                parts.append(found[n :: layout.texts])
                continue
            own = used[n :: layout.integers]
            parts.append((own if kind is Key.INTEGER else array("Q", own.tobytes())).tolist())
        return parts[0] if len(parts) == 1 else list(zip(*parts, strict=True))


def _text_of(texts: bytes, count: int) -> list[str]:
    """The first texts, each of which has a newline behind it."""
    return [] if not count else b"\n".join(texts.split(b"\n", count)[:count]).decode().split("\n")


def _readable(data: bytes, lines_of_row: int, otherwise: int = 0) -> int:
    """How many rows there are before bytes that are no UTF-8; ``otherwise`` if rows have no lines.

    Python refuses such a row. The server might take it for another one.
    """
    if not lines_of_row:
        return otherwise
    end = len(data)
    if not data.isascii():
        try:
            data.decode()
        except UnicodeDecodeError as error:
            end = error.start
    return data.count(b"\n", 0, end) // lines_of_row
