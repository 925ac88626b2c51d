from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from shardmerge.schemas.model.names import TargetTable
from shardmerge.spark_sink.targets.iceberg.turns import TableTurns

ONE, OTHER = TargetTable("merged", "t"), TargetTable("merged", "u")
WAIT_S = 20


class Taker(threading.Thread):
    """Takes a turn and keeps it until it is told."""

    def __init__(self, take: Callable[[TargetTable], object], order: list[str], name: str) -> None:
        super().__init__(name=name, daemon=True)
        self._take, self._order = take, order
        self.has_it, self.may_end = threading.Event(), threading.Event()
        self.start()

    def run(self) -> None:
        with self._take(ONE):  # type: ignore[attr-defined]
            self._order.append(self.name)
            self.has_it.set()
            self.may_end.wait(WAIT_S)

    def end(self) -> None:
        self.may_end.set()
        self.join(WAIT_S)


def waiting(turns: TableTurns) -> int:
    with turns._changed:
        return turns._batches[ONE]


def test_a_batch_that_waits_comes_before_chunks_that_wait() -> None:
    turns, order = TableTurns(), list[str]()
    first = Taker(turns.of_chunk, order, "first chunk")
    assert first.has_it.wait(WAIT_S)
    second = Taker(turns.of_chunk, order, "second chunk")
    batch = Taker(turns.of_batch, order, "batch")
    while not waiting(turns):
        assert batch.is_alive()
    assert order == ["first chunk"]
    # Another table has turns of its own.
    with turns.of_batch(OTHER), turns.of_chunk(TargetTable("merged", "v")):
        pass
    first.end()
    assert batch.has_it.wait(WAIT_S)
    assert order == ["first chunk", "batch"]
    batch.end()
    assert second.has_it.wait(WAIT_S)
    second.end()
    assert order == ["first chunk", "batch", "second chunk"]


def test_a_turn_ends_whatever_happens_in_it() -> None:
    turns = TableTurns()
    with pytest.raises(ValueError, match="gone"), turns.of_chunk(ONE):
        raise ValueError("gone")
    with pytest.raises(ValueError, match="gone"), turns.of_batch(ONE):
        raise ValueError("gone")
    with turns.of_chunk(ONE):
        pass
