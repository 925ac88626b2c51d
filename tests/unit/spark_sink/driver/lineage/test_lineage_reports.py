"""What the driver's loop reports, and when."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import count
from typing import Any, Literal, cast

import pytest

from shardmerge.schemas.model.names import TargetTable
from shardmerge.schemas.model.server_context import ServerContext
from shardmerge.schemas.model.tables import Column
from shardmerge.schemas.records.decisions import TargetStatement
from shardmerge.spark_sink.barrier.decisions import StatementKey
from shardmerge.spark_sink.barrier.statements import OpenStatement, StatementState
from shardmerge.spark_sink.driver.lineage.lineage_reports import LineageReports
from shardmerge.spark_sink.driver.statement_runs import StatementResult
from shardmerge.spark_sink.lineage.reports import (
    Report,
    RunState,
    ShardFeed,
    StatementReport,
    TargetReport,
)
from shardmerge.spark_sink.targets.interface import JournalEntry
from tests.unit.spark_sink.decided import TARGET, A, B, decision, folded, key, statement
from tests.unit.spark_sink.lineage.lined import INT, addition, creation

CREATION, ADDITION = creation(Column("id", INT)), addition("c")


@dataclass
class Box:
    """An outbox that nobody empties."""

    reports: list[Report] = field(default_factory=list)
    lost: set[TargetTable] = field(default_factory=set)
    begun: set[str] = field(default_factory=set)

    def put(self, report: Report) -> None:
        self.reports.append(report)

    def take(self) -> list[Any]:
        found, self.reports = self.reports, []
        return found

    def take_lost(self) -> set[TargetTable]:
        lost, self.lost = self.lost, set()
        return lost

    def has_begun(self, run_id: str) -> bool:
        return run_id in self.begun


@pytest.fixture
def box() -> Box:
    return Box()


@pytest.fixture
def now() -> list[float]:
    return [100.0]


@pytest.fixture
def reports(box: Box, now: list[float]) -> LineageReports:
    ids = count(1)
    return LineageReports(
        cast(Any, box), ServerContext(), 60, clock=lambda: now[0],
        now_ms=lambda: int(now[0] * 1000), new_id=lambda: f"id {next(ids)}",
    )  # fmt: skip


def done(
    key_: StatementKey, made: TargetStatement, state: Literal["done", "refused"] = "done"
) -> StatementResult:
    opened = OpenStatement(key_, made, StatementState.READY)
    return StatementResult(TARGET, opened, 500, JournalEntry(state))


DECIDED = folded(decision(1, A, 10, CREATION), decision(2, B, 10, columns=("id", "c")))
EXECUTED = {TARGET: {key(1)}}


def test_a_target_begins_with_everything_and_goes_on_with_rows(
    reports: LineageReports, box: Box, now: list[float]
) -> None:
    reports.step(DECIDED, EXECUTED, {})
    [start] = box.take()
    assert (start.state, start.rows) == (RunState.START, 0)
    assert {feed.shard for feed in start.feeds} == {A, B}
    assert [c.name for c in start.table.columns] == ["id"]
    now[0] += 59
    reports.step(DECIDED, EXECUTED, {TARGET: 5})
    assert box.take() == []
    now[0] += 1
    reports.step(DECIDED, EXECUTED, {TARGET: 7})
    assert box.take() == [TargetReport(TARGET, start.run_id, RunState.RUNNING, 160_000, 7)]
    now[0] += 60
    reports.step(DECIDED, EXECUTED, {TARGET: 7})
    assert box.take() == []


def test_only_shards_that_have_changed_are_told_again(
    reports: LineageReports, box: Box, now: list[float]
) -> None:
    decided = folded(decision(1, A, 10, CREATION), decision(2, B, 10))
    reports.step(decided, EXECUTED, {})
    box.take()
    decided.add(decision(3, B, 20, columns=("id", "x")))
    now[0] += 60
    reports.step(decided, EXECUTED, {})
    [running] = box.take()
    assert (running.state, [feed.shard for feed in running.feeds]) == (RunState.RUNNING, [B])


def test_a_statement_is_told_at_once_and_its_target_soon(
    reports: LineageReports, box: Box, now: list[float]
) -> None:
    decided = folded(decision(1, A, 10, CREATION), decision(2, A, 20, ADDITION))
    reports.executed(done(key(1), CREATION), decided, EXECUTED, {})
    start, create = box.take()
    assert (start.state, create.parent_id) == (RunState.START, start.run_id)
    assert [c.name for c in create.table.columns] == ["id"]
    both = {TARGET: {key(1), key(2)}}
    reports.executed(done(key(2), ADDITION), decided, both, {})
    [add] = box.take()
    assert isinstance(add, StatementReport)
    assert (add.ended_ms - add.began_ms, add.key) == (500, key(2))
    assert add.decision == decided.record(TARGET, 2)
    assert add.decision is not None
    assert add.feed == ShardFeed(A, add.decision.columns)
    assert [c.name for c in add.table.columns] == ["id", "c"]
    now[0] += 1
    reports.step(decided, both, {})
    [running] = box.take()
    assert [c.name for c in running.table.columns] == ["id", "c"]


def test_a_statement_that_the_target_refused_is_no_event(reports: LineageReports, box: Box) -> None:
    reports.executed(done(key(1), CREATION, "refused"), DECIDED, {}, {})
    assert box.take() == []


def test_a_lost_report_is_told_again_whole(
    reports: LineageReports, box: Box, now: list[float]
) -> None:
    """As a start, if the server knows nothing of the run."""
    reports.step(DECIDED, EXECUTED, {})
    [start] = box.take()
    box.lost = {TARGET}
    now[0] += 60
    reports.step(DECIDED, EXECUTED, {})
    [again] = box.take()
    assert (again.state, again.run_id, again.feeds) == (RunState.START, start.run_id, start.feeds)
    box.lost, box.begun = {TARGET}, {start.run_id}
    now[0] += 60
    reports.step(DECIDED, EXECUTED, {})
    [again] = box.take()
    assert (again.state, again.feeds) == (RunState.RUNNING, start.feeds)


def test_every_run_ends(reports: LineageReports, box: Box) -> None:
    reports.step(DECIDED, EXECUTED, {TARGET: 3})
    box.take()
    reports.end(RunState.FAIL, {TARGET: 9}, "no way")
    [end] = box.take()
    assert (end.state, end.rows, end.error) == (RunState.FAIL, 9, "no way")


def test_statements_that_make_no_table_only_leave_types_out(
    reports: LineageReports, box: Box, caplog: pytest.LogCaptureFixture
) -> None:
    decided = folded(decision(1, A, 10, ADDITION))
    reports.step(decided, {TARGET: {key(1)}}, {})
    [start] = box.take()
    assert (start.table.columns, start.table.names) == ((), {"c#1": "c"})
    assert "lineage_table_unknown" in caplog.text
    unknown = statement(ADDITION.kind)
    reports.executed(done(key(1), unknown), decided, {TARGET: {key(1)}}, {})
    assert box.take()[0].table.columns == ()
