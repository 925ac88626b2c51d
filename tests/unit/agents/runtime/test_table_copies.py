"""Copies of other workers' tables, in real RocksDB tables, from a changelog that a list holds."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from aiokafka.errors import KafkaConnectionError
from faust.exceptions import ConsistencyError
from faust.types import TP

from shardmerge.agents.app import build_app
from shardmerge.agents.handling.stored_table import TRACKER_TABLE
from shardmerge.agents.runtime import table_copies
from shardmerge.agents.runtime.settings import AgentSettings
from shardmerge.agents.runtime.table_copies import TableCopies, first_missing, others_partitions
from shardmerge.schemas.pipeline.settings import Kafka
from tests.recorded import pipeline


@dataclass(frozen=True, slots=True)
class Record:
    """As aiokafka gives it."""

    topic: str
    partition: int
    offset: int
    key: bytes
    value: bytes | None


class ListConsumer:
    """Reads some records at a time off a list; ``stopped`` counts."""

    stopped = 0
    polls = 0

    def __init__(self, records: Sequence[Record], failures: int = 0) -> None:
        self._records, self._failures = records, failures
        self._positions: dict[TP, int] = {}

    async def start(self) -> None:
        if self._failures:
            raise KafkaConnectionError("no broker")

    def assign(self, partitions: Sequence[TP]) -> None:
        self._positions = dict.fromkeys(partitions, 0)

    async def end_offsets(self, partitions: Sequence[TP]) -> dict[TP, int]:
        return {tp: max((r.offset + 1 for r in self._of(tp)), default=0) for tp in partitions}

    def seek(self, tp: TP, offset: int) -> None:
        self._positions[tp] = offset

    async def position(self, tp: TP) -> int:
        return self._positions[tp]

    async def getmany(self, *, timeout_ms: int, max_records: int) -> dict[TP, list[Record]]:
        del timeout_ms
        self.polls += 1
        await asyncio.sleep(0)
        found: dict[TP, list[Record]] = {}
        for tp, position in self._positions.items():
            new = [record for record in self._of(tp) if record.offset >= position]
            if new:
                found[tp] = new[: min(max_records, 3)]
                self._positions[tp] = found[tp][-1].offset + 1
        return found

    def _of(self, tp: TP) -> list[Record]:
        return [record for record in self._records if (record.topic, record.partition) == tp]

    async def stop(self) -> None:
        ListConsumer.stopped += 1


def the_app(folder: Path) -> Any:
    return build_app(pipeline(), AgentSettings(data_directory=folder))


def tracker_partition(app: Any) -> tuple[TP, Any]:
    table = app.tables[TRACKER_TABLE]
    return TP(table.changelog_topic_name, 0), table


def changelog(tp: TP, count: int, seed: int) -> list[Record]:
    """Puts and deletions of few keys; compaction has left gaps."""
    chosen = random.Random(seed)
    offsets = sorted(chosen.sample(range(2 * count), count))
    return [
        Record(
            tp.topic,
            tp.partition,
            offset,
            b"k%d" % chosen.randrange(5),
            None if chosen.random() < 0.3 else b"v%d" % offset,
        )
        for offset in offsets
    ]


def rows(table: Any) -> dict[bytes, bytes]:
    return dict(table.data._visible_items(table.data._db_for_partition(0)))


def made_by(records: Sequence[Record]) -> dict[bytes, bytes]:
    found: dict[bytes, bytes] = {}
    for record in records:
        if record.value is None:
            found.pop(record.key, None)
        else:
            found[record.key] = record.value
    return found


async def until_copied(tp: TP, table: Any, offset: int) -> None:
    while table.persisted_offset(tp) != offset:
        await asyncio.sleep(0)


@pytest.mark.parametrize("seed", range(10))
def test_a_copy_that_is_stopped_anywhere_becomes_the_table_all_the_same(
    tmp_path: Path, seed: int
) -> None:
    tp, table = tracker_partition(the_app(tmp_path))
    records = changelog(tp, 40, seed)
    chosen = random.Random(seed)

    async def play() -> None:
        for _ in range(6):
            copies = TableCopies(Kafka("none:1"), table.app.crash, lambda: ListConsumer(records))
            await copies.follow({tp: table})
            for _ in range(chosen.randrange(25)):
                await asyncio.sleep(0)
            await copies.stop()
            # What is stored is never ahead of what was applied.
            stored = table.persisted_offset(tp)
            applied = [r for r in records if stored is not None and r.offset <= stored]
            assert rows(table) == made_by(applied)
        await copies.follow({tp: table})
        await asyncio.wait_for(until_copied(tp, table, records[-1].offset), 30)
        await copies.stop()

    asyncio.run(play())
    assert rows(table) == made_by(records)


def test_a_batch_that_was_applied_without_its_offset_is_applied_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tp, table = tracker_partition(the_app(tmp_path))
    records = changelog(tp, 12, 5)
    crashed: list[BaseException] = []

    async def crash(error: BaseException) -> None:
        crashed.append(error)

    def killed(*_: Any) -> None:
        raise OSError("killed between the rows and their offset")

    async def play() -> None:
        copies = TableCopies(Kafka("none:1"), crash, lambda: ListConsumer(records))
        with monkeypatch.context() as patched:
            patched.setattr(type(table.data), "set_persisted_offset", killed)
            await copies.follow({tp: table})
            while not crashed:
                await asyncio.sleep(0)
        assert table.persisted_offset(tp) is None
        assert rows(table)
        await copies.stop()
        await copies.follow({tp: table})
        await asyncio.wait_for(until_copied(tp, table, records[-1].offset), 30)
        await copies.stop()

    asyncio.run(play())
    assert [str(error) for error in crashed] == ["killed between the rows and their offset"]
    assert rows(table) == made_by(records)


def test_a_broker_that_is_away_delays_the_copies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(table_copies, "PAUSE_S", 0.0)
    tp, table = tracker_partition(the_app(tmp_path))
    records = changelog(tp, 8, 1)
    failures = [2, 1, 0]
    before = ListConsumer.stopped

    async def play() -> None:
        copies = TableCopies(
            Kafka("none:1"), table.app.crash, lambda: ListConsumer(records, failures.pop(0))
        )
        await copies.follow({tp: table})
        await asyncio.wait_for(until_copied(tp, table, records[-1].offset), 30)
        await copies.stop()
        await copies.stop()  # nothing runs: no error

    asyncio.run(play())
    assert caplog.text.count("copies_delayed") == 2
    assert ListConsumer.stopped - before == 3
    assert rows(table) == made_by(records)


class FailingConsumer(ListConsumer):
    """Cannot be stopped without an error, as when aiokafka's fetching has ended with one."""

    async def stop(self) -> None:
        await super().stop()
        raise KafkaConnectionError("cannot be stopped")


class DeafConsumer(ListConsumer):
    """Takes the first cancellation for itself, as aiokafka can, and goes on."""

    async def getmany(self, *, timeout_ms: int, max_records: int) -> dict[TP, list[Record]]:
        if not self.polls:
            with contextlib.suppress(asyncio.CancelledError):
                self.polls += 1
                await asyncio.sleep(60)
        return await super().getmany(timeout_ms=timeout_ms, max_records=max_records)


class LostConsumer(DeafConsumer):
    """Takes the first cancellation for itself, and fails."""

    async def position(self, tp: TP) -> int:
        raise KafkaConnectionError(f"no broker for {tp}")


@pytest.mark.parametrize("kind", [FailingConsumer, DeafConsumer, LostConsumer])
def test_the_copying_ends_when_told_whatever_the_consumer_does(
    tmp_path: Path, kind: type[ListConsumer], caplog: pytest.LogCaptureFixture
) -> None:
    tp, table = tracker_partition(the_app(tmp_path))
    records = changelog(tp, 8, 1)
    before = ListConsumer.stopped

    async def play() -> None:
        consumer = kind(records)
        copies = TableCopies(Kafka("none:1"), table.app.crash, lambda: consumer)
        await copies.follow({tp: table})
        while not consumer.polls:
            await asyncio.sleep(0)
        (task,) = asyncio.all_tasks() - {asyncio.current_task()}
        await asyncio.wait_for(copies.stop(), 1)
        assert task.done()

    asyncio.run(play())
    assert ListConsumer.stopped - before == 1
    assert caplog.text.count("cannot be stopped") == (kind is FailingConsumer)


def test_a_consumer_that_cannot_be_stopped_does_not_hide_why_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tp, table = tracker_partition(the_app(tmp_path))
    records = changelog(tp, 8, 1)
    crashed: list[BaseException] = []

    async def crash(error: BaseException) -> None:
        crashed.append(error)

    def broken(*_: Any) -> None:
        raise OSError("no space left")

    async def play() -> None:
        monkeypatch.setattr(type(table.data), "set_persisted_offset", broken)
        copies = TableCopies(Kafka("none:1"), crash, lambda: FailingConsumer(records))
        await copies.follow({tp: table})
        for _ in range(100):
            await asyncio.sleep(0.01)
            if crashed:
                break
        await asyncio.wait_for(copies.stop(), 1)

    asyncio.run(play())
    assert [str(error) for error in crashed] == ["no space left"]


def test_a_worker_copies_what_it_was_not_given(tmp_path: Path) -> None:
    app = the_app(tmp_path)
    tables = list(app.tables.values())
    everything = others_partitions(tables, [])
    topics = {table.changelog_topic_name: table.partitions for table in tables}
    assert len(everything) == sum(topics.values())
    own, table = tracker_partition(app)
    assert everything.keys() - others_partitions(tables, [own]).keys() == {own}
    assert everything[own] is table
    assert others_partitions(tables, everything) == {}


def test_a_copy_is_read_on_from_its_offset_and_never_beyond_the_changelog() -> None:
    tp = TP("changelog", 0)
    assert first_missing(None, 0, tp) == 0
    assert first_missing(None, 9, tp) == 0
    assert first_missing(8, 9, tp) == 9
    with pytest.raises(ConsistencyError, match=r"changelog/0 was read up to offset 9.* ends at 9"):
        first_missing(9, 9, tp)
