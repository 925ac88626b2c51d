"""The driver follows the marks of targets that it may not change."""

from __future__ import annotations

from typing import Any, cast

import pytest

from shardmerge.schemas.model.errors import StateReplaced, TargetError
from shardmerge.spark_sink.barrier.closing import Closing, Marks
from shardmerge.spark_sink.driver.closed_targets import ClosedTargets
from shardmerge.spark_sink.kafka.intake import Intake
from tests.unit.spark_sink.decided import TARGET
from tests.unit.spark_sink.kafka.played_topics import PIPELINE, Offsets
from tests.unit.spark_sink.planning.test_failures import Published, Tail, Target, driver_of


class Clock:
    now = 0.0

    def __call__(self) -> float:
        self.now += 2.0
        return self.now


def test_the_driver_applies_nothing_to_a_closed_target_and_goes_on_when_it_is_opened(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("shardmerge.spark_sink.driver.closed_targets._LOOK_S", 0.0)
    target, published = Target(), Published()
    target.fails, target.closed = None, {TARGET: Closing.CUT_OVER}
    intake = Intake(PIPELINE, cast(Any, Offsets()), cast(Any, Tail()))
    driver = driver_of(intake, target, published)
    driver.step(0)
    assert not target.stored
    assert published.records[-1].shards[0].code == "SM-1617"
    target.closed = {}
    assert driver.step(0)
    assert list(target.stored.values()) == [10]
    assert published.records[-1].shards[0].waiting == ""


def test_what_ended_before_a_rebuilt_table_came_is_not_stored_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    target, intake = Target(), Intake(PIPELINE, cast(Any, Offsets()), cast(Any, Tail()))
    driver = driver_of(intake, target, Published())
    taken = list[float]()

    def take(wait_s: float) -> bool:
        taken.append(wait_s)
        return False

    monkeypatch.setattr(driver._loads, "take", take)
    target.swapped = 1
    with pytest.raises(StateReplaced):
        driver.step(0)
    assert taken == []


def test_a_target_that_is_away_keeps_its_marks() -> None:
    target = Target()
    target.closed = {TARGET: Closing.CUT_OVER}
    marks = ClosedTargets(cast(Any, target), Clock())
    marks.look()
    target.is_away = True
    marks.look()
    assert marks.targets == {TARGET: Closing.CUT_OVER}


def test_a_target_that_refuses_the_query_is_told() -> None:
    class Refusing(Target):
        def marks(self) -> Marks:
            raise TargetError("SELECT command denied")

    with pytest.raises(TargetError, match="denied"):
        ClosedTargets(cast(Any, Refusing())).look()


def test_the_marks_are_read_once_a_second() -> None:
    class Counting(Target):
        asked = 0

        def marks(self) -> Marks:
            self.asked += 1
            return Marks({}, 0)

    target = Counting()
    marks = ClosedTargets(cast(Any, target), lambda: 5.0)
    for _ in range(3):
        marks.look()
    assert target.asked == 1


def test_a_rebuilt_table_in_a_target_s_place_ends_what_the_driver_remembers() -> None:
    target = Target()
    target.swapped = 3
    marks = ClosedTargets(cast(Any, target), Clock())
    marks.load()
    target.closed = {TARGET: Closing.SWAPPING}
    marks.look()
    assert marks.targets == {TARGET: Closing.SWAPPING}
    target.closed, target.swapped = {}, 4
    with pytest.raises(StateReplaced, match="rebuild 4"):
        marks.look()
    assert marks.targets == {TARGET: Closing.SWAPPING}, "nothing is done with the target before"
