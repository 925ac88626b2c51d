"""A target's part of the schema-log, folded again by the coordinator's own rules. Pure.

Gives the target's state as of any version, time or position, and the answer that a command would
get now.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from shardmerge.agents.coordination.state.target_state import TargetState
from shardmerge.agents.handling.effects import Send
from shardmerge.agents.handling.handlers import CoordinatorHandler
from shardmerge.agents.replay.log import Refold
from shardmerge.connectors.formats.stored_record import StoredRecord
from shardmerge.schemas.model.names import ShardId, TargetTable
from shardmerge.schemas.model.position import SourcePosition
from shardmerge.schemas.pipeline import topics
from shardmerge.schemas.pipeline.settings import Pipeline
from shardmerge.schemas.records import codec
from shardmerge.schemas.records.decisions import Decision
from shardmerge.schemas.records.operator_commands import CommandKind, OperatorCommand
from shardmerge.schemas.records.schema_changes import ChangeId, SchemaChange

_LATER = 2**62
"""Offset of a command that is only thought of: after every command that was given."""


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
    """The fold of one target.

    Attributes:
        time_ms: When the last record that was folded was logged; 0 before the first.
        versions: Version → time at which its change was logged.
    """

    pipeline: Pipeline
    target: TargetTable
    time_ms: int = 0
    versions: dict[int, int] = field(default_factory=dict)
    _fold: Refold = field(init=False)

    def __post_init__(self) -> None:
        self._fold = Refold(CoordinatorHandler(self.pipeline))

    def read(self, records: Iterable[StoredRecord], as_of: AsOf, shard: ShardId | None) -> None:
        """Fold the records of the target up to a point.

        Args:
            records: Of the target, in their partition's order, as ``codec``'s bytes.
            as_of: The point.
            shard: Whose position it is.

        Raises:
            ContractError: A record is not ours.
        """
        for record in records:
            if as_of.time_ms is not None and record.timestamp_ms > as_of.time_ms:
                return
            if as_of.position is not None and self._is_after(record, as_of.position, shard):
                return
            effects = self._fold.effects(record)
            for decision in _decisions(self.pipeline, effects.sends):
                if as_of.version is not None and decision.version > as_of.version:
                    return
                self.versions[decision.version] = record.timestamp_ms
            self._fold.rows.take(effects)
            self.time_ms = record.timestamp_ms

    @property
    def state(self) -> TargetState:
        """The target's state after what was folded."""
        return self._fold.rows.state(self.target)

    def answer(
        self, kind: CommandKind, shard: ShardId | None = None, argument: str = ""
    ) -> Decision | None:
        """What the coordinator would answer to a command now; nothing is changed."""
        topic = topics.commands(self.pipeline).name
        command = OperatorCommand(ChangeId(topic, _LATER), self.target, kind, shard, argument)
        log = topics.schema_log(self.pipeline).name
        value = codec.encode(command)
        record = StoredRecord(log, 0, _LATER, str(self.target).encode(), value)
        found = _decisions(self.pipeline, self._fold.effects(record).sends)
        return found[0] if found else None

    @staticmethod
    def _is_after(record: StoredRecord, position: SourcePosition, shard: ShardId | None) -> bool:
        change = codec.decode(record.value or b"")
        # Rows stand before a change at the same place, so a place without a row counts with them.
        return (
            isinstance(change, SchemaChange)
            and change.shard == shard
            and change.position.sort_key[:4] > position.sort_key[:4]
        )


def folded(
    pipeline: Pipeline,
    target: TargetTable,
    records: Iterable[StoredRecord],
    as_of: AsOf = AsOf(),
    shard: ShardId | None = None,
) -> TargetLog:
    """A target's log, folded; see ``TargetLog.read``."""
    log = TargetLog(pipeline, target)
    log.read(records, as_of, shard)
    return log


def _decisions(pipeline: Pipeline, sends: Iterable[Send]) -> list[Decision]:
    ddl = topics.ddl(pipeline).name
    found = (codec.decode(send.value) for send in sends if send.topic == ddl)
    return [record for record in found if isinstance(record, Decision)]
