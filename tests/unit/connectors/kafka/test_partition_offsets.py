"""Where partitions end, of a client that remembers one without a leader."""

from __future__ import annotations

from typing import Any, cast

import pytest
from confluent_kafka import IsolationLevel, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from shardmerge.connectors.kafka.partition_offsets import partition_offsets
from tests.toy_admin import ToyAdmin


def ask(admin: ToyAdmin) -> dict[tuple[str, int], int]:
    asked = {TopicPartition("a", 0): OffsetSpec.latest()}
    return partition_offsets(cast(AdminClient, admin), asked, IsolationLevel.READ_COMMITTED, 1.0)


@pytest.mark.parametrize(
    "first", [KafkaError(KafkaError._NOENT, "No leaders found"), -1001, -1], ids=str
)
def test_what_is_not_known_is_refused_once_and_known_when_asked_again(
    first: int | KafkaError,
) -> None:
    known = [first]  # until the metadata are read anew
    admin = ToyAdmin(lambda _topic, _partition: known[-1], asked_anew=lambda: known.append(7))
    with pytest.raises(KafkaException, match=r"No leaders found|gave no offset for a/0"):
        ask(admin)
    assert ask(admin) == {("a", 0): 7}


def test_thousands_of_partitions_are_asked_for_in_parts() -> None:
    sizes: list[int] = []

    class Sized(ToyAdmin):
        def list_offsets(self, partitions: Any, **_settings: Any) -> Any:
            sizes.append(len(partitions))
            return super().list_offsets(partitions)

    asked = {TopicPartition("a", number): OffsetSpec.latest() for number in range(1_200)}
    admin = cast(AdminClient, Sized(lambda _topic, number: number))
    found = partition_offsets(admin, asked, IsolationLevel.READ_COMMITTED, 1.0)
    assert found == {("a", number): number for number in range(1_200)}
    assert sizes == [500, 500, 200]
