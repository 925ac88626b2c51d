"""Writes commands to a pipeline's log, from where its tracker takes them."""

from __future__ import annotations

from confluent_kafka import KafkaError, KafkaException, Message

from shardmerge.connectors.access.kafka import client_error
from shardmerge.connectors.access.kafka import producer as producer_of
from shardmerge.schemas.model.errors import StackError
from shardmerge.schemas.pipeline import topics
from shardmerge.schemas.pipeline.settings import Pipeline
from shardmerge.schemas.records.operator_commands import OperatorCommand
from shardmerge.schemas.records.record_format import RecordFormat
from shardmerge.schemas.records.schema_changes import ChangeId

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
    producer = producer_of(
        pipeline.kafka,
        {
            "enable.idempotence": True,
            "message.max.bytes": topics.MAX_RECORD_BYTES,
            "log_level": 0,
        },
    )
    offsets: list[int] = []

    def delivered(error: KafkaError | None, message: Message) -> None:
        if error is not None:
            raise KafkaException(error)
        offsets.append(message.offset() or 0)

    try:
        producer.produce(
            topic,
            format_.write(said),
            str(said.target).encode(),
            on_delivery=delivered,
            headers=[("command", str(said).encode())],
        )
        producer.flush(_SEND_S)
    except KafkaException as error:
        raise client_error(pipeline.kafka, error, "the command") from error
    if not offsets:
        raise StackError(
            f"the command was not taken by Kafka within {_SEND_S:.0f} s",
            hint="see whether the broker runs; it is not known whether the command is in the log",
            code="SM-4107",
        )
    return ChangeId(topic, offsets[0])
