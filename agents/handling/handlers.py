"""The two agents as folds: one source record and an agent's rows in, effects out. Pure."""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from pathlib import PurePath

from shardmerge.agents.coordination import coordinator
from shardmerge.agents.coordination.decision_records import Step
from shardmerge.agents.coordination.state.restated_texts import restated_change
from shardmerge.agents.coordination.state.target_state import TargetState
from shardmerge.agents.coordination.target_moves import Refusal
from shardmerge.agents.tracking import tracker
from shardmerge.connectors.debezium.envelope import schema_change_event
from shardmerge.connectors.debezium.signals import snapshot_signal
from shardmerge.schemas.ddl.grammar import ServerContext
from shardmerge.schemas.model.errors import ContractError
from shardmerge.schemas.model.frozen import replace
from shardmerge.schemas.model.names import ShardId, TargetTable
from shardmerge.schemas.model.tables import TableSchema
from shardmerge.schemas.pipeline import topics
from shardmerge.schemas.pipeline.routing import RoutingRule, route
from shardmerge.schemas.pipeline.server_differences import (
    server_context,
    server_contexts,
    utf8mb4_defaults,
)
from shardmerge.schemas.pipeline.settings import Pipeline
from shardmerge.schemas.records import codec
from shardmerge.schemas.records.decisions import Decision, JoinedSchema, Outcome
from shardmerge.schemas.records.operator_commands import CommandKind, OperatorCommand
from shardmerge.schemas.records.schema_changes import ChangeId, SchemaChange
from shardmerge.schemas.records.topic_records import command_of, logged_change
from shardmerge.schemas.target.dialects.dialect import Dialect
from shardmerge.schemas.target.dialects.dialects import dialect_of

from .effects import Effects, Rows, Send, SourceRecord
from .store import LastStatements, TargetStates, TrackedTables, servers_of, tracked_puts


class TrackerHandler:
    """Schema-change records of every source → SchemaChanges in the schema-log."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._rules = pipeline.routes
        self._contexts = server_contexts(pipeline.sources)
        self._schema_log = topics.schema_log(pipeline).name
        self._ddl = topics.ddl(pipeline).name
        self._tables = TrackedTables()
        self._last = LastStatements()
        self._commands = topics.commands(pipeline).name

    def __call__(self, rows: Rows, record: SourceRecord) -> Effects:
        """Fold one record.

        Raises:
            ContractError: Not a schema-change record of a source of this pipeline.
        """
        if record.topic == self._commands:
            return self._forward(rows, record)
        event = schema_change_event(record.topic, record.offset, record.key, record.value)
        context = self._contexts.get(event.source)
        if context is None or event.source != record.topic:
            raise ContractError(
                f"{record.topic}@{record.offset} is of source {event.source!r}",
                hint="each connector's topic.prefix must be its source's name in the pipeline file",
                code="SM-2106",
            )
        last = self._last.get(rows, event.source)
        result = tracker.track(self._tables.over(rows), event, self._rules, context, last)
        sends = [
            Send(self._schema_log, str(c.target).encode(), codec.encode(c), _change_headers(c))
            for c in result.changes
        ]
        if result.ignored is not None:
            sends.append(_decision_send(self._ddl, result.ignored))
        puts = tracked_puts(result.puts)
        if result.last != last:
            puts |= self._last.puts(event.source, result.last)
        return Effects(puts, tuple(sends))

    def _forward(self, rows: Rows, record: SourceRecord) -> Effects:
        """Forward a command to the schema-log; ``set-schema`` also changes the tracked table."""
        place = f"{record.topic}@{record.offset}"
        command = command_of(codec.decode(record.value or b""), place)
        command = replace(command, id=ChangeId(record.topic, record.offset))
        puts: dict[bytes, bytes | None] = {}
        shard = command.shard
        if command.kind is CommandKind.SET_SCHEMA and shard is not None:
            told, command = _with_schema(command, self._contexts.get(shard.source), self._rules)
            # A command that is refused changes nothing here, either.
            is_taken = command.schema is not None and command.target in route(self._rules, shard)
            if told is not None and is_taken and shard in self._tables.over(rows):
                puts = tracked_puts({shard: told})
        headers = (
            ("command", str(command)),
            ("id", str(command.id)),
            ("target", str(command.target)),
        )
        send = Send(self._schema_log, str(command.target).encode(), codec.encode(command), headers)
        return Effects(puts, (send,))


class CoordinatorHandler:
    """The schema-log → decisions, joined schemas, and requests for snapshots."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._ddl = topics.ddl(pipeline).name
        self._joined = topics.joined_schemas(pipeline).name
        self._signals = topics.signals(pipeline).name
        self._defaults = utf8mb4_defaults(pipeline.sources)
        self._contexts = server_contexts(pipeline.sources)
        self._states = TargetStates(self._defaults, servers_of(pipeline))
        self._dialect = dialect_of(pipeline.target.kind, pipeline.target.version)

    def __call__(self, rows: Rows, record: SourceRecord) -> Effects:
        """Fold one record.

        Raises:
            ContractError: Neither a SchemaChange nor an OperatorCommand.
        """
        place = f"{record.topic}/{record.partition}@{record.offset}"
        came = logged_change(codec.decode(record.value or b""), place)
        state = self._states.get(rows, came.target)
        step = self.step(state, came)
        if step.decision is None:
            return Effects()
        if step.joined is None:
            return Effects(sends=(_decision_send(self._ddl, step.decision),))
        touched = {*step.decision.released, *step.decision.pauses}
        shard = came.shard
        # After a command that took its shard out, the state has the shard no more.
        if shard is not None and (isinstance(came, SchemaChange) or shard in state.shards):
            touched.add(shard)
        if step.decision.origin is not None:
            touched |= {*step.state.shards}
        return self._effects(state, step, touched, came.id.source)

    def initial(self, target: TargetTable) -> TargetState:
        """The state of a target before its first schema change."""
        return coordinator.initial(target, self._defaults)

    def step(self, state: TargetState, came: SchemaChange | OperatorCommand) -> Step:
        """What a record of the schema-log does to its target's state, and the answer to it.

        Args:
            state: Of ``came.target``, before it.
            came: Any; a repeated one changes nothing and has no answer.
        """
        context = self._contexts.get(came.shard.source) if came.shard else None
        if isinstance(came, SchemaChange):
            return decide(state, came, self._dialect, context)
        if not state.version:
            return Step(state, coordinator.no_target(came), None)
        return obey(state, came, self._dialect, context)

    def _effects(
        self, state: TargetState, step: Step, touched: set[ShardId], source: str
    ) -> Effects:
        assert step.decision is not None
        assert step.joined is not None
        if (
            step.decision.outcome is not Outcome.HOLD
            or step.state.policies.mode is not state.policies.mode
        ):
            # Other held shards may have another queue now, or carry effects for their release.
            after = step.state.shards
            touched |= {name for name in state.held if after.get(name) is not state.shards[name]}
        return Effects(
            self._states.puts(state, step.state, sorted(touched), source),
            (
                _decision_send(self._ddl, step.decision),
                _joined_send(self._joined, step.joined),
                *_signal_sends(self._signals, step.decision),
            ),
        )


def with_argument_schema(pipeline: Pipeline, command: OperatorCommand) -> OperatorCommand:
    """The command ``set-schema`` as the coordinator gets it: with the schema that it tells."""
    assert command.shard is not None
    source = next((s for s in pipeline.sources if s.name == command.shard.source), None)
    context = server_context(source) if source is not None else None
    return _with_schema(command, context, pipeline.routes)[1]


def _with_schema(
    command: OperatorCommand, context: ServerContext | None, rules: Sequence[RoutingRule]
) -> tuple[TableSchema | None, OperatorCommand]:
    """The schema that ``set-schema`` tells, and the command as the coordinator gets it.

    After a defect in our own code the coordinator refuses it.
    """
    try:
        told = tracker.command_with_schema(command, context)
        return told.schema, tracker.command_without_left_out_columns(told, rules)
    except Exception as defect:
        return None, replace(command, error=_text_of(defect), code="SM-9002")


def decide(
    state: TargetState, change: SchemaChange, dialect: Dialect, context: ServerContext | None
) -> Step:
    """Decide; a defect in our own code holds only the shard whose change brought it to light.

    Otherwise the worker would stop at this record for ever, and every other target with it. Nothing
    is hidden: the decision says what broke and where, and the shard is held.

    Args:
        state: Of the change's target, before it.
        change: A tracker of an earlier version may have written it.
        dialect: The target's kind and version.
        context: How the shard's server reads a statement; None when no source has its name.
    """
    change = restated_change(state, change, context)
    try:
        return coordinator.decide(state, change, dialect)
    except ContractError:
        raise
    except Exception as defect:
        return coordinator.decide(state, _undecidable(change, defect), dialect)


def obey(
    state: TargetState, command: OperatorCommand, dialect: Dialect, context: ServerContext | None
) -> Step:
    """Obey a command; a defect in our own code refuses it, for the reason that ``decide`` gives."""
    try:
        return coordinator.obey(state, command, dialect, context)
    except ContractError:
        raise
    except Exception as defect:
        why = Refusal(_text_of(defect), "report it with the command", code="SM-9002")
        return coordinator.disobey(state, command, why)


def _undecidable(change: SchemaChange, defect: Exception) -> SchemaChange:
    return replace(
        change,
        after=None,
        lineage=(),
        error=_text_of(defect),
        hint="report it with the statement; the shard goes on with its next change that can be "
        "decided, such as the one that undoes this one",
        code="SM-9002",
    )


def _text_of(defect: Exception) -> str:
    place = traceback.extract_tb(defect.__traceback__)[-1]
    where = f"{PurePath(place.filename).name}:{place.lineno}"
    return f"defect of shardmerge: {type(defect).__name__}: {defect} ({where})"


def _decision_send(topic: str, decision: Decision) -> Send:
    key = topics.decision_key(decision.target, decision.version, str(decision.id))
    headers = [
        ("outcome", str(decision.outcome)),
        ("position", str(decision.position)),
        ("shard", str(decision.shard or "")),
        ("source", decision.id.source),
        ("target", str(decision.target or "")),
        ("version", str(decision.version)),
    ]
    return Send(topic, key.encode(), codec.encode(decision), tuple(headers))


def _joined_send(topic: str, joined: JoinedSchema) -> Send:
    headers = (("target", str(joined.target)), ("version", str(joined.version)))
    return Send(topic, str(joined.target).encode(), codec.encode(joined), headers)


def _signal_sends(topic: str, decision: Decision) -> list[Send]:
    """The requests for the snapshots that a decision asks for."""
    asked = [f for f in decision.fixups if f.kind.asks_for_snapshot]
    return [
        Send(topic, *snapshot_signal(str(decision.id), fixup.shard), _signal_headers(decision))
        for fixup in asked
    ]


def _signal_headers(decision: Decision) -> tuple[tuple[str, str], ...]:
    return (("target", str(decision.target or "")), ("version", str(decision.version)))


def _change_headers(change: SchemaChange) -> tuple[tuple[str, str], ...]:
    return (
        ("id", str(change.id)),
        ("position", str(change.position)),
        ("shard", str(change.shard)),
        ("source", change.id.source),
        ("target", str(change.target)),
    )
