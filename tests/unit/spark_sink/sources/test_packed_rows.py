from __future__ import annotations

import pytest

from shardmerge.spark_sink.rows.values.column_values import UnfitValue
from shardmerge.spark_sink.sources.packed_rows import NULL, ROW, VALUE, PackedRows

from .packets import END, MOST, Row, packed, packets

ROWS: list[Row] = [(b"7", "ä\U0001f600".encode(), None), (None, b"", b"9" * 250)]
DATA = b"".join(
    (ROW, VALUE, b"7", VALUE, "ä\U0001f600".encode(), NULL, ROW, NULL, VALUE, VALUE, b"9" * 250)
)


def test_marks_take_the_place_of_lengths() -> None:
    found = packed(ROWS, 3)
    found.check()
    assert (bytes(found.data), found.rows, found.has_pads) == (DATA, 2, False)
    assert found.size == 1 + len("ä\U0001f600".encode()) + 250


def test_packets_may_be_cut_anywhere() -> None:
    sent, found, ends = packets(ROWS), PackedRows(3), []
    for place in range(len(sent)):
        ends.append(found.add(sent[place : place + 1]))
    assert ends == [None] * (len(sent) - 1) + [END]
    assert (bytes(found.data), found.rows) == (DATA, 2)


@pytest.mark.parametrize("size", [251, 65_535, 65_536, (1 << 24) - 20])
def test_a_long_value_begins_with_pads(size: int) -> None:
    found = packed([(b"1", b"x" * size, b"2")], 3)
    found.check()
    assert found.has_pads
    assert found.data.translate(None, ROW[:1]) == b"".join(
        (ROW[-1:], VALUE, b"1", VALUE, b"x" * size, VALUE, b"2")
    )
    assert found.size == size + 2


@pytest.mark.parametrize("size", [MOST - 6, MOST - 4, MOST, 2 * MOST])
def test_a_row_of_several_packets_is_one_row(size: int) -> None:
    rows: list[Row] = [(b"1", b"x" * size), (b"2", b"y")]
    sent, found = packets(rows), PackedRows(2)
    assert found.add(sent[:20_000_000]) == (END if len(sent) <= 20_000_000 else None)
    if len(sent) > 20_000_000:
        assert found.add(sent[20_000_000:]) == END
    found.check()
    assert found.rows == 2
    values = found.data.translate(None, ROW[:1])
    assert values == b"".join(
        (ROW[-1:], VALUE, b"1", VALUE, b"x" * size, ROW[-1:], VALUE, b"2", VALUE, b"y")
    )


def test_the_packet_behind_the_rows_may_be_an_error() -> None:
    found = PackedRows(1)
    assert found.add(packets([(b"1",)], end=b"\xff\x28\x04#70100killed")) is not None
    assert (found.rows, bytes(found.data)) == (1, ROW + VALUE + b"1")


@pytest.mark.parametrize("byte", [NULL, VALUE, ROW[:1], ROW[-1:]])
def test_a_byte_that_is_a_mark_is_refused_in_a_value(byte: bytes) -> None:
    with pytest.raises(UnfitValue, match="not UTF-8"):
        packed([(b"1", b"a" + byte + b"b")], 2).check()


def test_a_first_value_of_16_mb_is_no_end() -> None:
    found = packed([(b"x" * (1 << 24),)], 1)
    assert (found.rows, found.size) == (1, 1 << 24)
