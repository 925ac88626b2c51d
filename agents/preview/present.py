"""What the agents know now, from their tables. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from immutables import Map

from shardmerge.agents.handling.memory_rows import MemoryRows
from shardmerge.agents.handling.store import LastStatements, TrackedTables, servers_of
from shardmerge.schemas.model.frozen import replace
from shardmerge.schemas.model.position import SourcePosition
from shardmerge.schemas.pipeline import topics
from shardmerge.schemas.pipeline.server_differences import utf8mb4_defaults
from shardmerge.schemas.pipeline.settings import Pipeline

from .simulated_agents import AgentsState
from .upstream import SourcePlace


def line_state(
    pipeline: Pipeline, tracker: MemoryRows, coordinator: MemoryRows, ends: Mapping[str, int]
) -> AgentsState:
    """What both agents know when they have handled all of their records.

    Args:
        pipeline: Its sources count.
        tracker: The tracker's table after all of its records.
        coordinator: The coordinator's table, likewise.
        ends: Topic of a source's schema changes → offset of its next record.
    """
    known = TrackedTables().over(tracker)
    last = {s.name: LastStatements().get(tracker, s.name) for s in pipeline.sources}
    places = {}
    for source in pipeline.sources:
        end = ends.get(topics.schema_changes(pipeline, source.name).name, 0)
        latest, begun = last[source.name], SourcePosition(source.epoch, "", 0, 0)
        at = begun if latest is None else max(begun, latest.position)
        places[source.name] = SourcePlace.behind(end, at)
    defaults, servers = utf8mb4_defaults(pipeline.sources), servers_of(pipeline)
    targets = {
        target: replace(coordinator.state(target, servers), defaults=defaults)
        for target in coordinator.targets()
    }
    return AgentsState(
        tables=Map({shard: known[shard] for shard in known}),
        last=Map({name: each for name, each in last.items() if each is not None}),
        places=Map(places),
        targets=Map(targets),
    )
