"""Rows of a result that stay in the server's packets; marks show where their values begin. Pure.

A packet has a header of four bytes, and its values one after the other, each behind its length. The
lengths are what a reader needs, and what nobody needs afterwards. So each of them is overwritten by
a mark. The marks are bytes that UTF-8 never has: a text cannot be taken for one. What is left to
do for a whole chunk is done by a few calls into C, whatever the number of rows and columns.

In CPU time: 1.3 µs for a row of twelve columns, where PyMySQL takes 5.1 for a tuple of texts
(``benchmarks/load_reader.py``).

Source: MySQL Internals, "Text Resultset", "Protocol::LengthEncodedString".
"""

from __future__ import annotations

from dataclasses import dataclass, field

from shardmerge.spark_sink.rows.values.column_values import UnfitValue

NULL = b"\xfb"
"""A value that is NULL; this is the server's own byte."""
VALUE = b"\xff"
"""A value begins here."""
ROW = b"\xfd\xfd\xfd\xfe"
"""A row begins here; its first value, or NULL, follows."""
_PAD, _ROW_END = b"\xfd", b"\xfe"
_VALUE, _NULL, _LONGEST_SHORT = 0xFF, 0xFB, 250
_WIDTHS = {0xFC: 2, 0xFD: 3, 0xFE: 8}
"""First byte of a long value → how many bytes its length has."""
_HEADER, _LARGEST_PACKET = 4, 0xFFFFFF
_ERROR, _END, _LONGEST_END = 0xFF, 0xFE, 8


@dataclass(slots=True)
class PackedRows:
    """The rows of a result.

    Attributes:
        columns: How many values a row has.
        data: The rows. All marks of a long value but the last one are ``_PAD``.
        rows: How many there are.
        warnings: How many warnings the server has about the query.
    """

    columns: int
    data: bytearray = field(default_factory=bytearray)
    rows: int = 0
    warnings: int = 0
    _marked: int = 0
    _pads: int = 0

    @property
    def size(self) -> int:
        """How many bytes the values have."""
        return len(self.data) - self.rows * (self.columns + len(ROW)) - self._pads

    @property
    def has_pads(self) -> bool:
        """Whether there is a long value."""
        return self._pads > 0

    def add(self, piece: bytes) -> bytes | None:
        """Take the next bytes that the server has sent.

        Returns:
            The packet behind the last row; None while more rows come.
        """
        data, place = self.data, self._marked
        data += piece
        end, rows = len(data), 0
        while end - place > _HEADER:
            length = data[place] | data[place + 1] << 8 | data[place + 2] << 16
            if length == _LARGEST_PACKET:
                joined = self._joined(place)
                if joined is None:
                    break
                length, end = joined, len(data)
            stop = place + _HEADER + length
            if stop > end:
                break
            first = data[place + _HEADER]
            if first == _ERROR or (first == _END and length <= _LONGEST_END):
                last = bytes(data[place + _HEADER : stop])
                del data[place:]
                self._marked, self.rows = place, self.rows + rows
                return last
            data[place : place + _HEADER] = ROW
            place += _HEADER
            while place < stop:
                length = data[place]
                if length <= _LONGEST_SHORT:
                    data[place] = _VALUE
                    place += length + 1
                elif length == _NULL:
                    place += 1
                else:
                    place = self._mark_long(place)
            rows += 1
        self._marked, self.rows = place, self.rows + rows
        return None

    def check(self) -> None:
        """Check that no value has a byte that is a mark.

        Raises:
            UnfitValue: A text is not UTF-8.
        """
        data, rows = self.data, self.rows
        values = data.count(VALUE) + data.count(NULL)
        pads = rows * ROW.count(_PAD) + self._pads
        if (values, data.count(_ROW_END), data.count(_PAD)) != (rows * self.columns, rows, pads):
            raise UnfitValue("the source has sent a text that is not UTF-8", code="SM-1509")

    def _mark_long(self, place: int) -> int:
        """Mark a value of more than 250 bytes; where it ends."""
        data, width = self.data, _WIDTHS[self.data[place]]
        begin = place + 1 + width
        length = int.from_bytes(data[place + 1 : begin], "little")
        data[place:begin] = _PAD * width + VALUE
        self._pads += width
        return begin + length

    def _joined(self, place: int) -> int | None:
        """Take the inner headers out of a row that has several packets.

        Returns:
            The row's length; None, with nothing changed, while a part of it is missing.
        """
        data, headers, after, length = self.data, list[int](), place, _LARGEST_PACKET
        while length == _LARGEST_PACKET:
            if after + _HEADER > len(data):
                return None
            length = int.from_bytes(data[after : after + 3], "little")
            headers.append(after)
            after += _HEADER + length
        if after > len(data):
            return None
        for header in reversed(headers[1:]):
            del data[header : header + _HEADER]
        return after - place - _HEADER * len(headers)
