"""Where partitions end, of a client that remembers one without a leader."""

from __future__ import annotations

from typing import cast

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException

from shardmerge.connectors.kafka.partition_offsets import partition_ends
from tests.toy_client import ToyClient


def ask(client: ToyClient, count: int = 1) -> dict[tuple[str, int], int]:
    return partition_ends(cast(Consumer, client), [("a", number) for number in range(count)], 1.0)


@pytest.mark.parametrize(
    "first", [KafkaError(KafkaError._NOENT, "No leaders found"), -1001, -1], ids=str
)
def test_what_is_not_known_is_refused_once_and_known_when_asked_again(
    first: int | KafkaError,
) -> None:
    known = [first]  # until the metadata are read anew
    client = ToyClient(lambda _topic, _partition: known[-1], asked_anew=lambda: known.append(7))
    with pytest.raises(KafkaException, match=r"No leaders found|gave no offset for a/0"):
        ask(client)
    assert ask(client) == {("a", 0): 7}


def test_thousands_of_partitions_are_asked_for_in_parts() -> None:
    client = ToyClient(lambda _topic, number: number)
    assert ask(client, 700) == {("a", number): number for number in range(700)}
    assert client.sizes == [300, 300, 100]
