from __future__ import annotations

import time

import pytest

from shardmerge.connectors.kafka.client_offsets import valid_offset
from shardmerge.schemas.model.errors import StackError
from shardmerge.schemas.pipeline.settings import Kafka
from shardmerge.spark_sink.barrier.partitions import Partition
from shardmerge.spark_sink.kafka import offsets
from shardmerge.spark_sink.kafka.offsets import OffsetReader
from tests.toy_client import ToyClient


def reader(monkeypatch: pytest.MonkeyPatch, ends: dict[str, int]) -> OffsetReader:
    client = ToyClient(lambda topic, _partition: ends[topic])
    monkeypatch.setattr(offsets, "assigned_consumer", lambda *_: client)
    return OffsetReader(Kafka("127.0.0.1:1"))


def test_an_invalid_offset_is_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = [Partition("rows", 0), Partition("s1", 0)]
    running = reader(monkeypatch, {"rows": 7, "s1": 0})
    assert running.high_watermarks(asked) == {asked[0]: 7, asked[1]: 0}
    restarting = reader(monkeypatch, {"rows": 7, "s1": -1001})
    for read in (restarting.high_watermarks, restarting.stable_ends):
        with pytest.raises(
            StackError,
            match=r"does not tell the end of rows/0 and 1 others: Kafka gave no offset for s1/0",
        ):
            read(asked)


@pytest.mark.parametrize("offset", [-1, -2, -1000, -1001])
def test_librdkafkas_own_values_are_no_offsets(offset: int) -> None:
    with pytest.raises(StackError):
        valid_offset(offset, "t", 0)
    assert valid_offset(0, "t", 0) == 0


def test_a_client_that_is_refused_for_long_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client of librdkafka 2.13 to 2.16 can lose all brokers (its issue 5301)."""
    made = 0

    def client(*_: object) -> ToyClient:
        nonlocal made
        made += 1  # two at a time
        return ToyClient(lambda topic, _partition: -1001 if made < 6 else 7)

    times = [100.0]
    monkeypatch.setattr(offsets, "assigned_consumer", client)
    monkeypatch.setattr(time, "monotonic", lambda: times[-1])
    reader = OffsetReader(Kafka("127.0.0.1:1"))
    for now, clients in ((100.0, 1), (119.0, 1), (121.0, 2), (140.0, 2), (142.0, 3)):
        times.append(now)
        with pytest.raises(StackError):
            reader.high_watermarks([Partition("rows", 0)])
        assert made == 2 * clients
    assert reader.high_watermarks([Partition("rows", 0)]) == {Partition("rows", 0): 7}
