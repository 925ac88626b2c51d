"""One source that is away keeps no other source's requests from their remedies."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, cast

import pytest

from shardmerge.connectors import reread_watch
from shardmerge.connectors.binlog.source_offset import SourceOffset
from shardmerge.connectors.connect.connect_rest import ConnectRest
from shardmerge.connectors.debezium.connector_names import connector_name
from shardmerge.connectors.debezium.open_requests import Remedy
from shardmerge.connectors.debezium.signals import snapshot_signal
from shardmerge.connectors.formats.stored_record import Extent, StoredRecord
from shardmerge.connectors.repair.source_repair import SourceRepair
from shardmerge.connectors.reread_watch import RereadWatch
from shardmerge.schemas.model.errors import StackError
from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.model.position import SourcePosition
from shardmerge.schemas.pipeline import topics
from tests.unit.connectors.debezium.test_source_config import PIPELINE

FIRST, SECOND = PIPELINE.sources[:2]
SIGNALS = topics.signals(PIPELINE).name


class Repair:
    """A source's repair; ``error`` is raised while the source is away."""

    is_at_work = False
    times_taken_back = 0

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error

    def offset(self) -> SourceOffset:
        if self.error is not None:
            raise self.error
        return SourceOffset({"file": "b.000001", "pos": 900})

    def source_end(self) -> SourcePosition:
        return SourcePosition(0, "b.000001", 100, 0)


class Kafka:
    """One request for each source."""

    def __init__(self) -> None:
        self.requests = [
            snapshot_signal(f"{source.name}@1.0", ShardId(source.name, "app", "t"))
            for source in (FIRST, SECOND)
        ]
        self.sent: list[tuple[bytes | None, bytes]] = []

    def extents(self, names: Iterable[str]) -> list[Extent]:
        return [Extent(n, 0, 0, len(self.requests), 0) for n in names if n == SIGNALS]

    def records(self, extent: Extent) -> Iterator[StoredRecord]:
        for number, (key, value) in enumerate(self.requests[extent.begin :], extent.begin):
            yield StoredRecord(extent.topic, 0, number, key, value)

    def send(self, topic: str, records: Sequence[tuple[bytes | None, bytes]]) -> None:
        assert topic == SIGNALS
        self.sent += records


class Running:
    is_running = True


class Rest:
    def status(self, name: str) -> Running:
        return Running()


def watch_of(
    monkeypatch: pytest.MonkeyPatch, kafka: Kafka, first: Repair, second: Repair
) -> RereadWatch:
    monkeypatch.setattr(reread_watch, "TopicReader", lambda *_: kafka)
    monkeypatch.setattr(reread_watch, "RecordSender", lambda *_: kafka)
    repairs = {
        connector_name(PIPELINE, FIRST): first,
        connector_name(PIPELINE, SECOND): second,
        **{connector_name(PIPELINE, other): Repair() for other in PIPELINE.sources[2:]},
    }
    rest = cast(ConnectRest, cast(Any, Rest()))
    return RereadWatch(PIPELINE, rest, cast(dict[str, SourceRepair], repairs), shortest_s=30.0)


@pytest.mark.parametrize("error", [StackError("it is away"), ValueError("a defect of ours")])
def test_a_source_that_is_away_does_not_keep_the_sources_behind_it(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    first, second, kafka = Repair(error), Repair(), Kafka()
    watch = watch_of(monkeypatch, kafka, first, second)
    assert watch.look(0.0) == ()

    with pytest.raises(type(error), match=str(error)):
        watch.look(31.0)
    assert [key for key, _ in kafka.sent] == [SECOND.name.encode()]

    first.error = None
    assert watch.look(32.0) == ((FIRST.name, Remedy.SEND_AGAIN),)
    assert [key for key, _ in kafka.sent] == [SECOND.name.encode(), FIRST.name.encode()]


def test_each_sources_error_is_told(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    watch = watch_of(monkeypatch, Kafka(), Repair(StackError("one")), Repair(StackError("two")))
    watch.look(0.0)
    with pytest.raises(StackError, match="one"):
        watch.look(31.0)
    assert "watch_failed watched=rereads" in caplog.text and "two" in caplog.text
