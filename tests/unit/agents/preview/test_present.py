"""What the agents know, from the rows that they stored."""

from __future__ import annotations

from shardmerge.agents.handling.memory_rows import MemoryRows
from shardmerge.agents.handling.stored_table import TRACKER_TABLE
from shardmerge.agents.preview.present import line_state
from shardmerge.agents.preview.rollout import RolloutStep
from shardmerge.agents.preview.simulated_agents import SimulatedAgents
from shardmerge.schemas.pipeline import topics
from tests.unit.cli.views.pictures import ONE, TWO, recorded


def test_a_line_goes_on_where_the_stored_rows_are():
    made = recorded()
    source = topics.schema_changes(made.pipeline, "s1").name
    present = line_state(made.pipeline, made.rows(TRACKER_TABLE), made.rows(), {source: 700})
    assert list(present.shards) == [ONE, TWO]
    assert present.places["s1"].offset == 700
    step = RolloutStep(ONE, f"ALTER TABLE {ONE.table} ADD COLUMN later INT")
    _, (answer,) = SimulatedAgents(made.pipeline).executed(present, step)
    assert [s.sql for s in answer.decision.statements] == [
        "ALTER TABLE `merged`.`tbl` ADD COLUMN `later` int"
    ]


def test_without_rows_nothing_is_known():
    made = recorded()
    assert list(line_state(made.pipeline, MemoryRows(), MemoryRows(), {}).shards) == []
