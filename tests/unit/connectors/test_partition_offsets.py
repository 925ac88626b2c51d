"""Where partitions end, of a client that remembers one without a leader."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any, cast

import pytest
from confluent_kafka import IsolationLevel, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from shardmerge.connectors.partition_offsets import partition_offsets


class Remembering:
    """Answers what it first heard until its metadata are read anew."""

    def __init__(self, first: int | KafkaError) -> None:
        self._answer = first

    def list_topics(self, timeout: float) -> None:
        self._answer = 7

    def list_offsets(
        self, partitions: Mapping[TopicPartition, Any], **_settings: object
    ) -> dict[TopicPartition, Future[SimpleNamespace]]:
        found = {}
        for partition in partitions:
            found[partition] = future = Future[SimpleNamespace]()
            if isinstance(self._answer, KafkaError):
                future.set_exception(KafkaException(self._answer))
            else:
                future.set_result(SimpleNamespace(offset=self._answer))
        return found


def ask(admin: Remembering) -> dict[tuple[str, int], int]:
    asked = {TopicPartition("a", 0): OffsetSpec.latest()}
    return partition_offsets(cast(AdminClient, admin), asked, IsolationLevel.READ_COMMITTED, 1.0)


@pytest.mark.parametrize(
    "first", [KafkaError(KafkaError._NOENT, "No leaders found"), -1001, -1], ids=str
)
def test_what_is_not_known_is_refused_once_and_known_when_asked_again(
    first: int | KafkaError,
) -> None:
    admin = Remembering(first)
    with pytest.raises(KafkaException, match=r"No leaders found|no offset of a/0 was told"):
        ask(admin)
    assert ask(admin) == {("a", 0): 7}
