"""GTIDs of a source that are switched off, and on again, while a connector reads it.

What Debezium 3.6.1 does by itself, and with which offsets it goes on. It reads by GTID where
``gtid_mode`` is ON at the task's start, else by file and position, and keeps the GTIDs of the past
in its offset meanwhile.

Not a part of ``make test``: ``pytest tests/integration/connect/gtid_mode.py`` plays it.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from shardmerge.connectors.connect_rest import ConnectRest
from shardmerge.connectors.deploy import deploy_connectors

from .conftest import Play
from .one_connector import OneConnector, connected
from .test_connectors import wait_for_snapshot

OFF = ("ON_PERMISSIVE", "OFF_PERMISSIVE", "OFF")
ON = ("OFF_PERMISSIVE", "ON_PERMISSIVE", "ON")
REFUSED = "Cannot replicate anonymous transaction"
REFUSED_WITH_GTID = "Cannot replicate GTID-transaction when @@GLOBAL.GTID_MODE = OFF"


@pytest.fixture
def line(play: Play, rest: ConnectRest) -> Iterator[OneConnector]:
    with connected(play, rest) as line:
        line.query(f"CREATE TABLE `{play.database}`.t (id INT PRIMARY KEY)")
        deploy_connectors(play.pipeline, rest)
        wait_for_snapshot(play)
        try:
            yield line
        finally:
            ((mode,),) = line.query("SELECT @@gtid_mode")
            for following in ("OFF", *ON)[("OFF", *ON).index(mode) + 1 :]:
                line.query(f"SET GLOBAL gtid_mode = {following}")


def switch(line: OneConnector, *modes: str, with_rows: bool = True) -> None:
    """Take the server through modes of ``gtid_mode``, with a row written in each."""
    for mode in modes:
        line.query(f"SET GLOBAL gtid_mode = {mode}")
        if with_rows:
            line.write()


def test_a_source_whose_gtids_are_switched_off_stops_and_goes_on_by_a_restart(
    play: Play, line: OneConnector
) -> None:
    with play.reader(play.topic("t")) as topic:
        line.write()
        assert topic.ids(1) == [1]

        switch(line, *OFF)
        status = line.wait_failed()
        line.restart_failed()
        line.alter("a")
        last = line.write()

        assert REFUSED in status.reason(20)
        assert topic.ids(last - 1) == list(range(2, last + 1)), "by file and position, each once"
        assert line.offset()["gtids"], "those from before: they mean nothing now, and are kept"


def test_gtids_that_are_on_again_must_be_written_into_the_offset_before_a_restart(
    play: Play, line: OneConnector, rest: ConnectRest
) -> None:
    with play.reader(play.topic("t")) as topic:
        line.write()
        assert topic.ids(1) == [1]
        switch(line, *OFF)
        line.wait_failed()
        line.restart_failed()
        assert topic.ids(3) == [2, 3, 4]
        switch(line, *ON)
        line.alter("a")
        last = line.write()
        assert topic.ids(last - 4) == list(range(5, last + 1)), "it reads on by file and position"

        line.stop()
        stale = line.offset()
        place = line.gtids_at(stale)
        line.go_on()
        # By the GTIDs of before the server would begin with row 2, and then has rows without one.
        # Where it has none, rows come a second time, or stop it where a column came meanwhile.
        failure = line.wait_failed().reason(20)
        line.stop()
        line.go_on({**line.offset(), "gtids": place})
        last = line.write()

        assert stale["gtids"] != place
        assert REFUSED in failure
        assert topic.ids(1) == [last], "with the GTIDs of its place it goes on, each row once"
        rest.restart(line.name)
        last = line.write()
        assert topic.ids(1) == [last]


def test_rows_without_gtids_that_were_not_read_before_gtids_are_on_again_never_come(
    play: Play, line: OneConnector
) -> None:
    with play.reader(play.topic("t")) as topic:
        line.write()
        assert topic.ids(1) == [1]
        line.wait_until_all_is_read()
        line.stop()
        switch(line, "ON_PERMISSIVE", "OFF_PERMISSIVE", with_rows=False)
        lost = [line.write(), line.write()]
        switch(line, "ON_PERMISSIVE", "ON", with_rows=False)

        line.go_on()
        last = line.write()

        assert topic.ids(1) == [last], f"rows {lost} are passed over, and nothing tells"


def test_rows_without_gtids_come_while_gtids_are_not_yet_on_again(
    play: Play, line: OneConnector
) -> None:
    with play.reader(play.topic("t")) as topic:
        line.write()
        assert topic.ids(1) == [1]
        line.stop()
        switch(line, *OFF, *ON)
        line.go_on()
        status = line.wait_failed()

        switch(line, "ON_PERMISSIVE")
        line.restart_failed()
        last = line.write()
        ids = topic.ids(last - 1)
        line.stop()
        switch(line, "ON")
        line.go_on({**line.offset(), "gtids": line.gtids_at(line.offset())})
        last = line.write()

        assert REFUSED in status.reason(20)
        assert [*ids, *topic.ids(2)] == list(range(2, last + 1)), "each row once"


def test_rows_with_gtids_that_were_not_read_before_gtids_are_off_come_while_they_are_not_yet(
    play: Play, line: OneConnector
) -> None:
    with play.reader(play.topic("t")) as topic:
        line.write()
        assert topic.ids(1) == [1]
        line.stop()
        switch(line, *OFF)
        line.go_on()
        status = line.wait_failed()

        switch(line, "OFF_PERMISSIVE")
        line.restart_failed()
        last = line.write()

        assert REFUSED_WITH_GTID in status.reason(20)
        assert topic.ids(last - 1) == list(range(2, last + 1)), "each row once"
