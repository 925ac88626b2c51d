"""What a target's statement waits for, and which values it loses."""

from __future__ import annotations

import pytest

from shardmerge.agents.holds.shapes import Reason
from shardmerge.agents.preview.rollout import RolloutStep, TableFile
from shardmerge.agents.preview.shapes import ShownStatement
from shardmerge.agents.preview.simulated_agents import AgentsState, SimulatedAgents
from shardmerge.agents.preview.statements import shown_statement
from shardmerge.schemas.model.names import ShardId
from tests.unit.cli.planning.pipelines import pipeline

ONE, TWO = ShardId("s1", "app", "t_1"), ShardId("s2", "app", "t_1")


def after(*actions: tuple[ShardId, str]) -> list[ShownStatement]:
    """The statements of the last action."""
    agents, state = SimulatedAgents(pipeline()), AgentsState()
    for shard in (ONE, TWO):
        sql = "CREATE TABLE t_1 (id INT PRIMARY KEY, a BIGINT, b VARCHAR(20))"
        state, _ = agents.described(state, TableFile(shard, sql))
    found: list[ShownStatement] = []
    for shard, action in actions:
        state, answers = agents.executed(state, RolloutStep(shard, f"ALTER TABLE t_1 {action}"))
        found = [shown_statement(s, a.before) for a in answers for s in a.decision.statements]
    return found


GONE = "the values of column a are gone"
NARROWED = "values of column a that its new type does not hold are gone"


@pytest.mark.parametrize(
    ("shards", "action", "kind", "lossy"),
    [
        ([ONE], "ADD COLUMN n INT", "expanding", ""),
        ([ONE, TWO], "DROP COLUMN a", "contracting", GONE),
        ([ONE, TWO], "MODIFY a INT", "contracting", NARROWED),
        ([ONE], "MODIFY b VARCHAR(30)", "expanding", ""),
        ([ONE], "MODIFY b VARCHAR(30) NOT NULL", "expanding", ""),
    ],
)
def test_what_is_lost_is_said(shards: list[ShardId], action: str, kind: str, lossy: str) -> None:
    [statement] = after(*((shard, action) for shard in shards))
    assert (statement.kind, statement.lossy) == (kind, lossy)


def test_each_kind_says_who_waits() -> None:
    [expanding] = after((ONE, "ADD COLUMN n INT"))
    assert expanding.waits_for == "nothing; the shard's rows behind the change wait for it"
    assert expanding.why == Reason("SM-1902", "column n is new")
    [contracting] = after((ONE, "DROP COLUMN a"), (TWO, "DROP COLUMN a"))
    assert contracting.waits_for.endswith("; no row waits for it")
    both = [(shard, "DROP COLUMN a, ADD COLUMN a DATE") for shard in (ONE, TWO)]
    switching, *_ = after(*both)
    assert (switching.kind, switching.waits_for.endswith("; later rows wait for it")) == (
        "switching",
        True,
    )
