"""The carrier's steps, crashed between any two of them, on a table that forgets like Faust's."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardmerge.agents.delivery import Carrier, SkippedRecords
from shardmerge.agents.effects import Effects, Rows, Send, SourceRecord


class Crash(Exception):
    """The worker was killed here."""


class Killer:
    """Counts steps down and crashes at zero."""

    def __init__(self, steps: int) -> None:
        self.steps = steps

    def step(self) -> None:
        self.steps -= 1
        if self.steps < 0:
            raise Crash


class Table:
    """Rows that are there at once, and a changelog that gets them later, in order.

    Every change waits in ``pending`` until ``settle``; a crash keeps any prefix of what waits.
    """

    def __init__(self, changelog: list[tuple[bytes, bytes | None]], killer: Killer) -> None:
        self.changelog = changelog
        self.killer = killer
        self.rows: dict[bytes, bytes] = {}
        for key, value in changelog:
            self._apply(key, value)
        self.pending: list[tuple[bytes, bytes | None]] = []

    def _apply(self, key: bytes, value: bytes | None) -> None:
        if value is None:
            self.rows.pop(key, None)
        else:
            self.rows[key] = value

    def get(self, key: bytes) -> bytes | None:
        return self.rows.get(key)

    def keys(self) -> Iterable[bytes]:
        return self.rows.keys()

    def __setitem__(self, key: bytes, value: bytes) -> None:
        self.killer.step()
        self.rows[key] = value
        self.pending.append((key, value))

    def __delitem__(self, key: bytes) -> None:
        self.killer.step()
        del self.rows[key]
        self.pending.append((key, None))

    def partition_for_key(self, key: bytes) -> int:
        return 0

    def send_changelog(self, partition: int, key: bytes, value: bytes | None) -> None:
        self.pending.append((key, value))

    async def settle(self) -> None:
        while self.pending:
            self.killer.step()
            self.changelog.append(self.pending.pop(0))


class Output:
    """A topic that remembers what was sent."""

    def __init__(self, killer: Killer, sent: list[tuple[bytes, bytes]]) -> None:
        self.killer = killer
        self.sent = sent

    async def send(self, *, key: bytes, value: bytes, headers: Any) -> Any:
        self.killer.step()
        self.sent.append((key, value))
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        done.set_result(None)
        return done


class Gaps:
    """A source topic whose records stand at these offsets."""

    def __init__(self, offsets: list[int]) -> None:
        self.offsets = offsets

    async def first_record(self, topic: str, partition: int, start_offset: int) -> int:
        return next(o for o in self.offsets if o >= start_offset)


def fold(rows: Rows, record: SourceRecord) -> Effects:
    """Counts; every third record deletes a row; each sends what it counted."""
    count = int(rows.get(b"count") or b"0") + 1
    puts: dict[bytes, bytes | None] = {b"count": str(count).encode()}
    puts[b"odd"] = None if count % 3 == 0 else str(count).encode()
    text = f"{count}:{record.offset}".encode()
    return Effects(puts, (Send("out", text, text), Send("out", b"again", text)))


class World:
    """Kafka: source offsets, changelog, output; workers come and go."""

    def __init__(self, offsets: list[int]) -> None:
        self.offsets = offsets
        self.committed = 0
        self.changelog: list[tuple[bytes, bytes | None]] = []
        self.sent: list[tuple[bytes, bytes]] = []

    def work(self, steps: int, *, local: dict[bytes, bytes] | None = None) -> dict[bytes, bytes]:
        """One worker's life of so many steps; returns its local rows, as a kill leaves them."""
        killer = Killer(steps)
        table = Table(self.changelog, killer)
        if local is not None:
            table.rows = dict(local)
        outputs = {"out": Output(killer, self.sent)}
        carrier = Carrier(None, table, fold, Gaps(self.offsets), outputs)  # type: ignore[arg-type]

        async def run() -> None:
            for offset in self.offsets[self.committed :]:
                await carrier.handle(SourceRecord("in", 0, offset, None, b""))
                self.committed = self.offsets.index(offset) + 1

        try:
            asyncio.run(run())
        except Crash:
            return table.rows
        return table.rows


@given(
    offsets=st.sets(st.integers(0, 40), min_size=1, max_size=8).map(sorted),
    lives=st.lists(st.tuples(st.integers(0, 30), st.booleans(), st.integers(0, 3)), max_size=8),
)
def test_decisions_come_out_once_and_equal_wherever_the_worker_is_killed(offsets, lives):
    world, calm = World(list(offsets)), World(list(offsets))
    calm.work(10**6)
    local = None
    for steps, warm, uncommitted in lives:
        local = world.work(steps, local=local if warm else None)
        # Faust commits some time after the acknowledgement: a restart sees older records again.
        world.committed = max(0, world.committed - uncommitted)
    world.work(10**6, local=local)
    assert list(dict.fromkeys(world.sent)) == list(dict.fromkeys(calm.sent))
    assert Table(world.changelog, Killer(0)).rows == Table(calm.changelog, Killer(0)).rows


def test_a_gap_that_holds_a_record_stops_the_worker_before_the_acknowledgement():
    world = World([0, 1, 2])
    table = Table([], Killer(10**6))
    outputs = {"out": Output(Killer(10**6), world.sent)}
    carrier = Carrier(None, table, fold, Gaps(world.offsets), outputs)  # type: ignore[arg-type]
    asyncio.run(carrier.handle(SourceRecord("in", 0, 0, None, b"")))
    with pytest.raises(SkippedRecords, match="a record at 1 that did not come"):
        asyncio.run(carrier.handle(SourceRecord("in", 0, 2, None, b"")))
    assert len(world.sent) == 2


def test_commit_markers_are_gaps_without_records():
    world = World([0, 2, 5, 9])
    world.work(10**6)
    assert [value for key, value in world.sent if key == b"again"] == [
        b"1:0", b"2:2", b"3:5", b"4:9",
    ]  # fmt: skip
