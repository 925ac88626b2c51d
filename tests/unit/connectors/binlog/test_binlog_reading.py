"""Whether a silent connector is busy."""

from __future__ import annotations

from typing import Any

from shardmerge.connectors.binlog.binlog_reading import BinlogReading
from shardmerge.connectors.binlog.source_offset import SourceOffset
from shardmerge.schemas.model.position import SourcePosition

END = SourcePosition(0, "binlog.000002", 500, 0)


def at(pos: int, file: str = "binlog.000001", **more: Any) -> SourceOffset:
    return SourceOffset({"file": file, "pos": pos, **more})


def looks(*offsets: SourceOffset) -> list[bool]:
    reading = BinlogReading(END)
    return [reading.goes_on(offset) for offset in offsets]


def test_one_that_moves_towards_the_end_goes_on() -> None:
    assert looks(*(at(pos) for pos in range(900, 905))) == [True] * 5
    assert looks(at(900, event=1), at(900, event=2), at(900, event=2, row=1)) == [True] * 3


def test_one_that_has_passed_the_end_does_not() -> None:
    assert looks(at(499, "binlog.000002"), at(500, "binlog.000002")) == [True, False]
    assert looks(at(4, "binlog.000003"), at(8, "binlog.000003")) == [False, False]


def test_one_that_stands_for_three_looks_does_not() -> None:
    assert looks(*[at(900)] * 6) == [True, True, True, False, False, False]


def test_one_that_moves_again_goes_on_again() -> None:
    assert looks(*[at(900)] * 4, at(901), at(901)) == [True, True, True, False, True, True]


def test_time_alone_is_no_move() -> None:
    assert looks(*(at(900, ts_sec=n) for n in range(5))) == [True, True, True, False, False]


def test_one_that_reads_a_table_goes_on_behind_the_end() -> None:
    def chunk(key: str) -> SourceOffset:
        return at(900, "binlog.000002", incremental_snapshot_primary_key=key)

    assert looks(chunk("1"), chunk("2"), chunk("3"), chunk("3")) == [False, True, True, False]
    assert looks(at(900, "binlog.000002"), chunk("1"), at(900, "binlog.000002")) == [
        False,
        True,
        True,
    ]
