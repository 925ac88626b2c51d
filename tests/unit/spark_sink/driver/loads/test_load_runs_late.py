"""Readers of chunks that are late: their chunk was given out again meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from shardmerge.schemas.model.errors import StackError
from shardmerge.schemas.pipeline.settings import Source
from shardmerge.spark_sink.loading.load_state import Chunk, ChunkState
from shardmerge.spark_sink.planning.chunk_orders import (
    ChunkEnd,
    ChunkFailure,
    ChunkOrder,
    ChunkResult,
)
from tests.unit.spark_sink.decided import A, at
from tests.unit.spark_sink.driver.loads.played_loads import Driver

DONE = ChunkResult(A, 0, ChunkEnd.DONE, 2, 8, at(50))


class Readers:
    """The first reader of a chunk stalls until a second one has the chunk.

    Args:
        late: What the first one brings then.
    """

    def __init__(self, driver: Driver, late: ChunkResult | ChunkFailure | Exception) -> None:
        self._driver, self._run, self._late = driver, driver.store.run, late
        self._begun = [threading.Event(), threading.Event()]
        self._ends = [threading.Event(), threading.Event()]
        self._count = 0
        driver.store.run = self._read  # type: ignore[method-assign]

    def _read(self, order: ChunkOrder, source: Source, *, small: bool) -> Any:
        if (order.load.shard, order.chunk.number) != (A, 0) or self._count == 2:
            return self._run(order, source, small=small)
        reader, self._count = self._count, self._count + 1
        self._begun[reader].set()
        assert self._ends[reader].wait(5)
        if reader == 0:
            if isinstance(self._late, Exception):
                raise self._late
            return self._late
        stored = self._driver.store.kept[A, order.load.version]
        self._driver.store.kept[A, 1] = stored.finish(0, 3, 9, at(90))
        return ChunkResult(A, 0, ChunkEnd.DONE, 3, 9, at(90))

    def give_out_twice(self) -> None:
        """The second time because the state is read again, as after an error of the target."""
        self.rounds_until(self._begun[0].is_set)
        self._driver.runs.load()
        self.rounds_until(self._begun[1].is_set)

    def end(self, reader: int) -> None:
        self._ends[reader].set()

    def rounds_until(self, has_come: Callable[[], bool]) -> None:
        for _ in range(500):
            if has_come():
                return
            self._driver.round_without_waiting()
        raise AssertionError


@pytest.mark.parametrize(
    "late",
    [
        DONE,
        ChunkResult(A, 0, ChunkEnd.REFUSED),
        ChunkResult(A, 0, ChunkEnd.TOO_LARGE),
        ChunkFailure(A, 0, "the target is full"),
        StackError("gone", code="SM-4409"),
    ],
    ids=["done", "refused", "too large", "failure", "error"],
)
def test_what_a_late_reader_brings_does_not_count_for_the_next_one(
    driver: Driver, late: ChunkResult | ChunkFailure | Exception
) -> None:
    # The state that was read again did not have the commit of the first reader yet.
    readers = Readers(driver, late)
    readers.give_out_twice()

    def chunk() -> Chunk:
        return driver.runs.latest[A].chunks[0]

    readers.end(0)
    for _ in range(30):
        driver.round_without_waiting()
        assert chunk().state is ChunkState.RUNNING
    readers.end(1)
    driver.rounds()
    assert driver.runs.latest[A].is_complete
    assert (chunk().rows, chunk().read_before) == (3, at(90)), "as the target has it"
