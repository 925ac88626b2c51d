"""Where partitions begin or end, many asked at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from itertools import islice

from confluent_kafka import IsolationLevel, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, ListOffsetsResultInfo, OffsetSpec

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
    """Topic and partition → the offset asked for; see ``asked_offsets``."""
    return asked_offsets(admin, asked, isolation, timeout_s)()


def asked_offsets(
    admin: AdminClient,
    asked: Mapping[TopicPartition, OffsetSpec],
    isolation: IsolationLevel,
    timeout_s: float,
) -> Callable[[], dict[tuple[str, int], int]]:
    """Ask for offsets without waiting for the answers.

    After a refusal the client's metadata are read anew, so that a later call can succeed:
    librdkafka 2.16 keeps a partition without a leader in its cache and answers out of that for
    minutes (measured on a broker that had stood still).

    Args:
        admin: Asks.
        asked: Which end of each partition.
        isolation: Whether open transactions count.
        timeout_s: Bound of each request.

    Returns:
        Waits for the answers: topic and partition → the offset asked for. Raises
        ``KafkaException`` if a partition's offset is not known now.
    """
    questions = iter(asked.items())
    answers: dict[TopicPartition, Future[ListOffsetsResultInfo]] = {}
    while some := dict(islice(questions, _CHUNK)):
        answers |= admin.list_offsets(some, isolation_level=isolation, request_timeout=timeout_s)

    def answered() -> dict[tuple[str, int], int]:
        try:
            return {
                (p.topic, p.partition): _valid_offset(p.topic, p.partition, f.result().offset)
                for p, f in answers.items()
            }
        except KafkaException:
            # The caller gets the first refusal, even if this fails too.
            with suppress(KafkaException):
                admin.list_topics(timeout=timeout_s)
            raise

    return answered


def _valid_offset(topic: str, partition: int, offset: int) -> int:
    try:
        return valid_offset(offset, topic, partition)
    except StackError as error:
        # It passes, like the errors of a leader that moves. Who asks again looks for that code.
        refusal = KafkaError(KafkaError.LEADER_NOT_AVAILABLE, error.message)
        raise KafkaException(refusal) from error
