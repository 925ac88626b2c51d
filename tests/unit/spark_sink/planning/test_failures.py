"""Batches whose tasks fail: what is told of that, and until when."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

import pytest

from shardmerge.schemas.model.errors import ContractError, TargetError
from shardmerge.schemas.model.names import ShardId, TargetTable
from shardmerge.schemas.model.position import BEGINNING
from shardmerge.schemas.pipeline.settings import Kafka
from shardmerge.schemas.records.progress import FailureProgress, SinkProgress
from shardmerge.spark_sink.barrier.closing import Closing, Marks
from shardmerge.spark_sink.barrier.partitions import Partition
from shardmerge.spark_sink.driver import batch_runs
from shardmerge.spark_sink.driver.loop import Driver
from shardmerge.spark_sink.kafka.intake import Intake
from shardmerge.spark_sink.kafka.windows.window import Kept
from shardmerge.spark_sink.planning.failures import failing_after
from shardmerge.spark_sink.planning.ranges import (
    RangeResult,
    RangeTask,
    Segment,
    ShardStream,
    TaskFailure,
)
from shardmerge.spark_sink.targets.mysql.session import MySqlAddress
from shardmerge.spark_sink.targets.mysql.tasks import task_runs
from shardmerge.spark_sink.targets.mysql.tasks.connection import ApplyConfig
from tests.unit.spark_sink.decided import TARGET, A, decision
from tests.unit.spark_sink.kafka.played_topics import PIPELINE, Offsets

OTHER = TargetTable("merged", "u")
AWAY = TaskFailure("the target is away", "start it", target=TARGET, code="SM-3111")


def task(topic: str, number: int = 0, target: TargetTable = TARGET) -> RangeTask:
    stream = ShardStream(ShardId("s", "d", topic), target, (Segment(BEGINNING, (), ()),), None)
    return RangeTask(topic, number, 0, 10, stream, {}, 1)


def result(of: RangeTask) -> RangeResult:
    return RangeResult(of.topic, of.partition, of.start_offset, of.end_offset, None, 10, 10, 0)


def test_a_failure_is_counted_until_a_batch_ends() -> None:
    one, two, three = task("a", 0), task("a", 1), task("a", 2)
    first = failing_after({}, [one, two, three], {one.place}, [AWAY])
    assert first == {
        TARGET: FailureProgress(
            "the target is away", "start it", "a/1 and 1 more", 1, code="SM-3111"
        )
    }
    again = failing_after(first, [two], (), [TaskFailure("gone", code="SM-3113")])
    assert again == {TARGET: FailureProgress("gone", "", "a/1", 2, code="SM-3113")}
    assert failing_after(again, [two], {two.place}, []) == {}
    assert failing_after(again, [], (), []) == {}, "what was to be applied is committed, or waits"
    assert failing_after(again, [], (), [], busy={TARGET}) == again


def test_the_rows_behind_another_target_s_failure_tell_whose_it_is() -> None:
    one, two = task("a"), task("b", target=OTHER)
    found = failing_after({}, [one, two], (), [AWAY])
    assert found[TARGET].message == "the target is away"
    assert found[OTHER].message == "the batch ended with a failure of merged.t: the target is away"
    assert failing_after({}, [one, two], {two.place}, [AWAY]).keys() == {TARGET}
    own = TaskFailure("full", target=OTHER)
    assert failing_after({}, [one, two], (), [AWAY, own])[OTHER].message == "full"
    whole = TaskFailure("Spark's job failed")
    assert {f.message for f in failing_after({}, [one, two], (), [whole]).values()} == {
        whole.message
    }


def test_the_tasks_of_a_worker_tell_whose_rows_they_could_not_apply(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def apply_tasks(
        tasks: Sequence[RangeTask], config: object, is_safe: object
    ) -> Iterator[RangeResult]:
        for one in tasks:
            if one.topic == "bad":
                raise TargetError("no", retryable=True)
            yield result(one)

    monkeypatch.setattr(task_runs, "apply_tasks", apply_tasks)
    units = [[task("a")], [task("b"), task("bad", target=OTHER), task("c")]]
    *_, last = task_runs.run_tasks(
        units, ApplyConfig(Kafka(""), MySqlAddress("", 0, "", ""), "", "")
    )
    assert last == TaskFailure("no", target=OTHER)


class Tail:
    """Nothing new."""

    def read(self, timeout_s: float) -> Iterable[object]:
        return ()


class Target:
    """A target's state and batches; ``fails`` says what comes of a batch."""

    def __init__(self) -> None:
        self.fails: TaskFailure | None = AWAY
        self.is_away = False
        self.stored: dict[Partition, int] = {}
        self.closed: dict[TargetTable, Closing] = {}
        self.swapped = 0
        self.expected: list[Mapping[Partition, int]] = []

    def bound(self, records: int) -> int:
        return records

    def expect(self, starts: Mapping[Partition, int], seen: Mapping[Partition, Kept]) -> None:
        self.expected.append(starts)

    def run(
        self, tasks: Sequence[RangeTask], is_safe: Callable[[], bool]
    ) -> Iterator[RangeResult | TaskFailure]:
        if self.fails is not None:
            yield self.fails
            return
        for one in tasks:
            self.stored[one.place] = one.end_offset
            yield result(one)

    def epoch(self) -> int:
        if self.is_away:
            raise TargetError("away", retryable=True)
        return 1

    def offsets(self) -> dict[Partition, int]:
        return self.stored

    def rows(self) -> dict[TargetTable, int]:
        return {}

    def marks(self) -> Marks:
        if self.is_away:
            raise TargetError("away", retryable=True)
        return Marks(self.closed, self.swapped)

    def keep_row_topics(self, epoch: int, topics: object) -> None: ...


class Published:
    """The records that the driver offers."""

    def __init__(self) -> None:
        self.records: list[SinkProgress] = []

    def is_due(self, target: TargetTable) -> bool:
        return True

    def offer(self, record: SinkProgress) -> SinkProgress:
        self.records.append(record)
        return record

    def is_due_soon(self, target: TargetTable) -> bool:
        return True

    def took(self, target: TargetTable, seconds: float) -> None:
        pass


class NoStatements:
    busy: frozenset[TargetTable] = frozenset()


def driver_of(intake: Intake, target: object, published: Published) -> Driver:
    """A driver of a pipeline in which one shard is decided, and that is read."""
    intake.decisions.add(decision(1, A, 0, offset=0))
    intake.barriers.tails["s1"].record(0)
    intake.barriers.tails["s1"].reached(10)
    return Driver(
        PIPELINE,
        intake=intake,
        control=cast(Any, target),
        journal=cast(Any, None),
        statements=cast(Any, NoStatements()),
        runner=cast(Any, target),
        publisher=cast(Any, published),
        epoch=1,
    )


@pytest.fixture
def sink(monkeypatch: pytest.MonkeyPatch) -> tuple[Driver, Target, Published]:
    """A driver with ten rows to apply, whose target fails."""
    monkeypatch.setattr(batch_runs, "FAILURE_PAUSE_S", 0.0)
    intake = Intake(PIPELINE, cast(Any, Offsets()), cast(Any, Tail()))
    target, published = Target(), Published()
    return driver_of(intake, target, published), target, published


def test_a_sink_that_fails_again_and_again_says_so_and_that_it_goes_on(
    sink: tuple[Driver, Target, Published],
) -> None:
    driver, target, published = sink
    for times in (1, 2):
        driver.step(0)
        last = FailureProgress(
            "the target is away", "start it", "s1.app.a/0", times, code="SM-3111"
        )
        assert published.records[-1].failure == last
    target.fails = None
    assert driver.step(0)
    assert published.records[-1].failure is None
    assert published.records[-1].shards[0].offset == 10


def test_a_failure_is_told_although_the_target_cannot_be_asked_what_is_committed(
    sink: tuple[Driver, Target, Published],
) -> None:
    driver, target, published = sink
    target.is_away = True
    with pytest.raises(TargetError, match="away"):
        driver.step(0)
    assert published.records[-1].failure is not None


def test_rows_that_were_committed_before_the_target_went_away_are_not_applied_again(
    sink: tuple[Driver, Target, Published],
) -> None:
    driver, target, published = sink
    target.is_away = True
    target.stored[Partition("s1.app.a", 0)] = 10  # the answer to the COMMIT is lost
    with pytest.raises(TargetError, match="away"):
        driver.step(0)
    target.is_away = False
    target.fails = TaskFailure("another writer moved s1.app.a/0", "only one sink may run")
    driver.step(0)
    assert published.records[-1].failure is None


def test_a_failure_that_no_try_can_mend_ends_the_sink(
    sink: tuple[Driver, Target, Published],
) -> None:
    driver, target, _ = sink
    target.fails = TaskFailure("the topic is another one", "merge again", final=True)
    with pytest.raises(ContractError, match="another one"):
        driver.step(0)
