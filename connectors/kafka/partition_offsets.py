"""Where partitions begin or end, many asked at once.

A consumer asks, not librdkafka's admin client: the call waits in C, without a Python future for
each partition and a thread between. So it costs a third of the processor time (2.16, 100 to 3,000
partitions), and one partition's answer comes in half of the time. Whether open transactions count
is the consumer's ``isolation.level``.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from itertools import islice

from confluent_kafka import (
    OFFSET_BEGINNING,
    OFFSET_END,
    Consumer,
    KafkaError,
    KafkaException,
    TopicPartition,
)

from shardmerge.schemas.model.errors import StackError

from .client_offsets import valid_offset

_CHUNK = 300
"""Partitions of one request: librdkafka searches its lists from their beginnings."""


def partition_begins(
    client: Consumer, partitions: Iterable[tuple[str, int]], timeout_s: float
) -> dict[tuple[str, int], int]:
    """Topic and partition → its first offset; see ``partition_ends``."""
    return _offsets(client, partitions, OFFSET_BEGINNING, timeout_s)


def partition_ends(
    client: Consumer, partitions: Iterable[tuple[str, int]], timeout_s: float
) -> dict[tuple[str, int], int]:
    """Ask where partitions end.

    After a refusal the client's metadata are read anew, so that a later call can succeed:
    librdkafka 2.16 keeps a partition without a leader in its cache and answers out of that for
    minutes (measured on a broker that had stood still).

    Args:
        client: Asks. It need not have partitions of its own.
        partitions: Topic and partition.
        timeout_s: Bound of each request.

    Returns:
        Topic and partition → its end offset (exclusive): the high watermark, or for a client that
        reads committed records only, what such a client can read up to.

    Raises:
        KafkaException: A partition's offset is not known now.
    """
    return _offsets(client, partitions, OFFSET_END, timeout_s)


def _offsets(
    client: Consumer, partitions: Iterable[tuple[str, int]], which: int, timeout_s: float
) -> dict[tuple[str, int], int]:
    # What the client has to say of its connections is taken here: nothing else polls it.
    client.poll(0)
    found: dict[tuple[str, int], int] = {}
    # Kafka takes ``which`` in the place of a time.
    questions = (TopicPartition(topic, number, which) for topic, number in partitions)
    try:
        while asked := list(islice(questions, _CHUNK)):
            for told in client.offsets_for_times(asked, timeout=timeout_s):
                found[told.topic, told.partition] = _known_offset(told)
    except KafkaException:
        # The caller gets the first refusal, even if this fails too.
        with suppress(KafkaException):
            client.list_topics(timeout=timeout_s)
        raise
    return found


def _known_offset(told: TopicPartition) -> int:
    if told.error is not None:
        raise KafkaException(told.error)
    try:
        return valid_offset(told.offset, told.topic, told.partition)
    except StackError as error:
        # It passes, like the errors of a leader that moves. Who asks again looks for that code.
        refusal = KafkaError(KafkaError.LEADER_NOT_AVAILABLE, error.message)
        raise KafkaException(refusal) from error
