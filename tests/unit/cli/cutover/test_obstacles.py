"""What has to be mended before a target is cut over."""

from __future__ import annotations

from dataclasses import replace

import pytest

from shardmerge.cli.cutover.obstacles import (
    SourceState,
    obstacles_of,
    sink_obstacles,
    source_obstacles,
)
from shardmerge.cli.validation.inputs.table_facts import Readings, TableFacts, facts_of
from shardmerge.cli.views.shapes import (
    AgentsState,
    Failure,
    PipelineStatus,
    ShardStatus,
    StatementStatus,
    TargetServer,
    TargetStatus,
)
from shardmerge.connectors.formats.connector_status import ConnectorState
from shardmerge.schemas.records.progress import ShardProgress, SinkProgress
from tests.unit.cli.views.pictures import ONE, TARGET, TWO, picture, recorded, reported

FLOWS = tuple(ShardStatus(str(shard), "flows", "f:4", 2) for shard in (ONE, TWO))
AT_REST = TargetStatus(str(TARGET), 2, 2, 7, "now", FLOWS, ())
RUNNING = tuple(ConnectorState(name, f"p.{name}", "RUNNING") for name in ("s1", "s2"))
WELL = PipelineStatus(
    "p", "now", (AT_REST,), RUNNING, AgentsState(1, 0), TargetServer("mysql", "t:3306")
)


def facts(code: str = "") -> TableFacts:
    waiting = "its rows stay in Kafka" if code else ""
    progress = SinkProgress(
        TARGET, 2, 0, shards=(ShardProgress(ONE, 0, waiting, code=code), ShardProgress(TWO, 0))
    )
    return facts_of(picture(reported(recorded(), progress)), TARGET, Readings())


def with_target(**more: object) -> PipelineStatus:
    return replace(WELL, targets=(replace(AT_REST, **more),))  # type: ignore[arg-type]


def with_shard(**more: object) -> PipelineStatus:
    return with_target(shards=(replace(FLOWS[0], **more), FLOWS[1]))  # type: ignore[arg-type]


OPEN = StatementStatus("2.0", "ALTER TABLE t DROP a", "contracting", "debt", "for s1", "now")


@pytest.mark.parametrize(
    ("status", "code", "text"),
    [
        (with_shard(state="held", reason="a DATE", code="SM-1203"), "SM-6705", "SM-1203: a DATE"),
        (with_shard(state="waits", reason="first load", code="SM-1615"), "SM-6705", "first load"),
        (with_shard(state="paused", reason="by olga"), "SM-6705", "by olga"),
        (with_shard(parked=11), "SM-6706", "11 rows wait"),
        (with_target(open=(OPEN,)), "SM-6705", "ALTER TABLE t DROP a; for s1"),
        (with_target(failure=Failure("away", "start it", "t/0", 2, "now")), "SM-6705", "away"),
        (with_target(disabled_since="then"), "SM-6705", "disabled since then"),
        (replace(WELL, agents=None), "SM-6704", "no agents"),
        (replace(WELL, connectors=RUNNING[:1]), "SM-6704", "source s2"),
        (
            replace(WELL, connectors=(RUNNING[0], replace(RUNNING[1], state="FAILED"))),
            "SM-6704",
            "p.s2 is FAILED",
        ),
        (
            replace(WELL, target_server=TargetServer("mysql", "t:1", error="gone")),
            "SM-6704",
            "gone",
        ),
    ],
)
def test_each_obstacle_is_told_with_its_code(status: PipelineStatus, code: str, text: str) -> None:
    assert obstacles_of(WELL, TARGET, facts(), 10) == ()
    [found] = obstacles_of(status, TARGET, facts(), 10)
    assert found.code == code
    assert text in found.text


def test_a_target_that_was_cut_over_can_be_compared() -> None:
    closed = with_shard(state="waits", reason="its rows stay in Kafka", code="SM-1617")
    assert obstacles_of(closed, TARGET, facts("SM-1617"), 10) == ()
    [found] = obstacles_of(WELL, TARGET, facts("SM-1605"), 10)
    assert found.text == f"{ONE}: its rows stay in Kafka"


def test_a_wait_of_a_moment_is_none() -> None:
    waits = with_shard(state="waits", reason="waits for s1@4", code="SM-1605", parked=2)
    assert obstacles_of(waits, TARGET, facts("SM-1605"), 10) == ()


def test_statements_that_are_decided_now_are_waited_for() -> None:
    [found] = obstacles_of(WELL, TARGET, replace(facts(), executed=False), 10)
    assert "decided or executed" in found.text


def test_a_replica_and_open_transactions_are_told() -> None:
    sources = (SourceState("s1", "it replicates from p:1"), SourceState("s2", writing=2))
    assert [r.code for r in source_obstacles(sources, stopped=False)] == ["SM-6713"]
    told = source_obstacles(sources, stopped=True)
    assert [r.code for r in told] == ["SM-6713", "SM-6714"]
    assert "2 transactions that changed rows" in told[1].text


def test_a_sink_that_is_silent_does_not_run() -> None:
    assert sink_obstacles(TARGET, 1_000_000, 1_180_000) == ()
    [found] = sink_obstacles(TARGET, 1_000_000, 1_181_000)
    assert (found.code, "for 181 s" in found.text) == ("SM-6723", True)
    [never] = sink_obstacles(TARGET, 0, 1_000)
    assert f"has not reported {TARGET} yet" in never.text
