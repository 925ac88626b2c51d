"""The steps of a reading, against a Connect that keeps what it is told."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from shardmerge.connectors.binlog.source_offset import SourceOffset
from shardmerge.connectors.connect.connect_rest import ConnectRest
from shardmerge.connectors.debezium.connector_names import connector_name
from shardmerge.connectors.formats.connector_status import ConnectorStatus, TaskStatus
from shardmerge.connectors.repair.source_repair import SourceRepair
from shardmerge.connectors.whole import table_reading
from shardmerge.connectors.whole.readings.open_readings import Wanted
from shardmerge.connectors.whole.readings.reading_config import wanted_of
from shardmerge.connectors.whole.table_reading import GivenUp, TableReading
from shardmerge.schemas.model.errors import StackError
from shardmerge.schemas.model.names import ShardId, TargetTable
from shardmerge.schemas.pipeline.settings import Pipeline, Source
from tests.unit.connectors.debezium.test_source_config import PIPELINE

SOURCE = PIPELINE.sources[0]
OWN = connector_name(PIPELINE, SOURCE)
WANTED = (Wanted(TargetTable("m", "t"), ShardId(SOURCE.name, "app", "t"), 3),)


@dataclass
class Connect:
    """Connectors with their states and offsets; what was done, in order."""

    configs: dict[str, Mapping[str, str]] = field(default_factory=dict)
    states: dict[str, str] = field(default_factory=lambda: {OWN: "RUNNING"})
    offsets: dict[str, dict[str, Any]] = field(default_factory=dict)
    done: list[str] = field(default_factory=list)
    is_under_repair_: bool = False

    def connectors(self) -> tuple[str, ...]:
        return tuple(self.states)

    def status(self, name: str) -> ConnectorStatus | None:
        if (state := self.states.get(name)) is None:
            return None
        tasks = () if state == "STOPPED" else (TaskStatus(0, state, "went wrong"),)
        return ConnectorStatus(name, "STOPPED" if state == "STOPPED" else "RUNNING", tasks)

    def config(self, name: str) -> Mapping[str, str] | None:
        return self.configs.get(name)

    def offset(self, name: str) -> dict[str, Any] | None:
        return self.offsets.get(name)

    def create_stopped(self, name: str, config: Mapping[str, str]) -> None:
        self.configs[name], self.states[name] = config, "STOPPED"
        self.done.append("made")

    def resume(self, name: str) -> None:
        assert self.states[OWN] == "STOPPED"
        self.states[name] = "RUNNING"
        self.done.append("resumed")

    def delete(self, name: str) -> None:
        del self.states[name]
        self.done.append("deleted")

    # The repair of the source's own connector.

    def is_under_repair(self) -> bool:
        return self.is_under_repair_

    def set_aside(self) -> bool:
        if self.is_under_repair_:
            return False
        self.states[OWN] = "STOPPED"
        self.done.append("set aside")
        return True

    def take_back(self) -> None:
        self.states[OWN] = "RUNNING"
        self.done.append("taken back")


class Repair:
    def __init__(self, connect: Connect, offset: dict[str, Any] | None) -> None:
        self._offset = offset
        self.is_under_repair, self.set_aside = connect.is_under_repair, connect.set_aside
        self.take_back = connect.take_back

    def offset(self) -> SourceOffset | None:
        return None if self._offset is None else SourceOffset(self._offset)


@pytest.fixture
def connect(monkeypatch: pytest.MonkeyPatch) -> Connect:
    connect = Connect()

    def move_binlog(pipeline: Pipeline, source: Source) -> None:
        connect.done.append("moved")

    def create_topics(servers: str, specs: Iterable[Any]) -> None:
        connect.done.append("topic made")

    def delete_topics(servers: str, are_wanted: Callable[..., Any]) -> None:
        connect.done.append("topics deleted")

    for function in (move_binlog, create_topics, delete_topics):
        monkeypatch.setattr(table_reading, function.__name__, function)
    return connect


def reading_of(
    connect: Connect, offset: Mapping[str, Any] | None = {"file": "b.1", "pos": 4}
) -> TableReading:
    repair = Repair(connect, None if offset is None else dict(offset))
    reading = TableReading(PIPELINE, SOURCE, cast(ConnectRest, connect), cast(SourceRepair, repair))
    assert reading.look() is None
    # Topics that another process left behind.
    assert connect.done.pop() == "topics deleted"
    return reading


def begun(connect: Connect) -> tuple[TableReading, str]:
    """A reading that runs, and its connector."""
    reading = reading_of(connect)
    assert reading.begin(WANTED)
    assert reading.look() is None
    (name,) = reading.under_way()
    connect.done.clear()
    return reading, name


def test_a_reading_begins_when_the_sources_own_connector_has_stopped(connect: Connect) -> None:
    reading = reading_of(connect)
    assert reading.begin(WANTED)
    assert connect.done == ["moved", "topic made", "made"]
    (name,) = reading.under_way()
    assert wanted_of(connect.configs[name]) == WANTED
    assert reading.look() is None
    assert connect.done[3:] == ["set aside", "resumed"]
    assert connect.states == {OWN: "STOPPED", name: "RUNNING"}


@pytest.mark.parametrize("state", ["STOPPED", "PAUSED", "FAILED", "UNASSIGNED"])
def test_none_begins_while_that_does_not_run(connect: Connect, state: str) -> None:
    reading = reading_of(connect)
    connect.states[OWN] = state
    assert not reading.begin(WANTED)
    assert connect.done == []


@pytest.mark.parametrize("offset", [None, {"file": "b.1", "pos": 4, "snapshot": "INITIAL"}])
def test_none_begins_before_its_first_snapshot_is_over(
    connect: Connect, offset: dict[str, Any] | None
) -> None:
    assert not reading_of(connect, offset).begin(WANTED)
    assert connect.done == []


def test_none_begins_while_that_is_under_repair(connect: Connect) -> None:
    connect.is_under_repair_ = True
    assert not reading_of(connect).begin(WANTED)
    assert connect.done == []


@pytest.mark.parametrize("offset", [None, {"file": "b.1", "pos": 900, "snapshot": "INITIAL"}])
def test_a_snapshot_that_is_not_complete_is_awaited(
    connect: Connect, offset: dict[str, Any] | None
) -> None:
    reading, name = begun(connect)
    if offset is not None:
        connect.offsets[name] = offset
    assert reading.look() is None
    assert connect.done == []


def fails(connect: Connect, name: str) -> None:
    connect.states[name] = "FAILED"


def is_stopped_by_hand(connect: Connect, name: str) -> None:
    connect.states[name] = "STOPPED"
    connect.offsets[name] = {"file": "b.1", "pos": 900, "snapshot": "INITIAL"}


def own_is_resumed_by_hand(connect: Connect, name: str) -> None:
    connect.states[OWN] = "RUNNING"


def a_repair_has_begun(connect: Connect, name: str) -> None:
    connect.states[name] = "STOPPED"
    connect.is_under_repair_ = True


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        (fails, "its connector failed: went wrong"),
        (is_stopped_by_hand, "was stopped while it read"),
        (own_is_resumed_by_hand, "was not stopped all the time"),
        (a_repair_has_begun, "is being repaired"),
    ],
)
def test_a_reading_that_cannot_count_is_given_up(
    connect: Connect, fault: Callable[[Connect, str], None], reason: str
) -> None:
    reading, name = begun(connect)
    fault(connect, name)
    end = reading.look()
    assert isinstance(end, GivenUp)
    assert reason in end.reason
    # As long as Connect knows the reading, the stop of the source's own connector is its doing.
    assert connect.done == ["taken back", "deleted", "topics deleted"]
    assert connect.states == {OWN: "RUNNING"}
    assert reading.look() is None


def test_an_end_that_is_interrupted_is_made_good_at_the_next_look(
    connect: Connect, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    reading, name = begun(connect)
    connect.states[name] = "FAILED"

    def refuse(_: Connect, name: str) -> None:
        raise StackError("Connect is away")

    with monkeypatch.context() as patch:
        patch.setattr(Connect, "delete", refuse)
        with pytest.raises(StackError):
            reading.look()
    assert connect.states[OWN] == "RUNNING"
    end = reading.look()
    assert end == GivenUp("its connector failed: went wrong")
    assert connect.states == {OWN: "RUNNING"}
    assert caplog.text.count("whole_reading_given_up") == 1


def test_two_at_once_are_both_given_up(connect: Connect) -> None:
    reading, name = begun(connect)
    connect.states[name.rpartition(".")[0] + ".ffffffffffff"] = "RUNNING"
    assert isinstance(reading.look(), GivenUp)
    assert connect.states == {OWN: "RUNNING"}
