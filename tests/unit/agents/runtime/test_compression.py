"""What aiokafka's producer makes of a batch when the worker has told it how to compress."""

from __future__ import annotations

import gzip
import sys

import pytest
from aiokafka.producer.message_accumulator import BatchBuilder
from aiokafka.record.default_records import DefaultRecordBatchBuilder
from aiokafka.record.memory_records import MemoryRecords

from shardmerge.agents.runtime.compression import compress_lightly

GZIP = 1
HEADER = b"\x1f\x8b\x08"
BEST_LEVEL = 2
"""The byte of gzip's header that tells of level 9."""
LEVEL_AT = 8


def batch() -> bytes:
    builder = BatchBuilder(100_000, GZIP)
    for number in range(50):
        assert builder.append(timestamp=1, key=b"k%d" % number, value=b"value " * 20)
    return bytes(builder._build())


def level_of(data: bytes) -> int:
    return data[data.index(HEADER) + LEVEL_AT]


def test_batches_are_compressed_with_less_effort_and_read_as_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    module = sys.modules[DefaultRecordBatchBuilder.__module__]
    monkeypatch.setattr(module, "gzip_encode", module.gzip_encode)  # put back afterwards
    assert level_of(batch()) == BEST_LEVEL
    compress_lightly()
    data = batch()
    assert level_of(data) != BEST_LEVEL
    assert len(gzip.decompress(data[data.index(HEADER) :])) > 10 * len(data)
    records = MemoryRecords(data)
    values = [record.value for record in records.next_batch()]
    assert values == [b"value " * 20] * 50
