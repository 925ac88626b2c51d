"""What the agents remember between records changes none of their records.

Folding remembers results by their input: parsed statements, effects of changes, differences of
schemas, routes, encoded columns. So agents that have worked long and agents that remember nothing
write the same bytes.
"""

from __future__ import annotations

import functools
import gc
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from shardmerge.agents.preview.rollout import RolloutStep, TableFile
from shardmerge.connectors.debezium.envelope import SchemaChangeEvent
from shardmerge.schemas.pipeline.settings import Pipeline
from tests.e2e.runner.rollouts import rollout

from .test_preview import Agents, fed, fed_with_tables, odd_steps, pipeline, tables


def memories() -> list[functools._lru_cache_wrapper[object]]:
    """What remembers a bounded number of results, in the project's modules.

    What is not bounded is made once: a schema of the contract, or what a type's fields are.
    """
    kind = functools._lru_cache_wrapper
    return [
        found
        for found in gc.get_objects()
        if isinstance(found, kind)
        and (found.__module__ or "").startswith("shardmerge.")
        and found.cache_parameters()["maxsize"] is not None
    ]


class Forgetting(Agents):
    """Agents that forget everything before each record."""

    def __init__(self, of: Pipeline) -> None:
        super().__init__(of)
        self._memories = memories()
        self.forgotten = 0

    def decide(self, event: SchemaChangeEvent) -> list[bytes]:
        for memory in self._memories:
            self.forgotten += memory.cache_info().currsize
            memory.cache_clear()
        return super().decide(event)


def decided(
    agents: Agents, of: Pipeline, described: list[TableFile], executed: list[RolloutStep]
) -> list[bytes]:
    """Every decision of a rollout."""
    found, places = fed_with_tables(agents, of, described)
    return found + fed(agents, of, executed, places)


@settings(max_examples=15, deadline=None)
@given(st.lists(st.integers(0, 10**9), min_size=2, max_size=4, unique=True))
def test_agents_that_remember_decide_as_those_that_forget(seeds: list[int]) -> None:
    """Rollouts behind one another, of different pipelines with tables of the same names."""
    for seed in seeds:
        document = rollout(seed)
        of = pipeline(document["mode"], document["renames"])
        played = tables(document), odd_steps(Random(seed), document)
        remembering = decided(Agents(of), of, *played)
        forgetting = Forgetting(of)
        assert decided(forgetting, of, *played) == remembering
        assert forgetting.forgotten > 0
        decided(Agents(of), of, *played)
