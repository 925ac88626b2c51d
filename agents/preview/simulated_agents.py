"""What both agents know at one moment, and what they know after one more statement. Pure.

The agents' handlers read and write stored rows. Here the same functions work on values in memory.
``tests/properties/test_preview.py`` shows that the decisions are the same, byte for byte.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from immutables import Map

from shardmerge.agents.coordination import coordinator
from shardmerge.agents.coordination.state.target_state import TargetState
from shardmerge.agents.handling.handlers import decide
from shardmerge.agents.tracking import tracker
from shardmerge.agents.tracking.tracked import LastStatement, Tracked
from shardmerge.connectors.debezium.envelope import SchemaChangeEvent
from shardmerge.schemas.model.frozen import replace
from shardmerge.schemas.model.names import ShardId, TargetTable
from shardmerge.schemas.pipeline import topics
from shardmerge.schemas.pipeline.server_differences import server_contexts, utf8mb4_defaults
from shardmerge.schemas.pipeline.settings import Pipeline
from shardmerge.schemas.records.decisions import Decision
from shardmerge.schemas.records.operator_commands import CommandKind, OperatorCommand
from shardmerge.schemas.records.schema_changes import ChangeId, SchemaChange
from shardmerge.schemas.target.dialects.dialects import dialect_of

from .rollout import RolloutStep, TableFile
from .upstream import SourcePlace, changes, described

_COMMANDS = 2**61
"""Offset of the first command that a plan tries. It is greater than that of any real command."""


@dataclass(frozen=True, slots=True)
class AgentsState:
    """What the agents know. The value is immutable, and the next one shares most of its data.

    Attributes:
        tables: The tracker's tables.
        last: Each source's last statement; a source without one is missing.
        places: Source → up to where it has written. A source that wrote nothing may be missing.
        targets: The coordinator's states.
        commands: How many commands the plan has tried.
    """

    tables: Map[ShardId, Tracked] = field(default_factory=Map)
    last: Map[str, LastStatement] = field(default_factory=Map)
    places: Map[str, SourcePlace] = field(default_factory=Map)
    targets: Map[TargetTable, TargetState] = field(default_factory=Map)
    commands: int = 0

    @property
    def shards(self) -> Iterable[ShardId]:
        """All live shards, sorted."""
        return sorted(shard for state in self.targets.values() for shard in state.shards)


@dataclass(frozen=True, slots=True)
class SimulatedDecision:
    """One decision, and the target's state on both sides of it.

    Attributes:
        decision: As the coordinator writes it. For a statement about no shard: as the tracker
            writes it.
        before, after: The target's state; None for a decision without a target.
        change: The schema change that it answers; None for a command, and for a statement about no
            shard.
    """

    decision: Decision
    before: TargetState | None = None
    after: TargetState | None = None
    change: SchemaChange | None = None


class SimulatedAgents:
    """Both agents of a pipeline: a statement or a command goes in, and decisions come out.

    Args:
        pipeline: Its routes, sources and target are used.

    Raises:
        ConfigError: A source's version is not numbers with points between them.
    """

    def __init__(self, pipeline: Pipeline) -> None:
        self.pipeline = pipeline
        self._contexts = server_contexts(pipeline.sources)
        self._sources = {source.name: source for source in pipeline.sources}
        self._defaults = utf8mb4_defaults(pipeline.sources)
        self._dialect = dialect_of(pipeline.target.kind, pipeline.target.version)
        self._commands = topics.commands(pipeline).name

    def described(
        self, state: AgentsState, table: TableFile
    ) -> tuple[AgentsState, tuple[SimulatedDecision, ...]]:
        """Let a snapshot describe a table.

        Returns:
            The state after it, and the decisions: none where no connector reads its database.
        """
        if not self._is_read(table.shard):
            return state, ()
        place = self._place(state.places, table.shard.source)
        event = described(table.shard, table.sql, place)
        moved = replace(place, offset=place.offset + 1)
        state = replace(state, places=state.places.set(table.shard.source, moved))
        return self._after_event(state, event)

    def executed(
        self, state: AgentsState, step: RolloutStep
    ) -> tuple[AgentsState, tuple[SimulatedDecision, ...]]:
        """Let a source execute a statement.

        Returns:
            The state after it, and the decisions in order. There are none for a statement that
            changes only rows or settings, or for a database that no connector reads.
        """
        if not self._is_read(step.shard):
            return state, ()
        source = step.shard.source
        place = self._place(state.places, source)
        events = changes(step.shard, step.sql, place, self._contexts[source])
        answers: list[SimulatedDecision] = []
        if events:
            state = replace(state, places=state.places.set(source, place.after(events)))
        for event in events:
            state, found = self._after_event(state, event)
            answers += found
        return state, tuple(answers)

    def tables_after(
        self, state: AgentsState, steps: Iterable[RolloutStep]
    ) -> Map[ShardId, Tracked]:
        """The tracker's tables after steps in this order, without any decision about targets."""
        tables, last, places = state.tables, dict(state.last), dict(state.places)
        for step in steps:
            if not self._is_read(step.shard):
                continue
            source = step.shard.source
            context, place = self._contexts[source], self._place(places, source)
            if events := changes(step.shard, step.sql, place, context):
                places[source] = place.after(events)
            for event in events:
                rules = self.pipeline.routes
                result = tracker.track(tables, event, rules, context, last.get(source))
                tables = _with_puts(tables, result.puts)
                if result.last is not None:
                    last[source] = result.last
        return tables

    def commanded(
        self,
        state: AgentsState,
        target: TargetTable,
        kind: CommandKind,
        shard: ShardId | None = None,
        argument: str = "",
    ) -> tuple[AgentsState, SimulatedDecision | None]:
        """Let an operator give a command now; no answer where there is no such target."""
        before = state.targets.get(target)
        if before is None:
            return state, None
        said = ChangeId(self._commands, _COMMANDS + state.commands)
        command = OperatorCommand(said, target, kind, shard, argument)
        context = self._contexts.get(shard.source) if shard else None
        step = coordinator.obey(before, command, self._dialect, context)
        if step.decision is None:
            return state, None
        after = replace(
            state,
            targets=state.targets.set(target, step.state),
            commands=state.commands + 1,
        )
        return after, SimulatedDecision(step.decision, before, step.state)

    def _is_read(self, shard: ShardId) -> bool:
        return self._sources[shard.source].reads_database(shard.database)

    def _place(self, places: Mapping[str, SourcePlace], source: str) -> SourcePlace:
        known = places.get(source)
        return SourcePlace.beginning(self._sources[source].epoch) if known is None else known

    def _after_event(
        self, state: AgentsState, event: SchemaChangeEvent
    ) -> tuple[AgentsState, tuple[SimulatedDecision, ...]]:
        source = event.source
        last = state.last.get(source)
        result = tracker.track(
            state.tables, event, self.pipeline.routes, self._contexts[source], last
        )
        targets = state.targets
        answers: list[SimulatedDecision] = []
        for change in result.changes:
            before = targets.get(change.target)
            if before is None:
                before = coordinator.initial(change.target, self._defaults)
            step = decide(before, change, self._dialect, self._contexts[source])
            if step.decision is None:
                continue
            targets = targets.set(change.target, step.state)
            answers.append(SimulatedDecision(step.decision, before, step.state, change))
        if result.ignored is not None:
            answers.append(SimulatedDecision(result.ignored))
        now = state.last
        if result.last is not None and result.last is not last:
            now = now.set(source, result.last)
        after = replace(
            state, tables=_with_puts(state.tables, result.puts), last=now, targets=targets
        )
        return after, tuple(answers)


def _with_puts(
    tables: Map[ShardId, Tracked], puts: Mapping[ShardId, Tracked | None]
) -> Map[ShardId, Tracked]:
    for shard, value in puts.items():
        if value is not None:
            tables = tables.set(shard, value)
        elif shard in tables:
            tables = tables.delete(shard)
    return tables
