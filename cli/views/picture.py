"""What the topics of a pipeline say at one moment. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from shardmerge.agents.status.validations import ValidationLog, ValidationView
from shardmerge.agents.status.view import StatusView, TargetView
from shardmerge.connectors.formats.connector_status import ConnectorState
from shardmerge.connectors.formats.stored_record import StoredRecord, iso_time
from shardmerge.schemas.model.names import TargetTable
from shardmerge.schemas.pipeline import topics
from shardmerge.schemas.pipeline.settings import Pipeline
from shardmerge.schemas.records.decisions import Decision, JoinedSchema
from shardmerge.schemas.records.operator_commands import OperatorCommand
from shardmerge.schemas.records.progress import SinkProgress
from shardmerge.schemas.records.record_format import RecordFormat
from shardmerge.schemas.records.schema_changes import ChangeId
from shardmerge.schemas.records.topic_records import decision_of
from shardmerge.schemas.records.validations import TargetValidation

from .shapes import AgentsState, TargetServer


@dataclass(slots=True)
class Decided:
    """A decision and when it was written. Its record is decoded when it is asked for.

    A log has many decisions, of which a command shows few. The record's headers tell which.

    Attributes:
        written_ms: When the agents wrote it, in milliseconds since 1970.
        target: As ``database.table``; "" for a statement that concerns no shard.
        version: Of the target.
        outcome: Value of an ``Outcome``.
        source: Of the change that it answers; the commands topic for a command.
    """

    written_ms: int
    target: str
    version: int
    outcome: str
    source: str
    _read: Callable[[], Decision]
    _decision: Decision | None = None

    @classmethod
    def of(cls, decision: Decision, written_ms: int) -> Decided:
        """A decision that is decoded already."""
        target, outcome = str(decision.target or ""), decision.outcome.value
        source = decision.id.source
        return cls(written_ms, target, decision.version, outcome, source, lambda: decision)

    @classmethod
    def stored(cls, record: StoredRecord, format_: RecordFormat) -> Decided:
        """A decision as it stands in Kafka.

        Raises:
            ContractError: It has no headers, and is no decision.
        """
        headers = {name: (value or b"").decode() for name, value in record.headers}

        def read() -> Decision:
            return decision_of(format_.read(record.value or b""), record.place)

        if not {"target", "version", "outcome", "source"} <= headers.keys():
            return cls.of(read(), record.timestamp_ms)
        target, outcome, source = (headers[name] for name in ("target", "outcome", "source"))
        version = int(headers["version"])
        return cls(record.timestamp_ms, target, version, outcome, source, read)

    @property
    def decision(self) -> Decision:
        """The decision.

        Raises:
            ContractError: The record is none of ours.
        """
        if self._decision is None:
            self._decision = self._read()
        return self._decision


@dataclass(frozen=True, slots=True)
class Picture:
    """What a pipeline's topics, Connect and the target's server say.

    Attributes:
        at_ms: Everything in it was written before, milliseconds since 1970.
        decided: Every decision once, in the order in which they were written.
        joined: The present schema of each target.
        progress: What the sink told last of each target.
        commands: Offset in the commands topic → the command.
        validations: The comparisons of each target that count now.
    """

    pipeline: Pipeline
    at_ms: int
    decided: tuple[Decided, ...]
    joined: Mapping[TargetTable, JoinedSchema]
    progress: Mapping[TargetTable, SinkProgress]
    commands: Mapping[int, OperatorCommand]
    validations: Mapping[TargetTable, ValidationView] = field(default_factory=dict)
    connectors: tuple[ConnectorState, ...] = ()
    agents: AgentsState | None = None
    target_server: TargetServer = field(default=TargetServer("", ""))
    unanswered: tuple[str, ...] = ()
    _by_target: dict[str, dict[int, Decided]] = field(init=False)

    def __post_init__(self) -> None:
        found: dict[str, dict[int, Decided]] = {}
        for decided in self.decided:
            found.setdefault(decided.target, {})[decided.version] = decided
        object.__setattr__(self, "_by_target", found)

    @property
    def at(self) -> str:
        """Its time as text."""
        return iso_time(self.at_ms)

    def of_target(self, target: TargetTable) -> Mapping[int, Decided]:
        """Version → the target's decision of it."""
        return self._by_target.get(str(target), {})

    def decided_ms(self, target: TargetTable) -> Mapping[int, int]:
        """Version → when the target's decision of it was written, in milliseconds since 1970."""
        return {version: each.written_ms for version, each in self.of_target(target).items()}

    def targets(self) -> set[TargetTable]:
        """Every target of which anything is known."""
        decided = {TargetTable(*name.split(".", 1)) for name in self._by_target if name}
        return decided | self.joined.keys() | self.progress.keys()

    def views(self) -> tuple[TargetView, ...]:
        """What the status pages' own fold makes of the topics, sorted. It reads all decisions.

        Raises:
            ContractError: A record is not ours.
        """
        view = StatusView()
        for progress in self.progress.values():
            view.apply(progress)
        for joined in self.joined.values():
            view.apply(joined)
        for decided in self.decided:
            view.apply(decided.decision)
        return view.targets()

    def by(self, change: ChangeId) -> str:
        """Who gave a command; "" for a source's statement."""
        command = self.command(change)
        return command.by if command else ""

    def command(self, change: ChangeId) -> OperatorCommand | None:
        """The command that a decision answers; None when it answers a source's statement."""
        if change.source != topics.commands(self.pipeline).name:
            return None
        return self.commands.get(change.offset)


def picture_of(
    pipeline: Pipeline, records: Iterable[StoredRecord], format_: RecordFormat, at_ms: int
) -> Picture:
    """Fold the records of commands, ddl, joined-schemas, sink-progress and validations.

    Args:
        pipeline: The pipeline that has the topics.
        records: Each topic's in order of their offsets.
        format_: Of the pipeline's own records.
        at_ms: A time before which they all were written, in milliseconds since 1970.

    Raises:
        ContractError: A record is not ours.
    """
    ddl, command_topic = topics.ddl(pipeline).name, topics.commands(pipeline).name
    validation_topic = topics.validations(pipeline).name
    decided: dict[bytes | None, Decided] = {}
    commands: dict[int, OperatorCommand] = {}
    last: dict[tuple[str, bytes | None], bytes] = {}
    for record in records:
        if record.value is None:
            if record.topic == validation_topic:
                last.pop((record.topic, record.key), None)
        elif record.topic == ddl:
            # Written again after a crash it is the same decision, under the same key.
            if record.key not in decided:
                decided[record.key] = Decided.stored(record, format_)
        elif record.topic == command_topic:
            found = format_.read(record.value)
            if isinstance(found, OperatorCommand):
                commands[record.offset] = found
        else:
            # Of these topics the last record of each key counts.
            last[record.topic, record.key] = record.value
    present = [format_.read(value) for value in last.values()]
    return Picture(
        pipeline,
        at_ms,
        tuple(decided.values()),
        {found.target: found for found in present if isinstance(found, JoinedSchema)},
        {found.target: found for found in present if isinstance(found, SinkProgress)},
        commands,
        _validations(found for found in present if isinstance(found, TargetValidation)),
    )


def _validations(found: Iterable[TargetValidation]) -> Mapping[TargetTable, ValidationView]:
    log = ValidationLog()
    targets = set()
    for record in found:
        log.add(record)
        targets.add(record.target)
    return {target: log.of(target) for target in targets}


def moment(ms: int) -> str:
    """A time as text; "" for 0, which is "not known"."""
    return iso_time(ms) if ms else ""
