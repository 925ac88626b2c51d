from __future__ import annotations

import pytest

from shardmerge.connectors.kafka.client_offsets import answered
from shardmerge.schemas.model.errors import StackError
from shardmerge.schemas.pipeline.settings import Kafka
from shardmerge.spark_sink.barrier.partitions import Partition
from shardmerge.spark_sink.kafka.offsets import OffsetReader
from tests.toy_admin import ToyAdmin


def reader(offsets: dict[str, int]) -> OffsetReader:
    made = OffsetReader(Kafka("127.0.0.1:1"))
    vars(made)["_admin"] = ToyAdmin(lambda topic, _partition: offsets[topic])
    return made


def test_an_invalid_offset_is_no_answer() -> None:
    asked = [Partition("rows", 0), Partition("s1", 0)]
    assert reader({"rows": 7, "s1": 0}).high_watermarks(asked) == {asked[0]: 7, asked[1]: 0}
    restarting = reader({"rows": 7, "s1": -1001})
    for read in (restarting.high_watermarks, restarting.stable_ends):
        with pytest.raises(
            StackError,
            match=r"does not tell the end of rows/0 and 1 others: Kafka gave no offset for s1/0",
        ):
            read(asked)


@pytest.mark.parametrize("offset", [-1, -2, -1000, -1001])
def test_librdkafkas_own_values_are_no_offsets(offset: int) -> None:
    with pytest.raises(StackError):
        answered(offset, "t", 0)
    assert answered(0, "t", 0) == 0
