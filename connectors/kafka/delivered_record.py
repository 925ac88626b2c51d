"""Writes one record, and waits until Kafka has it."""

from __future__ import annotations

from confluent_kafka import KafkaError, KafkaException, Message

from shardmerge.connectors.access.kafka import client_error
from shardmerge.connectors.access.kafka import producer as producer_of
from shardmerge.schemas.model.errors import StackError
from shardmerge.schemas.pipeline.settings import Kafka
from shardmerge.schemas.pipeline.topics import MAX_RECORD_BYTES


def deliver(
    kafka: Kafka,
    topic: str,
    value: bytes | None,
    key: str,
    *,
    header: tuple[str, str],
    what: str,
    within_s: float,
) -> int:
    """Write a record of one of our own topics.

    Args:
        kafka: Whose brokers.
        topic: An existing topic.
        value: The record's bytes; None for a tombstone.
        key: Its key.
        header: Name and text of a header, for people.
        what: What the record is, as the subject of a sentence.
        within_s: How long to wait for Kafka, in seconds.

    Returns:
        The record's offset.

    Raises:
        StackError: Kafka does not take it.
    """
    producer = producer_of(
        kafka,
        {
            "enable.idempotence": True,
            "message.max.bytes": MAX_RECORD_BYTES,
            "log_level": 0,
        },
    )
    offsets: list[int] = []

    def delivered(error: KafkaError | None, message: Message) -> None:
        if error is not None:
            raise KafkaException(error)
        offsets.append(message.offset() or 0)

    name, text = header
    try:
        producer.produce(
            topic, value, key.encode(), on_delivery=delivered, headers=[(name, text.encode())]
        )
        producer.flush(within_s)
    except KafkaException as error:
        raise client_error(kafka, error, what) from error
    if not offsets:
        raise StackError(
            f"{what} was not taken by Kafka within {within_s:.0f} s",
            hint=f"see whether the broker runs; it is not known whether {what} is in its topic",
            code="SM-4107",
        )
    return offsets[0]
