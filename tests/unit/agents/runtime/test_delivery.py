"""The carrier's steps, crashed between any two of them, on a table that forgets like Faust's."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardmerge.agents.handling import effects as journal
from shardmerge.agents.handling.effects import Effects, JournalEntry, Rows, Send, SourceRecord
from shardmerge.agents.runtime.delivery import Carrier, SkippedRecords

Change = tuple[bytes, bytes | None]
NEVER = 10**6


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


@dataclass
class Disk:
    """A worker's local rows, and up to where they are known to be in the changelog."""

    rows: dict[bytes, bytes] = field(default_factory=dict)
    persisted: int = 0

    def put(self, key: bytes, value: bytes | None) -> None:
        if value is None:
            self.rows.pop(key, None)
        else:
            self.rows[key] = value


class Table:
    """Rows that are there at once, and a changelog that gets them later, in order.

    Every change waits in ``pending`` until ``settle``. A new table is recovered as Faust does it:
    from the disk, and the changelog from the disk's offset on.
    """

    def __init__(self, changelog: list[Change], killer: Killer, disk: Disk | None = None) -> None:
        self.changelog = changelog
        self.killer = killer
        self.disk = disk if disk is not None else Disk()
        for key, value in changelog[self.disk.persisted :]:
            self.disk.put(key, value)
        self.disk.persisted = len(changelog)
        self.pending: list[Change] = []

    @property
    def rows(self) -> dict[bytes, bytes]:
        return self.disk.rows

    def get(self, key: bytes) -> bytes | None:
        return self.rows.get(key)

    def keys(self) -> Iterable[bytes]:
        return self.rows.keys()

    def __setitem__(self, key: bytes, value: bytes) -> None:
        self._put(key, value)

    def __delitem__(self, key: bytes) -> None:
        self._put(key, None)

    def _put(self, key: bytes, value: bytes | None) -> None:
        self.pending.append((key, value))  # Faust sends before it stores.
        self.killer.step()
        self.disk.put(key, value)

    def partition_for_key(self, key: bytes) -> int:
        return 0

    def send_changelog(self, partition: int, key: bytes, value: bytes | None) -> None:
        self.pending.append((key, value))

    async def settle(self) -> None:
        while self.pending:
            self.killer.step()
            self.changelog.append(self.pending.pop(0))
            self.killer.step()
            self.disk.persisted = len(self.changelog)


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
    """Source topics whose records stand at these offsets."""

    def __init__(self, offsets: Sequence[Sequence[int]]) -> None:
        self.offsets = offsets

    async def first_record(self, topic: str, partition: int, start_offset: int) -> int:
        return next(o for o in self.offsets[int(topic)] if o >= start_offset)


def fold(rows: Rows, record: SourceRecord) -> Effects:
    """Counts; every third record deletes a row; all write one row; each sends what it counted."""
    place = f"{record.topic}:{record.offset}"
    count = int(rows.get(b"count") or b"0") + 1
    puts: dict[bytes, bytes | None] = {b"count": str(count).encode()}
    puts[b"odd"] = None if count % 3 == 0 else str(count).encode()
    puts[b"of " + record.topic.encode()] = place.encode()
    puts[b"told"] = (rows.get(b"told") or b"") + place.encode()
    text = f"{count} of {place} after {(rows.get(b'told') or b'').decode()}".encode()
    return Effects(puts, (Send("out", place.encode(), text), Send("out", b"again", text)))


class World:
    """Kafka: source topics, changelog, output; workers come and go."""

    def __init__(self, offsets: Sequence[Sequence[int]]) -> None:
        self.offsets = offsets
        self.committed = [0 for _ in offsets]
        self.changelog: list[Change] = []
        self.sent: list[tuple[bytes, bytes]] = []

    def work(
        self,
        steps: int = NEVER,
        *,
        order: Sequence[int] = (),
        disk: Disk | None = None,
        acknowledged: int = 0,
        together: int = 1,
    ) -> None:
        """One worker's life of so many steps.

        Args:
            steps: Puts, acknowledgements and sends before it is killed.
            order: From which topic each record comes; after that, topic by topic.
            disk: Where it keeps its rows; a new one if None.
            acknowledged: How many of the changelog records that are under way when it is killed
                arrive all the same.
            together: How many records come at once.
        """
        killer = Killer(steps)
        table = Table(self.changelog, killer, disk)
        outputs = {"out": Output(killer, self.sent)}
        carrier = Carrier(table, fold, Gaps(self.offsets), outputs)  # type: ignore[arg-type]
        everything = [t for t, offsets in enumerate(self.offsets) for _ in offsets]

        async def run() -> None:
            read = list(self.committed)
            came = []
            for topic in (*order, *everything):
                if (at := read[topic]) < len(self.offsets[topic]):
                    came.append(record(topic, self.offsets[topic][at]))
                    read[topic] = at + 1
            for begin in range(0, len(came), together):
                group = came[begin : begin + together]
                await carrier.handle(*group)
                for each in group:
                    self.committed[int(each.topic)] += 1

        try:
            asyncio.run(run())
        except Crash:
            self.changelog += table.pending[:acknowledged]
        else:
            self.changelog += table.pending

    def check(self) -> None:
        """What was sent and stored is what the fold says of the records, in the order they came."""
        found: dict[bytes, set[bytes]] = {}
        for key, value in self.sent:
            if key != b"again":
                found.setdefault(key, set()).add(value)
        rows: dict[bytes, bytes] = {}
        expected: dict[bytes, set[bytes]] = {}
        agains = []
        for place in found:
            topic, offset = place.split(b":")
            effects = fold(rows, record(int(topic), int(offset)))
            stored = Disk(rows)
            for row, put in effects.puts.items():
                stored.put(row, put)
            expected[place] = {effects.sends[0].value}
            agains.append(effects.sends[1].value)
        assert found == expected
        assert list(dict.fromkeys(v for k, v in self.sent if k == b"again")) == agains
        assert len(found) == sum(map(len, self.offsets))
        kept = Table(self.changelog, Killer(0)).rows
        assert {k: v for k, v in kept.items() if not k.startswith(b"journal/")} == rows


def record(topic: int, offset: int) -> SourceRecord:
    return SourceRecord(str(topic), 0, offset, None, b"")


lives = st.tuples(
    st.integers(0, 45),
    st.lists(st.integers(0, 1), max_size=6),
    st.sampled_from(["a", "b", None]),
    st.integers(0, 6),
    st.tuples(st.integers(0, 3), st.integers(0, 3)),
    st.integers(1, 4),
)


@given(
    offsets=st.lists(
        st.sets(st.integers(0, 40), min_size=1, max_size=5).map(sorted), min_size=2, max_size=2
    ),
    lived=st.lists(lives, max_size=8),
)
def test_effects_come_out_once_and_equal_wherever_workers_are_killed(offsets, lived):
    world = World(offsets)
    disks = {"a": Disk(), "b": Disk()}
    for steps, order, name, acknowledged, uncommitted, together in lived:
        disk = None if name is None else disks[name]
        world.work(steps, order=order, disk=disk, acknowledged=acknowledged, together=together)
        # Faust commits some time after the acknowledgement: a restart sees older records again.
        world.committed = [max(0, c - u) for c, u in zip(world.committed, uncommitted, strict=True)]
    world.work(disk=disks["a"])
    world.check()


def test_a_record_that_is_repeated_does_not_undo_a_later_one_of_another_topic():
    world = World([[0], [0]])
    world.work(order=[0, 1])
    sent = list(world.sent)
    world.committed = [0, 1]
    world.work()
    assert world.sent == sent
    world.check()


@pytest.mark.parametrize("steps", range(24))
def test_what_was_interrupted_is_completed_before_a_new_record_of_another_topic(steps):
    world, disk = World([[0], [0, 1]]), Disk()
    world.work(steps, order=[1, 0], disk=disk, acknowledged=steps % 7)
    world.work(order=[1, 1, 0], disk=disk)
    world.check()


def test_a_record_is_at_hand_in_the_changelog_before_anything_is_done_for_it():
    """Else another worker would fold it again, onto rows that this one's disk still has."""
    world, disk = World([[0]]), Disk()
    world.work(2, disk=disk)
    assert (world.sent, set(disk.rows)) == ([], {journal.at_hand_key(0)})
    world.work()
    assert disk.rows.keys() == {journal.at_hand_key(0)}
    world.check()


def test_effects_that_a_table_of_the_first_format_kept_in_its_journal_are_performed():
    world = World([[0]])
    key = journal.journal_key("0", 0)
    first = JournalEntry(0, fold({}, record(0, 0)))
    world.changelog.append((key, journal.to_bytes(first)))
    world.work()
    world.check()
    world.committed = [0]
    sent = list(world.sent)
    world.work()
    assert world.sent == sent


def test_a_gap_that_holds_a_record_stops_the_worker_before_the_acknowledgement():
    sent: list[tuple[bytes, bytes]] = []
    table, outputs = Table([], Killer(NEVER)), {"out": Output(Killer(NEVER), sent)}
    carrier = Carrier(table, fold, Gaps([[0, 1, 2]]), outputs)  # type: ignore[arg-type]
    asyncio.run(carrier.handle(record(0, 0)))
    with pytest.raises(SkippedRecords, match="a record at 1 that did not come"):
        asyncio.run(carrier.handle(record(0, 2)))
    assert len(sent) == 2


class Unread:
    """Source topics that must not be read again."""

    async def first_record(self, topic: str, partition: int, start_offset: int) -> int:
        raise AssertionError(f"{topic} was read again from {start_offset} on")


def test_a_gap_of_which_the_consumer_knows_that_it_is_empty_is_not_read_again():
    sent: list[tuple[bytes, bytes]] = []
    table, outputs = Table([], Killer(NEVER)), {"out": Output(Killer(NEVER), sent)}
    carrier = Carrier(table, fold, Unread(), outputs)  # type: ignore[arg-type]
    asyncio.run(carrier.handle(record(0, 0), replace(record(0, 2), empty_since=1)))
    asyncio.run(carrier.handle(replace(record(0, 5), empty_since=3)))
    assert [key for key, _ in sent if key != b"again"] == [b"0:0", b"0:2", b"0:5"]


def test_a_gap_of_which_the_consumer_knows_only_the_end_is_read_again():
    sent: list[tuple[bytes, bytes]] = []
    table, outputs = Table([], Killer(NEVER)), {"out": Output(Killer(NEVER), sent)}
    carrier = Carrier(table, fold, Gaps([[0, 1, 3]]), outputs)  # type: ignore[arg-type]
    with pytest.raises(SkippedRecords, match="a record at 1 that did not come"):
        asyncio.run(carrier.handle(record(0, 0), replace(record(0, 3), empty_since=2)))


def test_records_before_a_gap_that_holds_a_record_are_performed():
    sent: list[tuple[bytes, bytes]] = []
    table, outputs = Table([], Killer(NEVER)), {"out": Output(Killer(NEVER), sent)}
    carrier = Carrier(table, fold, Gaps([[0, 1, 2, 3]]), outputs)  # type: ignore[arg-type]
    with pytest.raises(SkippedRecords, match="a record at 2 that did not come"):
        asyncio.run(carrier.handle(record(0, 0), record(0, 1), record(0, 3)))
    assert [key for key, _ in sent if key != b"again"] == [b"0:0", b"0:1"]
    assert carrier.completed == 0
    assert carrier.next_offsets == {("0", 0): 0}


def test_records_that_come_together_wait_twice_for_the_broker():
    class Counting(Table):
        settled = 0

        async def settle(self) -> None:
            Counting.settled += 1
            await super().settle()

    sent: list[tuple[bytes, bytes]] = []
    outputs = {"out": Output(Killer(NEVER), sent)}
    table = Counting([], Killer(NEVER))
    carrier = Carrier(table, fold, Gaps([range(250)]), outputs)  # type: ignore[arg-type]
    asyncio.run(carrier.handle(*(record(0, offset) for offset in range(10))))
    assert (Counting.settled, len(sent), carrier.completed) == (2, 20, 10)
    asyncio.run(carrier.handle(*(record(0, offset) for offset in range(10, 250))))
    assert Counting.settled == 2 + 2 * 3  # a group has at most 100 records
    assert carrier.next_offsets == {("0", 0): 250}


def test_a_request_is_sent_when_what_it_is_about_is_acknowledged():
    """Else rows that it asks for can be there before the decision that says what they wait for."""
    events: list[str] = []

    class Slow:
        def __init__(self, name: str) -> None:
            self.name = name

        async def send(self, *, key: bytes, value: bytes, headers: Any) -> Any:
            events.append(f"{self.name} sent")
            return asyncio.ensure_future(self._acknowledge())

        async def _acknowledge(self) -> None:
            await asyncio.sleep(0)
            events.append(f"{self.name} acknowledged")

    def asking(rows: Rows, record: SourceRecord) -> Effects:
        return Effects(sends=(Send("signals", b"k", b"v"), Send("ddl", b"k", b"v")))

    carrier = Carrier(
        Table([], Killer(NEVER)), asking, Gaps([[0]]),  # type: ignore[arg-type]
        {name: Slow(name) for name in ("ddl", "signals")}, later=["signals"],
    )  # fmt: skip
    asyncio.run(carrier.handle(record(0, 0)))
    assert events == ["ddl sent", "ddl acknowledged", "signals sent", "signals acknowledged"]


def test_commit_markers_are_gaps_without_records():
    world = World([[0, 2, 5, 9]])
    world.work()
    assert [key for key, _ in world.sent if key != b"again"] == [b"0:0", b"0:2", b"0:5", b"0:9"]
    world.check()
