from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import Any, cast

import pytest

from shardmerge.spark_sink.barrier.partitions import Partition
from shardmerge.spark_sink.kafka.waits import Waits
from shardmerge.spark_sink.kafka.windows.window import Kept

ROWS, DDL = Partition("rows", 0), Partition("p.ddl", 0)
ENDS = {ROWS: 10}


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Tail:
    """A tail that has read everything, unless ``read`` is None."""

    def __init__(self) -> None:
        self.read: dict[str, int] | None = {DDL.topic: 3}
        self.is_asleep = False
        self.silent_s = 9.0

    def places(self) -> dict[str, int] | None:
        return self.read

    def sleep(self) -> None:
        self.is_asleep = True

    def wake(self) -> None:
        self.is_asleep = False


class Told:
    """Arrivals: ``ends_after`` seconds end a wait, ``is_wanted`` says whether for the tail."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.complete = True
        self.ends_after: float | None = None
        self.is_wanted = False
        self.followed: dict[Partition, int] = {}
        self.waits: list[tuple[float, bool]] = []
        self.closed = 0
        self.rows_of: dict[Partition, int] = {}
        self.seen: dict[Partition, Kept] = {}

    def follow(self, rows: Mapping[Partition, int], own: Mapping[Partition, int]) -> bool:
        self.followed = {**rows, **own}
        return self.complete

    def wait(self, timeout_s: float, *, rows: bool) -> bool:
        self.waits.append((timeout_s, rows))
        self.clock.now += timeout_s if self.ends_after is None else self.ends_after
        return self.is_wanted and self.ends_after is not None

    def take_found(self, known: Mapping[Partition, object]) -> AbstractSet[Partition]:
        return {*known, ROWS}

    def close(self) -> None:
        self.closed += 1


@pytest.fixture
def parts() -> tuple[Waits, Tail, Told]:
    clock, tail = Clock(), Tail()
    told = Told(clock)
    return Waits(cast(Any, tail), cast(Any, told), clock), tail, told


def test_an_idle_sink_waits_for_rows_while_its_tail_sleeps(
    parts: tuple[Waits, Tail, Told],
) -> None:
    waits, tail, told = parts
    waits.wait(0.5, ENDS, lacks=False)
    assert (told.followed, told.waits) == ({ROWS: 10, DDL: 3}, [(0.5, True)])
    assert tail.is_asleep


def test_a_busy_sink_leaves_its_tail_as_it_is_and_waits_for_no_row(
    parts: tuple[Waits, Tail, Told],
) -> None:
    waits, tail, told = parts
    assert waits.wait(0.2, None, lacks=False) == 0.2, "the tail waits itself"
    assert told.waits == []
    waits.wait(0.5, ENDS, lacks=False)
    waits.wait(0.2, None, lacks=False)
    assert told.waits == [(0.5, True), (0.2, False)]
    assert tail.is_asleep


def test_a_tail_that_has_more_to_read_stays_awake(parts: tuple[Waits, Tail, Told]) -> None:
    waits, tail, told = parts
    tail.read = None
    assert waits.wait(0.5, ENDS, lacks=False) == 0.05
    assert not tail.is_asleep
    assert told.waits == []


def test_a_tail_that_had_a_record_just_now_stays_awake_while_arrivals_end_the_wait(
    parts: tuple[Waits, Tail, Told],
) -> None:
    waits, tail, told = parts
    tail.silent_s = 1.0
    assert waits.wait(0.5, ENDS, lacks=False) == 0.0
    assert (tail.is_asleep, told.waits) == (False, [(0.5, True)])
    told.ends_after, told.is_wanted = 0.01, True
    assert waits.wait(0.5, ENDS, lacks=False) == 0.05, "the tail reads the record"


def test_a_sleeping_tail_does_not_make_the_sink_spin_while_partitions_are_added(
    parts: tuple[Waits, Tail, Told],
) -> None:
    waits, tail, told = parts
    waits.wait(0.5, ENDS, lacks=False)
    told.complete = False
    waits.wait(0.5, ENDS, lacks=False)
    assert (tail.is_asleep, told.waits[-1]) == (True, (0.05, True))


def test_waits_are_short_while_arrivals_may_go_untold(parts: tuple[Waits, Tail, Told]) -> None:
    waits, tail, told = parts
    told.complete = False
    assert waits.wait(0.5, ENDS, lacks=False) == 0.05
    assert not tail.is_asleep
    told.complete = True
    waits.wait(0.5, ENDS, lacks=True)
    assert told.waits == [(0.25, True)]


def test_a_record_of_a_tailed_topic_wakes_the_tail_and_a_row_does_not(
    parts: tuple[Waits, Tail, Told],
) -> None:
    waits, tail, told = parts
    told.ends_after = 0.01
    waits.wait(0.5, ENDS, lacks=False)
    assert tail.is_asleep
    told.is_wanted = True
    waits.wait(0.5, ENDS, lacks=False)
    assert not tail.is_asleep


def test_a_sleeping_tail_is_woken_now_and_then(parts: tuple[Waits, Tail, Told]) -> None:
    waits, tail, told = parts
    for _ in range(9):
        waits.wait(0.5, ENDS, lacks=False)
        assert tail.is_asleep
    told.clock.now += 0.5
    waits.wait(0.5, ENDS, lacks=False)
    assert not tail.is_asleep


def test_who_does_not_tell_of_rows_three_times_in_a_row_is_renewed(
    parts: tuple[Waits, Tail, Told],
) -> None:
    waits, _, told = parts
    for rows_came in (True, True, False, True, True):
        waits.wait(0.5, ENDS, lacks=False)
        waits.check(rows_came)
    assert told.closed == 0
    told.ends_after, told.rows_of = 0.1, {ROWS: 11}
    waits.wait(0.5, ENDS, lacks=False)
    waits.check(True)
    assert told.closed == 0, "it told of them"
    told.ends_after, told.rows_of = None, {}
    waits.wait(0.5, ENDS, lacks=False)
    waits.check(True)
    assert told.closed == 1


@pytest.mark.parametrize(
    ("rows", "is_wanted", "ends", "complete", "saw_nothing"),
    [
        ({}, False, ENDS, True, True),
        ({ROWS: 11}, False, ENDS, True, False),
        ({}, True, ENDS, True, False),
        ({}, False, None, True, False),
        ({}, False, ENDS, False, False),
    ],
    ids=["nothing", "rows", "a decision", "rows would not have", "not sure"],
)
def test_a_wait_tells_whether_anything_would_have_ended_it(
    parts: tuple[Waits, Tail, Told],
    rows: dict[Partition, int],
    ends: dict[Partition, int] | None,
    *,
    is_wanted: bool,
    complete: bool,
    saw_nothing: bool,
) -> None:
    waits, _, told = parts
    told.rows_of, told.is_wanted, told.complete = rows, is_wanted, complete
    told.ends_after = 0.4995  # librdkafka counts milliseconds
    waits.wait(0.5, ends, lacks=False)
    assert waits.saw_nothing == saw_nothing
    assert waits.is_over_early == bool(ends is not None and (rows or is_wanted))


def test_what_arrived_meanwhile_is_collected_unless_it_must_wake_the_tail(
    parts: tuple[Waits, Tail, Told],
) -> None:
    waits, tail, told = parts
    assert waits.arrived({DDL: 3}) == {ROWS, DDL}
    assert told.waits == [(0.0, True)]
    tail.sleep()
    assert waits.arrived({DDL: 3}) == {ROWS, DDL}
    assert len(told.waits) == 1
