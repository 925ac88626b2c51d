"""A target's state as of any version, time or position, or as of now. Pure.

The present one stands in the coordinator's table. Earlier ones are folded from the schema-log by
the coordinator's own rules, which also give the answer that a command would get.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from shardmerge.agents.coordination.state import state_rows
from shardmerge.agents.coordination.state.target_state import TargetState
from shardmerge.agents.handling.handlers import CoordinatorHandler
from shardmerge.agents.handling.memory_rows import MemoryRows
from shardmerge.agents.handling.store import servers_of
from shardmerge.agents.holds.answers import Answers
from shardmerge.connectors.formats.stored_record import StoredRecord
from shardmerge.schemas.model.names import ShardId, TargetTable
from shardmerge.schemas.model.position import SourcePosition
from shardmerge.schemas.pipeline.settings import Pipeline
from shardmerge.schemas.records import codec
from shardmerge.schemas.records.decisions import Decision
from shardmerge.schemas.records.operator_commands import CommandKind, OperatorCommand
from shardmerge.schemas.records.schema_changes import SchemaChange
from shardmerge.schemas.records.topic_records import logged_change


@dataclass(frozen=True, slots=True)
class AsOf:
    """Up to which record a log is folded; None does not limit.

    Attributes:
        version: The target's version, inclusive.
        time_ms: Time at which the tracker logged the change, inclusive.
        position: Of the shard that is asked for, inclusive: nothing of that shard after it.
    """

    version: int | None = None
    time_ms: int | None = None
    position: SourcePosition | None = None


@dataclass(slots=True)
class TargetLog:
    """What was decided about one target up to some point.

    Attributes:
        state: The target's state then.
        time_ms: When its last change was logged; 0 before the first.
        versions: Version → time at which its change was logged, as far as it was folded.
    """

    pipeline: Pipeline
    state: TargetState
    time_ms: int = 0
    versions: dict[int, int] = field(default_factory=dict)

    @property
    def target(self) -> TargetTable:
        """Whose log it is."""
        return self.state.target

    def answer(
        self, kind: CommandKind, shard: ShardId | None = None, argument: str = ""
    ) -> Decision | None:
        """What the coordinator would answer to a command now; nothing is changed."""
        return Answers(self.pipeline, self.state).answer(kind, shard, argument)


def target_log(
    pipeline: Pipeline,
    target: TargetTable,
    records: Iterable[StoredRecord],
    as_of: AsOf = AsOf(),
    shard: ShardId | None = None,
) -> TargetLog:
    """Fold the records of a target up to a point, by the coordinator's own rules.

    Args:
        pipeline: The target's pipeline.
        target: The target; without records its version is 0.
        records: Of the target, in their partition's order, as ``codec``'s bytes.
        as_of: The point.
        shard: The shard whose position ``as_of`` may name.

    Raises:
        ContractError: A record is not ours.
    """
    handler = CoordinatorHandler(pipeline)
    log = TargetLog(pipeline, handler.initial(target))
    for record in records:
        if as_of.time_ms is not None and record.timestamp_ms > as_of.time_ms:
            break
        came = logged_change(codec.decode(record.value or b""), record.place)
        if as_of.position is not None and _is_after(came, as_of.position, shard):
            break
        step = handler.step(log.state, came)
        if step.decision is not None:
            if as_of.version is not None and step.decision.version > as_of.version:
                break
            log.versions[step.decision.version] = record.timestamp_ms
        log.state = step.state
        log.time_ms = record.timestamp_ms
    return log


def present_log(
    pipeline: Pipeline, target: TargetTable, rows: MemoryRows, time_ms: int
) -> TargetLog | None:
    """A target as the coordinator's table has it: as of now, without a fold of its log.

    Args:
        pipeline: The target's pipeline.
        target: The target.
        rows: The table, see ``stored_table.table_of``.
        time_ms: When its last version was decided; 0 for not known.

    Returns:
        None when the table has no such target.

    Raises:
        ContractError: The table was written by another version of shardmerge.
    """
    if rows.get(state_rows.header_key(target)) is None:
        return None
    defaults = CoordinatorHandler(pipeline).initial(target).defaults
    state = replace(rows.state(target, servers_of(pipeline)), defaults=defaults)
    return TargetLog(pipeline, state, time_ms, {state.version: time_ms})


def _is_after(
    came: SchemaChange | OperatorCommand, position: SourcePosition, shard: ShardId | None
) -> bool:
    # Row numbers do not count: a change at the event of the given position is not after it.
    return (
        isinstance(came, SchemaChange)
        and came.shard == shard
        and came.position.sort_key[:4] > position.sort_key[:4]
    )
