"""The rows of an event are counted, or it is said that they cannot be."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pymysql
import pytest

from shardmerge.connectors.binlog.binlog_events import RowsEvent
from shardmerge.connectors.sources import source_binlog
from shardmerge.connectors.sources.source_binlog import SourceBinlog
from shardmerge.schemas.model.errors import StackError
from tests.unit.connectors.debezium.test_source_config import source

EVENT = RowsEvent("b.000001", 400, 500, 300, 2, "", "app.t")


@dataclass
class Packet:
    log_pos: int


@dataclass
class Found:
    """An event as the library gives it: values are decoded when the rows are asked for."""

    packet: Packet
    has: object

    @property
    def rows(self) -> object:
        if isinstance(self.has, Exception):
            raise self.has
        return self.has


def binlog(monkeypatch: pytest.MonkeyPatch, *events: Found | Exception) -> SourceBinlog:
    def read() -> Iterator[Found]:
        for event in events:
            if isinstance(event, Exception):
                raise event
            yield event

    @contextmanager
    def stream(*_: object, **__: Any) -> Iterator[Iterator[Found]]:
        yield read()

    monkeypatch.setattr(source_binlog, "binlog_stream", stream)
    return SourceBinlog(source())


def test_the_rows_of_the_event_that_ends_there_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    events = Found(Packet(450), [1]), Found(Packet(500), [1, 2, 3])
    assert binlog(monkeypatch, *events).number_of_rows(EVENT) == 3


@pytest.mark.parametrize(
    "error",
    [NotImplementedError("type 242"), struct.error("short"), ValueError("json"), KeyError(140)],
)
def test_an_event_with_a_value_that_cannot_be_decoded_has_no_number(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    assert binlog(monkeypatch, Found(Packet(500), error)).number_of_rows(EVENT) is None
    assert binlog(monkeypatch, error).number_of_rows(EVENT) is None


def test_a_server_that_does_not_answer_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(StackError, match="its binlog cannot be read"):
        binlog(monkeypatch, pymysql.OperationalError(2013, "gone")).number_of_rows(EVENT)


def test_a_binlog_without_the_event_is_another_one(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(StackError, match="no rows event ends at") as raised:
        binlog(monkeypatch, Found(Packet(600), [1])).number_of_rows(EVENT)
    assert raised.value.code == "SM-4404"
