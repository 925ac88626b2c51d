"""Faust's consumer, mended: what the project's own transport does without a broker."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from faust.transport.drivers import aiokafka as driver
from faust.types import TP

from shardmerge.agents.app import build_app
from shardmerge.agents.handling.stored_table import TRACKER_TABLE
from shardmerge.agents.runtime.recovery import ConsumerThread
from shardmerge.agents.runtime.settings import AgentSettings
from tests.recorded import pipeline


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


@pytest.mark.parametrize("is_own", [True, False])
def test_a_late_acknowledgement_moves_the_offset_of_own_partitions_only(
    is_own: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = build_app(pipeline(), AgentSettings(data_directory=tmp_path))
    table = app.tables[TRACKER_TABLE]
    tp = TP(table.changelog_topic_name, 0)
    monkeypatch.setattr(app.assignor, "assigned_actives", lambda: {tp} if is_own else set())

    async def acknowledged() -> None:
        future = asyncio.get_running_loop().create_future()
        future.set_result(SimpleNamespace(topic_partition=tp, offset=7))
        table._on_changelog_sent(future)

    asyncio.run(acknowledged())
    assert table.persisted_offset(tp) == (7 if is_own else None)
