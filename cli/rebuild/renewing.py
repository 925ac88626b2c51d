"""Has the coordinator put a table that was made anew in its target's place (``renew``)."""

from __future__ import annotations

import time
from dataclasses import dataclass

from shardmerge.cli.command import give
from shardmerge.cli.views.picture import Picture
from shardmerge.cli.views.reading import read_picture
from shardmerge.connectors.clock import now_ms
from shardmerge.schemas.model.errors import StackError
from shardmerge.schemas.pipeline import topics
from shardmerge.schemas.pipeline.settings import Pipeline
from shardmerge.schemas.records.decisions import Decision, Outcome
from shardmerge.schemas.records.operator_commands import CommandKind, OperatorCommand, Renewal
from shardmerge.schemas.records.schema_changes import ChangeId
from shardmerge.spark_sink.rebuilding.rebuild_record import RebuildRecord
from shardmerge.spark_sink.rebuilding.rebuild_rules import Obstacle, not_at_rest

from .beginning import decided_for
from .own_decisions import OwnDecisions
from .rebuilt_target import RebuiltTarget
from .shadow_comparison import decided_for_table

_ANSWER_S = 120.0
_PAUSE_S = 1.0


@dataclass(frozen=True, slots=True)
class Renewing:
    """The last decision of a rebuild.

    Attributes:
        pipeline: Of the target.
        server: The target's server.
        own: What is decided for the new table.
        by: Who gives the command.
    """

    pipeline: Pipeline
    server: RebuiltTarget
    own: OwnDecisions
    by: str

    def lacks(self, record: RebuildRecord) -> Obstacle | None:
        """Why the new table cannot take the target's place now; None if it can.

        Both tables must stand where their decisions lead.

        Raises:
            StackError: Kafka does not answer.
            TargetError: The target does not answer.
        """
        picture = picture_of(self.pipeline)
        self.own.read()
        known = decided_for(picture, record.target)
        if known.version != self.own.fold.of_target.version:
            return Obstacle("SM-6525", "decisions are on their way", "wait for them", passes=True)
        executed = self.server.executed(self.pipeline.name, record.target)
        for each in not_at_rest(known, executed, may_be_held=True):
            return each
        table = record.shadow.table
        executed = self.server.executed(record.sink_name(self.pipeline.name), table)
        for each in not_at_rest(decided_for_table(picture, record, self.own), executed):
            return each
        if why := self.own.fold.difference():
            return Obstacle(
                "SM-6524",
                f"{record.target}: {why}",
                "give the rebuild up with --abort, and begin again: a new table begins with what "
                "the shards have then",
            )
        return None

    def renew(self, record: RebuildRecord) -> Decision:
        """Give the command, and return its answer.

        Raises:
            StackError: Kafka does not answer, or the agents do not.
        """
        assert record.origin is not None
        renewal = Renewal(record.number, self.own.fold.of_target.version, record.origin)
        said = OperatorCommand(
            id=ChangeId(topics.commands(self.pipeline).name, 0),
            target=record.target,
            kind=CommandKind.RENEW,
            argument=str(renewal),
            by=self.by,
            ts_ms=now_ms(),
        )
        given = give(self.pipeline, said, _ANSWER_S)
        if given.answer is None:
            raise _unanswered(str(given.id))
        return given.answer


def renewal_of(pipeline: Pipeline, record: RebuildRecord) -> Decision | None:
    """The decision that the table of this rebuild takes the target's place; None without one.

    A command that was given, and is not answered, is waited for: its answer can still be yes.

    Raises:
        StackError: Kafka does not answer, or the agents do not.
    """
    until = time.monotonic() + _ANSWER_S
    while True:
        picture = picture_of(pipeline)
        given = {
            offset
            for offset, command in picture.commands.items()
            if command.kind is CommandKind.RENEW
            and command.target == record.target
            and Renewal.read(command.argument).rebuild == record.number
        }
        answers = [
            each.decision
            for each in picture.of_target(record.target).values()
            if each.source == topics.commands(pipeline).name and each.decision.id.offset in given
        ]
        for answer in answers:
            if answer.outcome is not Outcome.REFUSED:
                return answer
        waits = given - {answer.id.offset for answer in answers}
        if not waits:
            return None
        if time.monotonic() > until:
            raise _unanswered(f"{topics.commands(pipeline).name}@{min(waits)}")
        time.sleep(_PAUSE_S)


def picture_of(pipeline: Pipeline) -> Picture:
    """What the topics say now.

    Raises:
        StackError: Kafka does not answer.
    """
    return read_picture(pipeline, lambda done, whole: None)


def _unanswered(command: str) -> StackError:
    return StackError(
        f"command {command} is recorded and not answered",
        hint="see whether the agents run, then run the command again; the target stays closed "
        "until then",
        code="SM-6525",
    )
