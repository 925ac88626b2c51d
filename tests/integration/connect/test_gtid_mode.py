"""GTIDs of a source that are switched off, and on again, while a connector reads it.

Debezium 3.6.1 reads by GTID where ``gtid_mode`` is ON at its task's start, else by file and
position, and keeps the GTIDs of before in its offset meanwhile. With the watchdog each row comes
once, whatever restarts the connector.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from shardmerge.connectors.binlog.gtids import MySqlGtids
from shardmerge.connectors.binlog.source_offset import SourceOffset
from shardmerge.connectors.connect.connect_rest import ConnectRest
from shardmerge.connectors.deploy import deploy_connectors
from shardmerge.connectors.repair.source_repair import repairs_of
from shardmerge.connectors.watchdog import Watchdog

from .conftest import Play
from .one_connector import TIMEOUT_S, OneConnector, connected
from .test_connectors import wait_for_snapshot

OFF = ("ON_PERMISSIVE", "OFF_PERMISSIVE", "OFF")
ON = ("OFF_PERMISSIVE", "ON_PERMISSIVE", "ON")


@pytest.fixture
def bare(play: Play, rest: ConnectRest) -> Iterator[OneConnector]:
    """A connector whose source's GTIDs are on before and behind the test."""
    with connected(play, rest) as line:
        line.query(f"CREATE TABLE `{play.database}`.t (id INT PRIMARY KEY)")
        deploy_connectors(play.pipeline, rest)
        wait_for_snapshot(play)
        try:
            yield line
        finally:
            ((mode,),) = line.query("SELECT @@gtid_mode")
            switch(line, *ON[("OFF", *ON).index(mode) :], with_rows=False)


@pytest.fixture
def line(play: Play, rest: ConnectRest, bare: OneConnector) -> Iterator[OneConnector]:
    """The same with a watchdog."""
    repairs = repairs_of(play.pipeline, rest)
    stop = threading.Event()
    watchdog = Watchdog(ConnectRest(rest.url), [bare.name], 0.5, repairs)
    beside = threading.Thread(target=watchdog.run, args=(stop,))
    beside.start()
    try:
        yield bare
    finally:
        stop.set()
        beside.join()
        for repair in repairs.values():
            repair.close()


def switch(line: OneConnector, *modes: str, with_rows: bool = True) -> None:
    """Take the server through modes of ``gtid_mode``, with a row written in each."""
    for mode in modes:
        line.query(f"SET GLOBAL gtid_mode = {mode}")
        if with_rows:
            line.write()


def wait(is_so: Callable[[], bool], told: Callable[[], object]) -> None:
    """Wait until something is so."""
    deadline = time.monotonic() + TIMEOUT_S
    while not is_so():
        assert time.monotonic() < deadline, told()
        time.sleep(0.1)


def wait_by_place(line: OneConnector, expected: bool) -> None:
    """Wait until the offset says that the connector goes by its place, or by GTID."""

    def is_so() -> bool:
        offset = SourceOffset(line.offset())
        return offset.is_by_place is expected and line.is_running()

    wait(is_so, line.offset)


def test_a_marked_offset_starts_no_task_that_would_go_by_gtid(
    play: Play, bare: OneConnector
) -> None:
    with play.reader(play.topic("t")) as topic:
        bare.write()
        assert topic.ids(1) == [1]
        bare.stop()
        offset = SourceOffset(bare.offset())
        assert isinstance(offset.gtids, MySqlGtids)
        marked = offset.with_gtids(offset.gtids, next(iter(offset.gtids.intervals)))
        last = bare.write()

        bare.go_on(marked.values)

        assert "Malformed GTID set encoding. Error code: 1773" in bare.wait_failed().reason(20)
        assert bare.offset()["gtids"] == marked.values["gtids"]
        bare.stop()
        bare.go_on(offset.values)
        assert topic.ids(1) == [last]


def test_each_row_comes_once_whoever_restarts_the_connector_while_gtids_are_off_and_on_again(
    play: Play, line: OneConnector, rest: ConnectRest
) -> None:
    with play.reader(play.topic("t")) as topic:
        line.write()
        assert topic.ids(1) == [1]

        switch(line, "ON_PERMISSIVE", "OFF_PERMISSIVE")
        # At OFF the server refuses what has a GTID and is not read yet.
        assert topic.ids(2) == [2, 3]
        switch(line, "OFF")
        assert topic.ids(1) == [4]
        wait_by_place(line, True)
        # Right behind a DDL: by its end in the binlog the history tells that it is not to come.
        line.alter("a")
        with play.reader(play.source) as told:
            while "ADD a" not in told.next()["ddl"]:
                pass
        rest.restart(line.name)
        line.write()
        assert topic.next()["after"] == {"id": 5, "a": None}

        line.stop()
        line.write()
        line.alter("b")
        switch(line, "OFF_PERMISSIVE")
        line.go_on()
        switch(line, "ON_PERMISSIVE")
        assert topic.next()["after"] == {"id": 6, "a": None}
        assert topic.next()["after"] == {"id": 7, "a": None, "b": None}
        assert topic.ids(1) == [8]
        line.alter("c")
        switch(line, "ON")
        # Before the watchdog has seen it, or not: either is right.
        rest.restart(line.name)
        wait_by_place(line, False)
        rest.restart(line.name)
        line.alter("d")
        line.write()
        assert topic.next()["after"] == {"id": 9, "a": None, "b": None, "c": None}
        assert topic.next()["after"] == {"id": 10, "a": None, "b": None, "c": None, "d": None}
        rest.restart(line.name)
        line.write()
        assert topic.ids(1) == [11]


def test_rows_that_the_server_refuses_are_waited_for_and_the_log_says_what_goes_on(
    play: Play, line: OneConnector, rest: ConnectRest, caplog: pytest.LogCaptureFixture
) -> None:
    def held() -> list[str]:
        return [r.getMessage() for r in caplog.records if "source_held" in r.getMessage()]

    def wait_held(number: int, mode: str, command: str) -> None:
        wait(lambda: len(held()) == number, lambda: (rest.status(line.name), line.offset()))
        assert f" gtid_mode={mode} " in held()[-1]
        assert f'hint="SET GLOBAL gtid_mode = {command} on the source' in held()[-1]

    with play.reader(play.topic("t")) as topic, caplog.at_level(logging.ERROR):
        line.write()
        assert topic.ids(1) == [1]
        line.stop()
        switch(line, *OFF)
        line.resume()
        wait_held(1, "OFF", "OFF_PERMISSIVE")
        switch(line, "OFF_PERMISSIVE")
        assert topic.ids(4) == [2, 3, 4, 5]
        switch(line, "ON_PERMISSIVE", "ON")
        wait_by_place(line, False)

        line.stop()
        switch(line, *OFF)
        line.resume()
        wait_held(2, "OFF", "OFF_PERMISSIVE")
        # Debezium by itself would begin behind the rows that have no GTID, and tell nothing.
        switch(line, *ON)
        wait_held(3, "ON", "ON_PERMISSIVE")
        switch(line, "ON_PERMISSIVE")
        last = line.write()
        assert topic.ids(last - 5) == list(range(6, last + 1))
        switch(line, "ON")
        wait_by_place(line, False)
        rest.restart(line.name)
        last = line.write()
        assert topic.ids(2) == [last - 1, last]
        assert len(held()) == 3
