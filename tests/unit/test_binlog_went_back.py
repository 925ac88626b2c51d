"""A binlog that goes back within one epoch: its shards stand wherever their streams stand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from shardmerge.agents.coordination import coordinator
from shardmerge.agents.coordination.decision_records import Step
from shardmerge.agents.tracking.tracker import TrackResult, command_with_schema
from shardmerge.schemas.model.names import TargetTable
from shardmerge.schemas.model.position import BEGINNING, SourcePosition
from shardmerge.schemas.records.decisions import Decision, Outcome
from shardmerge.schemas.records.operator_commands import CommandKind, OperatorCommand
from shardmerge.schemas.records.schema_changes import ChangeId
from shardmerge.spark_sink.barrier.applied import Applied, RowProgress
from shardmerge.spark_sink.barrier.decisions import Decisions, StatementKey
from shardmerge.spark_sink.barrier.gates import first_stop, key_stop
from shardmerge.spark_sink.barrier.restarts import BEGUN, UNDONE, Stage
from shardmerge.spark_sink.planning.plan import plan
from shardmerge.spark_sink.planning.sink_state import SinkState
from tests.unit.agents.tracking.tracked_source import CREATE, Source, shard
from tests.unit.spark_sink.decided import (
    A_ROWS,
    CONTRACTING,
    TARGET,
    A,
    B,
    at,
    decision,
    folded,
    rows,
    statement,
)

REREAD = SourcePosition(1, "binlog.000001", 4, 0)
"""Where the source is read anew, in a new epoch."""


class Line:
    """A source's statements and commands, decided, as the sink folds the decisions."""

    def __init__(self) -> None:
        self.source = Source()
        self.state = coordinator.initial(TargetTable("merged", "tbl"))
        self.decisions = Decisions()

    def run(self, ddl: str, pos: int, **more: Any) -> Decision:
        result: TrackResult = self.source.run(ddl, pos=pos, **more)
        (change,) = result.changes
        return self._taken(coordinator.decide(self.state, change))

    def command(self, kind: CommandKind, offset: int, argument: str = "") -> Decision:
        said = OperatorCommand(
            ChangeId("p.commands", offset), self.state.target, kind, shard("tbl00"), argument
        )
        said = command_with_schema(said, self.source.context)
        return self._taken(coordinator.obey(self.state, said, context=self.source.context))

    def _taken(self, step: Step) -> Decision:
        self.state = step.state
        assert step.decision is not None
        self.decisions.add(step.decision)
        return step.decision


@pytest.fixture
def line() -> Line:
    """A shard whose last two statements stand before its third."""
    line = Line()
    line.run(CREATE, 100)
    line.run("ALTER TABLE tbl00 ADD a INT", 500)
    held = line.run("ALTER TABLE tbl00 ADD b INT", 300)
    assert (held.outcome, held.code, held.position.pos) == (Outcome.HOLD, "SM-1107", 300)
    line.run("ALTER TABLE tbl00 ADD c INT", 400)
    return line


def test_what_tells_the_schema_again_stands_behind_every_gate(line: Line) -> None:
    told = line.command(
        CommandKind.SET_SCHEMA, 1, "CREATE TABLE t (ID INT PRIMARY KEY, b INT, c INT)"
    )
    assert told.released == (shard("tbl00"),)
    assert not line.state.held
    # Statements from before the furthest one of the source are held still.
    assert line.run("ALTER TABLE tbl00 ADD d INT", 450).outcome is Outcome.HOLD
    taken = line.run("CREATE TABLE tbl00 (ID INT PRIMARY KEY, x INT)", 4, snapshot=True, epoch=1)
    assert taken.released == (shard("tbl00"),)
    gates = line.decisions.targets[line.state.target].shards[shard("tbl00")].gates
    assert [gate.position for gate in gates] == sorted(gate.position for gate in gates)
    assert not line.run("ALTER TABLE tbl00 ADD y INT", 40, epoch=1).code


GONE_BACK = (
    decision(1, A, 10, snapshot=True),
    decision(2, A, 50, columns=("id", "c")),
    decision(3, A, 30, hold=True, columns=()),
)


def told(*statements: Any) -> Decision:
    """The operator tells the schema."""
    return decision(4, A, 50, *statements, columns=("id", "d"), releases=(A,))


def planned(decisions: Decisions, progress: RowProgress, *executed: StatementKey) -> Any:
    return plan(
        decisions, SinkState({TARGET: set(executed)}, rows=progress, safe_ends={A_ROWS: 10}), 100
    )


@pytest.mark.parametrize("place", [at(20), at(50), at(70)], ids=str)
def test_no_row_passes_wherever_it_stands(place: SourcePosition) -> None:
    decisions = folded(*GONE_BACK)
    (task,) = planned(decisions, rows({A_ROWS: Applied(3)})).tasks
    assert task.stream.stop == BEGINNING
    batch = planned(decisions, rows({A_ROWS: Applied(3, place)}))
    assert not batch.tasks
    (stop,) = batch.targets[0].stops.values()
    assert (stop.held, stop.position, stop.reason) == (True, at(50), "it conflicts")


def test_a_statement_waits_for_no_row_of_such_a_shard() -> None:
    """No row that is not applied counts as before its gates, so no DROP COLUMN needs it."""
    dropped = statement(CONTRACTING, "column:x")
    decisions = folded(*GONE_BACK, decision(4, A, 40, dropped, hold=True, columns=()))
    batch = planned(decisions, rows({A_ROWS: Applied(3, at(20))}))
    assert [each.key for each in batch.targets[0].ready] == [StatementKey(4, 0)]


def test_every_row_has_the_schema_that_was_told() -> None:
    decisions = folded(*GONE_BACK, told())
    progress = rows({A_ROWS: Applied(3, at(20))})
    (task,) = planned(decisions, progress).tasks
    segments = task.stream.segments
    assert segments[0].start == BEGINNING
    for segment in segments:
        assert [item.column.name for item in segment.columns] == ["id", "d"]
    stop = key_stop(decisions.targets[TARGET].shards[A], progress)
    assert stop is not None and stop[0] == 3, "not at the gate before which no row is left"


def test_rows_wait_for_the_statement_of_the_schema_that_was_told() -> None:
    decisions = folded(*GONE_BACK, told(statement(CONTRACTING, "column:x")))
    stop = first_stop(decisions.targets[TARGET].shards[A], frontier=4)
    assert stop is not None
    assert (stop.held, stop.rows_from) == (False, BEGINNING)


def test_rows_of_a_shard_that_was_taken_out_are_passed_over() -> None:
    left = replace(decision(4, A, 0, releases=(A,)), shard=None, leaves=(A,))
    (task,) = planned(folded(*GONE_BACK, left), rows({A_ROWS: Applied(3)})).tasks
    assert [(s.start, s.passed_over) for s in task.stream.segments] == [(BEGINNING, True)]


def restarted() -> Decisions:
    """The source is read again, in a new epoch."""
    anew = decision(4, A, 0, snapshot=True, columns=("id", "e"), releases=(A,))
    other = decision(5, B, 70)
    return folded(*GONE_BACK, replace(anew, position=REREAD, ts_ms=2_000), other)


def test_no_row_passes_until_a_row_of_the_new_snapshot_is_found() -> None:
    for place in (None, at(20), at(70)):
        batch = planned(restarted(), rows({A_ROWS: Applied(3, place)}))
        assert not batch.tasks
        assert [restart.stage for restart in batch.restarts] == [Stage.SOUGHT]


def test_a_row_that_was_refused_before_does_not_keep_the_snapshot_waiting() -> None:
    state = SinkState(
        {TARGET: set()}, rows=rows({A_ROWS: Applied(3)}), safe_ends={A_ROWS: 10},
        resting={A: at(20)},
    )  # fmt: skip
    assert [restart.shard for restart in plan(restarted(), state, 100).restarts] == [A]


def test_what_was_applied_is_taken_back_with_the_schemas_it_was_applied_with() -> None:
    begun = StatementKey(4, BEGUN)
    (task,) = planned(restarted(), rows({A_ROWS: Applied(3, at(20))}), begun).tasks
    assert (task.stream.undoes, task.stream.stop) == (True, None)
    assert (task.start_offset, task.end_offset) == (0, 3)
    names = [[c.column.name for c in segment.columns] for segment in task.stream.segments]
    assert names[:2] == [["id"], ["id", "c"]]


def test_the_rows_before_the_new_snapshot_are_skipped_then() -> None:
    marks = (StatementKey(4, BEGUN), StatementKey(4, UNDONE))
    (task,) = planned(restarted(), rows({A_ROWS: Applied(0, at(20))}), *marks).tasks
    assert [(s.start, s.undone) for s in task.stream.segments] == [(BEGINNING, True)]
    assert task.stream.stop == REREAD
