"""Reading topics as a whole, as far as it needs no broker."""

from __future__ import annotations

import pytest

from shardmerge.connectors.stored_record import Extent
from shardmerge.connectors.topic_reader import TopicReader
from shardmerge.schemas.errors import StackError

NOBODY = "127.0.0.1:1"


def test_a_broker_that_does_not_answer_is_told_with_its_address() -> None:
    with (
        TopicReader(NOBODY, timeout_s=0.5) as reader,
        pytest.raises(StackError, match=f"Kafka at {NOBODY}") as caught,
    ):
        reader.extents(["a"])
    assert caught.value.hint


def test_silence_before_the_end_is_told_with_the_partition() -> None:
    with (
        TopicReader(NOBODY, timeout_s=0.5) as reader,
        pytest.raises(StackError, match=r"Kafka at|a/0 gave nothing .* offset 3"),
    ):
        list(reader.records(Extent("a", 0, 0, 3, 3)))


def test_an_empty_partition_needs_no_reading() -> None:
    with TopicReader(NOBODY, timeout_s=0.5) as reader:
        assert list(reader.records(Extent("a", 0, 3, 3, 3))) == []
