"""Where partitions begin or end, many asked at once."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from itertools import islice

from confluent_kafka import IsolationLevel, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from shardmerge.schemas.model.errors import StackError

from .client_offsets import valid_offset

_CHUNK = 500
"""Partitions of one request. librdkafka searches its lists from their beginnings: 10,000 partitions
take 7.9 s and 0.67 s of a processor in one request, and 2.3 s and 0.21 s in requests of 500 (2.16,
measured on a busy machine)."""


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
        timeout_s: Bound of each request.

    Raises:
        KafkaException: A partition's offset is not known now.
    """
    questions, found = iter(asked.items()), dict[tuple[str, int], int]()
    try:
        while some := dict(islice(questions, _CHUNK)):
            answers = admin.list_offsets(some, isolation_level=isolation, request_timeout=timeout_s)
            for p, future in answers.items():
                offset = future.result().offset
                found[p.topic, p.partition] = _valid_offset(p.topic, p.partition, offset)
    except KafkaException:
        # The caller gets the first refusal, even if this fails too.
        with suppress(KafkaException):
            admin.list_topics(timeout=timeout_s)
        raise
    return found


def _valid_offset(topic: str, partition: int, offset: int) -> int:
    try:
        return valid_offset(offset, topic, partition)
    except StackError as error:
        # It passes, like the errors of a leader that moves. Who asks again looks for that code.
        refusal = KafkaError(KafkaError.LEADER_NOT_AVAILABLE, error.message)
        raise KafkaException(refusal) from error
