"""Rows that the target gets while Kafka is asked whether they are safe; Kafka and target played."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any, cast

import pytest

from shardmerge.schemas.model.errors import BarrierRegressed, StackError
from shardmerge.spark_sink.barrier.partitions import Partition
from shardmerge.spark_sink.driver.loop import Driver
from shardmerge.spark_sink.kafka.intake import Intake
from shardmerge.spark_sink.kafka.row_topics import RowTopic
from shardmerge.spark_sink.planning.ranges import RangeResult, RangeTask, TaskFailure
from tests.unit.spark_sink.decided import EXPANDING, A, decision, statement
from tests.unit.spark_sink.kafka.played_topics import PIPELINE, Asleep, Followed, Offsets
from tests.unit.spark_sink.planning.test_failures import (
    AWAY,
    NoStatements,
    Published,
    Target,
    driver_of,
)

ROWS = Partition("s1.app.a", 0)


class Asked(Offsets):
    """``told``: what happened, in order. ``meanwhile``: happens before an awaited answer."""

    def __init__(self, told: list[str]) -> None:
        super().__init__()
        self.told = told
        self.meanwhile: Callable[[], None] = lambda: None

    def high_watermarks_and_topics(
        self, partitions: Iterable[Partition], topics: Collection[str]
    ) -> tuple[dict[Partition, int], dict[str, RowTopic]]:
        self.told.append("asked and answered")
        return super().high_watermarks_and_topics(partitions, topics)

    def begin_asking(
        self, partitions: Iterable[Partition], topics: Collection[str]
    ) -> Callable[[], tuple[dict[Partition, int], dict[str, RowTopic]]]:
        self.told.append("asked")

        def answers() -> tuple[dict[Partition, int], dict[str, RowTopic]]:
            self.meanwhile()
            self.told.append("answered")
            return Offsets.high_watermarks_and_topics(self, partitions, topics)

        return answers


class Writing(Target):
    """Writes rows, and then asks whether they are safe; if it fails, it does not ask."""

    def __init__(self, told: list[str]) -> None:
        super().__init__()
        self.told = told
        self.fails = None

    def run(
        self, tasks: Sequence[RangeTask], is_safe: Callable[[], bool]
    ) -> Iterator[RangeResult | TaskFailure]:
        self.told.append("written")
        if self.fails is None:
            self.told.append("committed" if is_safe() else "rolled back")
        if self.told[-1] != "rolled back":
            yield from super().run(tasks, is_safe)


class Line:
    """A calm sink whose ten rows are applied."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.offsets, self.target = Asked(self.told), Writing(self.told)
        self.arrivals, self.published = Followed(), Published()
        self.intake = Intake(
            PIPELINE,
            cast(Any, self.offsets),
            cast(Any, Asleep()),
            arrivals=cast(Any, self.arrivals),
        )
        self.driver: Driver = driver_of(self.intake, self.target, self.published)
        while self.driver.step(1.0, idle=True):
            pass
        self.driver.step(1.0, idle=True)
        self.told.clear()

    def rows_arrive(self, end: int = 12) -> bool:
        """A round in which two more rows are seen; returns what ``step`` does."""
        self.offsets.ends["s1.app.a"] = end
        self.arrivals.rows_of = {ROWS: end}
        self.arrivals.found = {ROWS}
        try:
            return self.driver.step(1.0, idle=True)
        finally:
            self.arrivals.rows_of, self.arrivals.found = {}, set()

    @property
    def applied(self) -> int:
        return self.target.stored[ROWS]


@pytest.fixture
def line() -> Line:
    made = Line()
    assert made.applied == 10
    return made


def test_rows_are_written_while_kafka_is_asked_and_committed_after_its_answer(line: Line) -> None:
    assert line.rows_arrive()
    assert line.told == ["asked", "written", "answered", "committed"]
    assert line.applied == 12
    assert line.published.records[-1].shards[0].offset == 12


def test_rows_behind_a_schema_change_that_was_not_read_are_not_committed(line: Line) -> None:
    line.offsets.ends["s1"] = 11
    published = len(line.published.records)
    assert line.rows_arrive(), "another round follows at once"
    assert line.told == ["asked", "written", "answered", "rolled back"]
    assert line.applied == 10
    assert len(line.published.records) == published, "the plan is not told to anybody"

    line.driver.step(1.0, idle=True)
    assert line.applied == 10, "the change lacks its decision"
    line.intake.barriers.tails["s1"].reached(11)
    line.driver.step(1.0, idle=True)
    assert line.applied == 12


def test_rows_behind_a_decision_that_was_not_read_are_not_committed(line: Line) -> None:
    line.offsets.decided = 7
    line.rows_arrive()
    assert (line.told[-1], line.applied) == ("rolled back", 10)


def test_a_target_that_fails_on_rows_that_are_not_safe_does_not_matter(line: Line) -> None:
    line.offsets.ends["s1"] = 11
    line.target.fails = AWAY
    assert line.rows_arrive()
    assert line.told == ["asked", "written", "answered"]
    assert all(record.failure is None for record in line.published.records)


def test_rows_of_a_topic_that_was_made_anew_meanwhile_are_not_committed(line: Line) -> None:
    def make_anew() -> None:
        line.offsets.made = "other id"

    line.offsets.meanwhile = make_anew
    line.rows_arrive()
    assert (line.told[-1], line.applied) == ("rolled back", 10)


def test_without_an_answer_nothing_is_committed_and_the_next_rows_wait_for_one(line: Line) -> None:
    def away() -> None:
        raise StackError("Kafka is away")

    line.offsets.meanwhile = away
    assert not line.rows_arrive(), "it is tried again after a wait"
    assert line.told == ["asked", "written", "rolled back"]
    line.told.clear()
    line.driver.step(1.0, idle=True)
    assert line.told == ["asked and answered", "written", "committed"]
    assert line.applied == 12


def test_a_topic_of_schema_changes_that_went_back_ends_the_sink_and_commits_nothing(
    line: Line,
) -> None:
    line.offsets.ends["s1"] = 4
    with pytest.raises(BarrierRegressed):
        line.rows_arrive()
    assert line.applied == 10


def test_a_shard_with_a_change_that_lacks_decisions_waits_for_the_answer(line: Line) -> None:
    line.offsets.ends["s1"] = 11
    line.intake.barriers.tails["s1"].record(10)
    line.rows_arrive()
    assert line.told == ["asked and answered"]


def test_a_plan_that_would_do_more_than_apply_rows_waits_for_the_answer(
    line: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    def start(self: object, target: object, ready: object) -> None:
        line.told.append("altered")

    monkeypatch.setattr(NoStatements, "start", start, raising=False)
    line.intake.decisions.add(decision(2, A, 90, statement(EXPANDING, "x"), offset=1))
    line.intake.barriers.tails["s1"].record(1)
    line.rows_arrive()
    assert line.told == ["asked", "answered", "altered"]
