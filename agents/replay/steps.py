"""One record of the log and its effect: the state before and after, and what was decided."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from shardmerge.agents.coordination.state.target_state import TargetState
from shardmerge.agents.handling.effects import Effects
from shardmerge.agents.handling.handlers import CoordinatorHandler, TrackerHandler
from shardmerge.connectors.formats.stored_record import StoredRecord
from shardmerge.schemas.model.names import ShardId, TargetTable
from shardmerge.schemas.pipeline import topics
from shardmerge.schemas.pipeline.settings import Pipeline
from shardmerge.schemas.records import codec
from shardmerge.schemas.records.codec import Record
from shardmerge.schemas.records.decisions import Decision

from .log import OnePartition, Refold


@dataclass(frozen=True, slots=True)
class ReplayStep:
    """One record of the schema-log, or a source's statement that concerns no routed shard.

    Attributes:
        number: Counts the schema-log's records in the order of ``in_time``, from 1; 0 for a
            source's statement.
        record: As it is stored.
        came: What it holds; None for a source's statement, which the decision repeats.
        before, after: The target's state; None where there is no target.
        answers: What was decided, as records; none when the record repeats an earlier one.
    """

    number: int
    record: StoredRecord
    came: Record | None
    before: TargetState | None
    after: TargetState | None
    answers: tuple[Record, ...]

    @property
    def decision(self) -> Decision | None:
        """The decision among the answers."""
        return next((a for a in self.answers if isinstance(a, Decision)), None)

    @property
    def target(self) -> TargetTable | None:
        """The target of what came."""
        return getattr(self.came, "target", None)

    @property
    def shard(self) -> ShardId | None:
        """The shard of what came; None when it is about no single shard."""
        return getattr(self.came, "shard", None)

    @property
    def ts_ms(self) -> int:
        """Time of the change, ms since 1970: Debezium's, or the record's where that is not told."""
        told: int = getattr(self.came or self.decision, "ts_ms", 0)
        return told or self.record.timestamp_ms


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which steps to show; every record is folded nevertheless. Empty and None want all.

    Attributes:
        targets: As ``database.table``.
        shards: As ``source/database.table``: their own changes, and what releases them.
        since_ms, until_ms: Bounds of the time of the change, both inclusive.
        number: Of the step.
        from_version, to_version: Bounds of the decision's version, both inclusive.
    """

    targets: frozenset[str] = frozenset()
    shards: frozenset[str] = frozenset()
    since_ms: int | None = None
    until_ms: int | None = None
    number: int | None = None
    from_version: int | None = None
    to_version: int | None = None

    def may_include(self, number: int, record: StoredRecord) -> bool:
        """Whether the step of this record may be wanted, judged without decoding the record.

        Decoding a record costs as much as folding it.
        """
        if self.number is not None and number != self.number:
            return False
        return not self.targets or target_name(record) in self.targets

    def includes(self, step: ReplayStep) -> bool:
        """Whether a step is to be shown; its states do not matter."""
        if not self.may_include(step.number, step.record):
            return False
        if self.shards and self.shards.isdisjoint(concerned_shards(step)):
            return False
        if self.since_ms is not None and step.ts_ms < self.since_ms:
            return False
        if self.until_ms is not None and step.ts_ms > self.until_ms:
            return False
        if self.from_version is None and self.to_version is None:
            return True
        version = step.decision.version if step.decision else 0
        lowest = 1 if self.from_version is None else self.from_version
        return lowest <= version and (self.to_version is None or version <= self.to_version)


def target_name(record: StoredRecord) -> str:
    """The target of a record of the schema-log: its key."""
    return (record.key or b"").decode("utf-8", "backslashreplace")


def concerned_shards(step: ReplayStep) -> set[str]:
    """The step's own shard, and those that its decision releases."""
    shards = [step.shard]
    if step.decision is not None:
        shards += [step.decision.shard, *step.decision.released]
    return {str(shard) for shard in shards if shard is not None}


class Stepper:
    """Folds a pipeline's records and tells the wanted steps."""

    def __init__(self, pipeline: Pipeline, wanted: Wanted) -> None:
        self._wanted = wanted
        self._log = topics.schema_log(pipeline).name
        self._ddl = topics.ddl(pipeline).name
        self._signals = topics.signals(pipeline).name
        self._coordinator = Refold(CoordinatorHandler(pipeline))
        self._tracker = Refold(TrackerHandler(pipeline))
        self._partitions = OnePartition()
        self._states: dict[str, TargetState] = {}
        """Target's name → its state, if that was read since its last change."""
        self.folded = 0
        """How many records of the schema-log were folded."""
        self.targets: set[str] = set()
        """The targets of these records."""

    def steps(self, records: Iterable[StoredRecord]) -> Iterator[ReplayStep]:
        """The wanted steps.

        Args:
            records: Of the schema-log, in the order of ``in_time``; and, where the statements that
                concern no routed shard are wanted too, of the sources' schema-change topics.

        Raises:
            ContractError: A record is not ours. The steps before it were told.
        """
        for record in records:
            if self._wanted.number is not None and self.folded >= self._wanted.number:
                return
            step = self._change(record) if record.topic == self._log else self._event(record)
            if step is not None:
                yield step

    def _change(self, record: StoredRecord) -> ReplayStep | None:
        self._partitions.check(record)
        effects = self._coordinator.effects(record)
        self.folded += 1
        name = target_name(record)
        self.targets.add(name)
        step = None
        if self._wanted.may_include(self.folded, record):
            came = codec.decode(record.value or b"")
            answers = tuple(
                # Requests to connectors are not ours to read; the decision tells of them.
                codec.decode(send.value)
                for send in effects.sends
                if send.topic != self._signals
            )
            step = ReplayStep(self.folded, record, came, None, None, answers)
        if step is None or not self._wanted.includes(step):
            self._perform(name, effects)
            return None
        before = self._state(name, step.target)
        self._perform(name, effects)
        after = self._state(name, step.target)
        return replace(step, before=before, after=after)

    def _event(self, record: StoredRecord) -> ReplayStep | None:
        effects = self._tracker.effects(record)
        self._tracker.rows.take(effects)
        answers = tuple(codec.decode(s.value) for s in effects.sends if s.topic == self._ddl)
        if not answers:
            return None  # its changes stand in the schema-log
        step = ReplayStep(0, record, None, None, None, answers)
        return step if self._wanted.includes(step) else None

    def _perform(self, name: str, effects: Effects) -> None:
        self._coordinator.rows.take(effects)
        if effects.puts:
            self._states.pop(name, None)

    def _state(self, name: str, target: TargetTable | None) -> TargetState | None:
        """The state now; reading it looks at every shard, so it is read once."""
        if target is None:
            return None
        if name not in self._states:
            self._states[name] = self._coordinator.rows.state(target)
        return self._states[name]
