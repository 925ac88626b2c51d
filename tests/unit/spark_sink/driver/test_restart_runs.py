"""What is done about the rows of a shard that is described anew, where its route keeps rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

from shardmerge.schemas.model.policies import RowOperation
from shardmerge.schemas.pipeline.routing import RoutingRule
from shardmerge.schemas.pipeline.settings import Connect, Kafka, Pipeline, Source, Target
from shardmerge.spark_sink.barrier.applied import Applied
from shardmerge.spark_sink.barrier.decisions import Decisions, StatementKey
from shardmerge.spark_sink.barrier.restarts import VOID, Restart, Stage
from shardmerge.spark_sink.driver.restart_runs import RestartRuns
from shardmerge.spark_sink.planning.ranges import RowHold
from shardmerge.spark_sink.rows.decoding.row_format import JSON_ROWS
from tests.unit.spark_sink.decided import A_ROWS, TARGET, A, at, decision, folded, rows

PROGRESS = rows({A_ROWS: Applied(3, at(50))})


class Journal:
    """Keeps the notes."""

    def __init__(self) -> None:
        self.notes: list[tuple[int, int]] = []

    def note(self, _: object, version: int, ordinal: int, text: str) -> None:
        assert text
        self.notes.append((version, ordinal))


class Runs(RestartRuns):
    """Whether rows of the shard are applied is given, not read from topics."""

    has_nothing = False

    def _has_nothing(self, *_: object) -> bool:
        return self.has_nothing


def runs(journal: Journal, *ignored: RowOperation, snapshot: str = "debezium") -> Runs:
    rule = RoutingRule(".*", ".*", ".*", "merged", "t", ignore=ignored)
    pipeline = Pipeline(
        "p",
        Kafka("127.0.0.1:1"),
        Connect("http://127.0.0.1:1"),
        (Source(A.source, "127.0.0.1", 1, "u", "", 1, snapshot=snapshot),),
        (rule,),
        Target("127.0.0.1", 1, "u", ""),
    )
    nobody = cast(Any, None)
    return Runs(pipeline, cast(Any, journal), nobody, cast(Callable[[], Any], nobody),
                       JSON_ROWS)  # fmt: skip


def restarted(
    *, key: tuple[str, ...] = ("id",), reloads: bool = False
) -> tuple[Decisions, Restart]:
    """A shard that a snapshot described, and another one or a reload behind it."""
    first = replace(decision(1, A, 20, snapshot=True), ts_ms=1_000, key=key)
    decisions = folded(first, replace(decision(2, A, 50, snapshot=True), ts_ms=2_000, key=key))
    gate = replace(decisions.targets[TARGET].shards[A].gates[1], reloads=reloads)
    return decisions, Restart(TARGET, A, gate, 1, Stage.FOUND, mates=(A,))


def ordered() -> tuple[Decisions, Restart]:
    """A shard whose load an operator orders; its gate stands before rows that are applied."""
    decisions, restart = restarted(reloads=True)
    return decisions, replace(restart, gate=replace(restart.gate, loads=True))


def carried_out(journal: Journal, decisions: Decisions, restart: Restart) -> Any:
    return runs(journal, RowOperation.DELETE).carry_out(restart, decisions, {}, PROGRESS)


def test_rows_that_a_route_keeps_stay_when_a_snapshot_begins_again() -> None:
    journal = Journal()

    assert carried_out(journal, *restarted()) == StatementKey(2, VOID)

    assert journal.notes == [(2, VOID)]


def test_a_shard_is_held_where_its_kept_rows_would_be_lost() -> None:
    for decisions, restart in (restarted(reloads=True), restarted(key=())):
        journal = Journal()
        held = carried_out(journal, decisions, restart)
        assert isinstance(held, RowHold)
        assert (held.shard, held.position, held.offset) == (A, at(50), 3)
        assert "its route ignores deletes" in held.reason
        assert "without 'delete'" in held.hint
        assert journal.notes == []


def test_nothing_is_held_where_the_target_has_no_row_of_the_shard() -> None:
    journal = Journal()
    decisions, restart = restarted(key=())
    mine = runs(journal, RowOperation.DELETE)
    mine.has_nothing = True

    waiting = replace(restart, stage=Stage.UNPROVEN)
    assert mine.carry_out(waiting, decisions, {}, PROGRESS) == StatementKey(2, VOID)

    assert journal.notes == [(2, VOID)]


def test_nothing_goes_where_the_sink_would_not_load_it_again() -> None:
    journal = Journal()
    decisions, restart = ordered()
    held = runs(journal).carry_out(restart, decisions, {}, PROGRESS)
    assert isinstance(held, RowHold)
    assert (held.code, journal.notes) == ("SM-1640", [])


def test_rows_that_a_route_keeps_do_not_go_for_a_load() -> None:
    journal = Journal()
    decisions, restart = ordered()
    found = runs(journal, RowOperation.DELETE, snapshot="spark")
    found.has_nothing = True  # as the row topic says it, because rows behind the gate are applied
    held = found.carry_out(restart, decisions, {}, PROGRESS)
    assert isinstance(held, RowHold)
    assert (held.code, journal.notes) == ("SM-1524", [])
