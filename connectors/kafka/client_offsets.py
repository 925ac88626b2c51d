"""Offsets that Kafka's client answers, before anything is decided by them. Pure."""

from __future__ import annotations

from shardmerge.schemas.model.errors import StackError


def valid_offset(offset: int, topic: str, partition: int) -> int:
    """The offset in Kafka's answer to a question for the beginning or end of a partition.

    While a broker restarts, librdkafka answers without an error and with one of its own values
    (-1001, "invalid"; -1, "end"; -2, "beginning"): no place in a partition. (Measured.)

    Raises:
        StackError: The answer is no offset. Asked again, Kafka answers when it is up.
    """
    if offset < 0:
        raise StackError(
            f"Kafka gave no offset for {topic}/{partition} (the client answers {offset})",
            hint="it is asked again; if that lasts, see the brokers' logs",
            code="SM-4109",
        )
    return offset
