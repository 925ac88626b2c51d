"""What the topics of a pipeline say at one moment. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from shardmerge.agents.replay.facts import iso_time
from shardmerge.agents.status.view import StatusView, TargetView
from shardmerge.connectors.formats.stored_record import StoredRecord
from shardmerge.schemas.model.names import TargetTable
from shardmerge.schemas.pipeline import topics
from shardmerge.schemas.pipeline.settings import Pipeline
from shardmerge.schemas.records.decisions import Decision
from shardmerge.schemas.records.operator_commands import OperatorCommand
from shardmerge.schemas.records.record_format import RecordFormat
from shardmerge.schemas.records.schema_changes import ChangeId

from .shapes import AgentsState, ConnectorState, TargetServer


@dataclass(frozen=True, slots=True)
class Decided:
    """A decision, and when the agents wrote it, in milliseconds since 1970."""

    decision: Decision
    written_ms: int


@dataclass(frozen=True, slots=True)
class Picture:
    """What a pipeline's topics, Connect and the target's server say.

    Attributes:
        at_ms: Everything in it was written before, milliseconds since 1970.
        targets: What the status pages' own fold makes of the topics, sorted.
        decided: Every decision once, in the order in which they were written.
        commands: Offset in the commands topic → the command.
    """

    pipeline: Pipeline
    at_ms: int
    targets: tuple[TargetView, ...]
    decided: tuple[Decided, ...]
    commands: Mapping[int, OperatorCommand]
    connectors: tuple[ConnectorState, ...] = ()
    agents: AgentsState | None = None
    target_server: TargetServer = field(default=TargetServer("", ""))
    unanswered: tuple[str, ...] = ()

    @property
    def at(self) -> str:
        """Its time as text."""
        return iso_time(self.at_ms)

    def of_target(self, target: TargetTable) -> dict[int, Decided]:
        """Version → the target's decision of it."""
        return {d.decision.version: d for d in self.decided if d.decision.target == target}

    def by(self, change: ChangeId) -> str:
        """Who gave a command; "" for what is none."""
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
    """Fold the records of commands, ddl, joined-schemas and sink-progress.

    Args:
        pipeline: Whose.
        records: Each topic's in order of their offsets.
        format_: Of the pipeline's own records.
        at_ms: Before which they were written.

    Raises:
        ContractError: A record is not ours.
    """
    view = StatusView()
    decided: dict[ChangeId, Decided] = {}
    commands: dict[int, OperatorCommand] = {}
    for record in records:
        if record.value is None:
            continue
        found = format_.read(record.value)
        if isinstance(found, OperatorCommand):
            commands[record.offset] = found
            continue
        view.apply(found)
        if isinstance(found, Decision):
            # Written again after a crash it is the same decision.
            decided.setdefault(found.id, Decided(found, record.timestamp_ms))
    return Picture(pipeline, at_ms, view.targets(), tuple(decided.values()), commands)


def moment(ms: int) -> str:
    """A time as text; "" for 0, which is "not known"."""
    return iso_time(ms) if ms else ""
