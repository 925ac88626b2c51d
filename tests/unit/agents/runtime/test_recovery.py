"""Faust's consumer, mended: what the project's own transport does without a broker."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from faust.transport.drivers import aiokafka as driver
from faust.types import TP

from shardmerge.agents.runtime.recovery import ConsumerThread


@pytest.mark.parametrize(
    ("assigned", "committed"),
    [(set[TP](), []), ({TP("other", 0)}, []), ({TP("log", 0), TP("log", 1)}, [{TP("log", 0): 7}])],
    ids=["nothing", "another", "its own"],
)
def test_a_worker_commits_only_while_it_has_the_partitions(
    assigned: set[TP], committed: list[dict[TP, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []

    async def commit(self: object, offsets: Any) -> bool:
        asked.append(offsets)
        return True

    monkeypatch.setattr(driver.AIOKafkaConsumerThread, "_commit", commit)
    monkeypatch.setattr(ConsumerThread, "assignment", lambda self: assigned)
    thread = ConsumerThread.__new__(ConsumerThread)

    assert asyncio.run(thread._commit({TP("log", 0): 7})) == bool(committed)
    assert asked == committed
