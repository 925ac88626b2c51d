"""Whose rows a TRUNCATE deletes, and where its shard's partitions go on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, cast

import pytest

from shardmerge.schemas.model.actions import RowRemoval
from shardmerge.schemas.records.decisions import Binding
from shardmerge.spark_sink.barrier.partitions import Partition
from shardmerge.spark_sink.barrier.truncations import emptying
from shardmerge.spark_sink.kafka.range_reader import OffsetRange, Records, RowReader
from shardmerge.spark_sink.kafka.rewind import first_offset_from
from shardmerge.spark_sink.kafka.windows.window import Kept
from tests.unit.spark_sink.decided import A_ROWS, TARGET, A, B, at, decision, folded
from tests.unit.spark_sink.row_events import marked, row

ID = Binding("id#1", "id")


def _target(*shards):
    return folded(*(decision(n, s, 10 * n) for n, s in enumerate(shards, 1))).targets[TARGET]


def test_the_origin_columns_tell_the_rows() -> None:
    parts = {f"@{part}": Binding(f"@{part}", f"_{part}") for part in ("source", "table")}
    two = _target(A, B)
    assert emptying(two, (A,), {"id#1": ID, **parts}) is None
    parts["@database"] = Binding("@database", "db")
    found = emptying(two, (A,), {"id#1": ID, **parts})
    assert found is not None and found.sql == (
        "DELETE FROM `merged`.`t` WHERE `db` = 'app' AND `_source` = 's1' AND `_table` = 'a'"
    )


def test_without_them_only_a_shard_that_was_always_alone_is_emptied() -> None:
    found = emptying(_target(A), (A,), {"id#1": ID})
    assert found is not None and found.sql == "DELETE FROM `merged`.`t`"
    assert found.actions == (RowRemoval(()),)
    assert emptying(_target(A, B), (A,), {"id#1": ID}) is None


@dataclass
class _Log:
    """A partition: the position of the row at each offset, None for a commit marker.

    A negative one stands for a row that is read again there; ``marked``: rows of the binlog are
    marked like those, as Debezium does meanwhile.
    """

    rows: list[int | None]
    low: int = 0
    marked: bool = False
    kept: ClassVar[dict[Partition, Kept]] = {}
    seen: ClassVar[dict[Partition, Kept]] = {}

    def beginning(self, partition: Any) -> int:
        return self.low

    def open(self, ranges: list[OffsetRange]) -> Any:
        (wanted,) = ranges
        assert wanted.start >= self.low
        return _Cursor(self, wanted)


class _Cursor:
    def __init__(self, log: _Log, wanted: OffsetRange) -> None:
        self.log, self.wanted, self.is_open = log, wanted, True

    def read(self, most: int) -> list[Records]:
        self.is_open = False
        offsets = [
            n for n in range(self.wanted.start, self.wanted.end) if self.log.rows[n] is not None
        ]
        return [Records(A_ROWS, offsets, [self._value(self.log.rows[n] or 0) for n in offsets])]

    def _value(self, pos: int) -> bytes:
        value = row("r" if pos < 0 else "c", {}, at(abs(pos)))
        return marked(value) if pos < 0 or self.log.marked else value


@pytest.mark.parametrize("marks", [False, True])
@pytest.mark.parametrize(
    ("rows", "low", "expected"),
    [
        ([1, 2, None, 3, 4], 0, 3),
        ([1, 2, None], 0, 3),
        ([3, 4], 0, 0),
        ([], 0, 0),
        ([1, 2, 3, -1, 4], 0, 2),
        ([1, 3, 4], 1, 1),
        ([*range(-2_000, 0), 3, 3, 3], 0, 2_000),
        ([1, *[5] * 5_000], 0, 1),
    ],
)
def test_the_first_row_behind_a_place_is_found(
    rows: list[int | None], low: int, expected: int, marks: bool
) -> None:
    log = cast("RowReader", _Log(rows, low, marks))
    assert first_offset_from(log, A_ROWS, len(rows), at(3)) == expected
