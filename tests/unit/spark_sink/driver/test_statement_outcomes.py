"""Which statements are executed and refused, from the journal and from what ended since."""

from __future__ import annotations

from typing import Any, cast

import pytest

from shardmerge.schemas.model.errors import TargetError, WriterReplaced
from shardmerge.spark_sink.barrier.statements import OpenStatement, Refused, StatementState
from shardmerge.spark_sink.driver.statement_outcomes import FAILURE_PAUSE_S, StatementOutcomes
from shardmerge.spark_sink.driver.statement_runs import StatementResult
from shardmerge.spark_sink.targets.interface import JournalEntry, taken_over
from tests.unit.spark_sink.decided import EXPANDING, TARGET, key, statement

DONE, REFUSED = JournalEntry("done"), JournalEntry("refused", "Duplicate column")


class Journal:
    def load(self) -> dict[object, JournalEntry]:
        return {
            (TARGET, 1, 0): DONE,
            (TARGET, 2, 0): REFUSED,
            (TARGET, 3, 0): JournalEntry("intent"),
        }


def ended(version: int, entry: JournalEntry | None, error: Exception | None = None) -> Any:
    done = OpenStatement(key(version), statement(EXPANDING), StatementState.READY)
    return StatementResult(TARGET, done, 5, entry, error)


@pytest.fixture
def now() -> list[float]:
    return [100.0]


@pytest.fixture
def outcomes(now: list[float]) -> StatementOutcomes:
    return StatementOutcomes(cast(Any, Journal()), 30.0, lambda: now[0])


def test_the_journal_tells_what_is_executed_and_what_is_to_be_tried_again(
    outcomes: StatementOutcomes,
) -> None:
    outcomes.load()
    assert outcomes.executed == {TARGET: {key(1)}}
    assert outcomes.refused() == {TARGET: {key(2): Refused("Duplicate column", resting=False)}}


def test_a_refused_statement_rests_until_it_is_tried_again(
    outcomes: StatementOutcomes, now: list[float]
) -> None:
    outcomes.take(ended(2, REFUSED))
    assert outcomes.refused()[TARGET][key(2)].resting
    now[0] += 30
    assert not outcomes.refused()[TARGET][key(2)].resting
    outcomes.take(ended(2, DONE))
    assert (outcomes.refused(), outcomes.executed) == ({TARGET: {}}, {TARGET: {key(2)}})


def test_a_target_that_is_away_is_tried_again_soon(
    outcomes: StatementOutcomes, now: list[float]
) -> None:
    outcomes.take(ended(2, None, TargetError("gone", retryable=True, code="SM-3111")))
    postponed = Refused("gone", resting=True, judged=False, code="SM-3111")
    assert outcomes.refused()[TARGET][key(2)] == postponed
    now[0] += FAILURE_PAUSE_S
    assert not outcomes.refused()[TARGET][key(2)].resting


def test_a_lock_wait_is_no_refusal_and_takes_none_back(outcomes: StatementOutcomes) -> None:
    busy = TargetError("Lock wait timeout exceeded", retryable=True, code="SM-3101")
    outcomes.take(ended(2, None, busy))
    assert not outcomes.refused()[TARGET][key(2)].judged
    outcomes.take(ended(2, REFUSED))
    outcomes.take(ended(2, None, busy))
    assert outcomes.refused()[TARGET][key(2)] == Refused(busy.message, resting=True, judged=True)


def test_a_writer_that_was_replaced_ends(outcomes: StatementOutcomes) -> None:
    with pytest.raises(WriterReplaced, match="took over"):
        outcomes.take(ended(2, None, taken_over(3, 2)))
    assert outcomes.refused() == {}


def test_a_refusal_keeps_its_own_code(outcomes: StatementOutcomes) -> None:
    outcomes.take(ended(4, JournalEntry("refused", "met", "SM-6806")))
    outcomes.take(ended(5, REFUSED))
    codes = {key.version: each.code for key, each in outcomes.refused()[TARGET].items()}
    assert codes == {4: "SM-6806", 5: "SM-3101"}
