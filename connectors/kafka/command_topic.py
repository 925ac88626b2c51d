"""Writes commands to a pipeline's log, from where its tracker takes them."""

from __future__ import annotations

from shardmerge.schemas.pipeline import topics
from shardmerge.schemas.pipeline.settings import Pipeline
from shardmerge.schemas.records.operator_commands import OperatorCommand
from shardmerge.schemas.records.record_format import RecordFormat
from shardmerge.schemas.records.schema_changes import ChangeId

from .delivered_record import deliver

_SEND_S = 30.0


def send_command(pipeline: Pipeline, format_: RecordFormat, said: OperatorCommand) -> ChangeId:
    """Write a command.

    Args:
        pipeline: Whose log.
        format_: Of the pipeline's records.
        said: The command; the offset of its id does not matter.

    Returns:
        The id that its answer has.

    Raises:
        StackError: Kafka does not take it.
    """
    topic = topics.commands(pipeline).name
    offset = deliver(
        pipeline.kafka,
        topic,
        format_.write(said),
        str(said.target),
        header=("command", str(said)),
        what="the command",
        within_s=_SEND_S,
    )
    return ChangeId(topic, offset)
