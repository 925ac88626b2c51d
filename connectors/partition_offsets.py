"""Where partitions begin or end, many asked at once."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

from confluent_kafka import IsolationLevel, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec


def partition_offsets(
    admin: AdminClient,
    asked: Mapping[TopicPartition, OffsetSpec],
    isolation: IsolationLevel,
    timeout_s: float,
) -> dict[tuple[str, int], int]:
    """Topic and partition → the offset asked for.

    After a refusal the client's metadata are read anew, so that a later call can succeed:
    librdkafka 2.16 keeps a partition without a leader in its cache and answers out of that for
    minutes (measured on a broker that had stood still).

    Args:
        admin: Asks.
        asked: Which end of each partition.
        isolation: Whether open transactions count.
        timeout_s: Bound of the request.

    Raises:
        KafkaException: A partition's offset is not known now.
    """
    if not asked:
        return {}
    try:
        answers = admin.list_offsets(
            dict(asked), isolation_level=isolation, request_timeout=timeout_s
        )
        found = {(p.topic, p.partition): f.result().offset for p, f in answers.items()}
        for (topic, number), offset in found.items():
            # The client's sign for "not known" comes as an answer like any other.
            if offset < 0:
                told = f"no offset of {topic}/{number} was told ({offset})"
                raise KafkaException(KafkaError(KafkaError.LEADER_NOT_AVAILABLE, told))
    except KafkaException:
        # Whatever this meets too, the first refusal is what the caller is to hear.
        with suppress(KafkaException):
            admin.list_topics(timeout=timeout_s)
        raise
    return found
