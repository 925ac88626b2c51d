"""Where partitions end, asked of a broker that stood still for a while."""

from __future__ import annotations

import os
import signal
import time

import pytest

from shardmerge.connectors.kafka.topics_admin import create_topics
from shardmerge.local.servers.stack import LocalStack
from shardmerge.schemas.model.errors import StackError
from shardmerge.schemas.pipeline.topics import TopicSpec
from shardmerge.spark_sink.barrier.partitions import Partition
from shardmerge.spark_sink.kafka.offsets import OffsetReader

STANDS_S = 20.0
"""Longer than the controller waits for a broker: it takes the lead of partitions from it."""
ENDS = Partition("stands", 0)


@pytest.mark.timeout(300)
def test_whoever_asks_while_a_broker_comes_back_is_answered_soon(stack: LocalStack) -> None:
    create_topics(stack.kafka, [TopicSpec(ENDS.topic, 1, 1)])
    pid = stack.status()["kafka"]
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)
    time.sleep(STANDS_S)
    os.kill(pid, signal.SIGCONT)
    began = time.monotonic()
    readers: list[OffsetReader] = []
    refusals: list[str] = []

    def refused(reader: OffsetReader) -> bool:
        try:
            assert reader.high_watermarks([ENDS]) == {ENDS: 0}
        except StackError as error:
            refusals.append(str(error))
            return True
        return False

    while time.monotonic() - began < 3:
        reader = OffsetReader(stack.kafka)
        if refused(reader):
            readers.append(reader)
    # As often as the sink asks again.
    for _ in range(10):
        time.sleep(1)
        readers = [reader for reader in readers if refused(reader)]
        if not readers:
            return
    raise AssertionError(refusals)


def test_an_answer_that_is_taken_later_is_the_one_that_others_get(stack: LocalStack) -> None:
    later = Partition("later", 0)
    create_topics(stack.kafka, [TopicSpec(later.topic, 1, 1)])
    reader = OffsetReader(stack.kafka)
    answers = reader.begin_asking([later], [later.topic, "absent"])

    ends, found = answers()

    assert (ends, found) == reader.high_watermarks_and_topics([later], [later.topic, "absent"])
    assert (ends, list(found)) == ({later: 0}, [later.topic])
    with pytest.raises(StackError, match="does not tell the end of absent/0"):
        reader.begin_asking([Partition("absent", 0)], [])()
