"""What is told with a record of the offsets before it, however the fetches cut the log."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka import TopicPartition
from hypothesis import given
from hypothesis import strategies as st

from shardmerge.agents.runtime.fetched_records import FetchedRecords

TP = TopicPartition("one", 0)
READ_COMMITTED = 1


@dataclass
class Batch:
    """A batch of one offset, as aiokafka gives it: a record, or a marker."""

    base_offset: int
    is_control_batch: bool
    producer_id: int | None = None
    is_transactional: bool = False

    @property
    def next_offset(self) -> int:
        return self.base_offset + 1

    def __iter__(self) -> Iterator[Any]:
        yield SimpleNamespace(
            offset=self.base_offset, timestamp=0, timestamp_type=0, key=None, value=b"",
            checksum=None, headers=(),
        )  # fmt: skip


class Batches:
    """The batches of an answer."""

    def __init__(self, batches: Sequence[Batch]) -> None:
        self._batches = list(batches)

    def has_next(self) -> bool:
        return bool(self._batches)

    def next_batch(self) -> Batch:
        return self._batches.pop(0)


def fetched(log: str, start: int, end: int) -> FetchedRecords:
    """An answer with these offsets of a log: ``r`` is a record, ``m`` a marker."""
    batches = [Batch(offset, log[offset] == "m") for offset in range(start, min(end, len(log)))]
    return FetchedRecords(TP, Batches(batches), [], start, None, None, False, READ_COMMITTED)


@pytest.fixture(autouse=True)
def _nothing_passed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FetchedRecords, "_passed", {})


def told(records: FetchedRecords) -> list[tuple[int, int]]:
    return [(record.empty_since, record.offset) for record in records]


def test_markers_before_a_record_are_told_to_be_no_records():
    assert told(fetched("rmrmmr", 0, 6)) == [(0, 0), (1, 2), (3, 5)]


def test_a_marker_at_the_end_of_a_fetch_is_remembered_for_the_next_one():
    assert told(fetched("rmrmmr", 0, 2)) == [(0, 0)]
    assert told(fetched("rmrmmr", 2, 5)) == [(1, 2)]
    assert told(fetched("rmrmmr", 5, 6)) == [(3, 5)]


def test_a_fetch_of_markers_alone_is_remembered():
    assert told(fetched("rmmmr", 0, 2)) == [(0, 0)]
    assert told(fetched("rmmmr", 2, 3)) == []
    assert told(fetched("rmmmr", 3, 5)) == [(1, 4)]


def test_nothing_is_told_of_offsets_over_which_the_consumer_jumped():
    assert told(fetched("rrrmr", 0, 1)) == [(0, 0)]
    assert told(fetched("rrrmr", 3, 5)) == [(3, 4)]


def test_what_was_fetched_and_dropped_is_not_told_to_be_empty():
    next(fetched("rrmr", 0, 3))  # a rebalance drops the record at 1
    assert told(fetched("rrmr", 2, 4)) == [(2, 3)]


@given(
    log=st.text("rm", min_size=1, max_size=20),
    fetches=st.lists(st.tuples(st.integers(0, 19), st.integers(1, 6), st.booleans()), max_size=12),
)
def test_no_record_stands_between_what_is_told_and_the_record(log, fetches):
    FetchedRecords._passed.clear()
    position = 0
    for seek, count, is_taken in fetches:
        start = min(position if seek > 12 else seek, len(log))
        records = fetched(log, start, start + count)
        found = [(r.empty_since, r.offset) for r in islice(records, None if is_taken else 1)]
        assert all("r" not in log[since:offset] for since, offset in found)
        position = records.next_fetch_offset


@given(log=st.text("rm", min_size=1, max_size=20), cuts=st.lists(st.integers(1, 6), max_size=20))
def test_a_consumer_that_reads_on_knows_every_gap(log, cuts):
    FetchedRecords._passed.clear()
    found: list[tuple[int, int]] = []
    position = 0
    for count in [*cuts, len(log)]:
        records = fetched(log, position, position + count)
        found += told(records)
        position = records.next_fetch_offset
    offsets = [offset for offset, kind in enumerate(log) if kind == "r"]
    since = [0, *(offset + 1 for offset in offsets)]
    assert found == list(zip(since, offsets, strict=False))
