"""Statements that Debezium cannot read and whose tables nobody can tell: the others go on."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from shardmerge.agents.tracking.tracked import LastStatement, Tracked, Unknown
from shardmerge.agents.tracking.tracker import track
from shardmerge.connectors.connect.connect_rest import ConnectRest
from shardmerge.connectors.debezium.envelope import schema_change_event
from shardmerge.connectors.deploy import deploy_connectors
from shardmerge.connectors.repair.schema_history.left_out import left_out_of
from shardmerge.connectors.repair.source_repair import repairs_of
from shardmerge.connectors.watchdog import Watchdog
from shardmerge.schemas.ddl.grammar import ServerContext
from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.model.tables import TableSchema

from .conftest import Play, Reader
from .one_connector import connected
from .test_connectors import wait_for, wait_for_snapshot

SERVER = ServerContext(version=(8, 0, 15))


@pytest.fixture
def watched(play: Play, rest: ConnectRest) -> Iterator[str]:
    """The play's connector, looked after by a watchdog; its name."""
    with play.sql() as run:
        run("CREATE TABLE t (id INT PRIMARY KEY)")
        run(f"CREATE DATABASE {play.database}_else")
        run(f"CREATE TABLE {play.database}_else.x (id INT PRIMARY KEY, a INT)")
    (name,) = deploy_connectors(play.pipeline, rest)
    wait_for_snapshot(play)
    repairs = repairs_of(play.pipeline, rest)
    stop = threading.Event()
    thread = threading.Thread(target=Watchdog(rest, [name], 1.0, repairs).run, args=(stop,))
    thread.start()
    yield name
    stop.set()
    thread.join()
    for repair in repairs.values():
        repair.close()


@pytest.mark.timeout(600)
def test_a_table_that_nobody_can_tell_is_left_out_until_the_server_tells_it(
    play: Play, rest: ConnectRest, watched: str
) -> None:
    with play.sql() as run, play.reader(play.topic("t")) as rows, play.reader(play.source) as ddl:
        config = rest.config(watched)
        # Its name is a word to Debezium, and the other database is not captured. The second
        # statement follows at once, so that the server cannot tell the table between them.
        run(f"CREATE TABLE histogram LIKE {play.database}_else.x")
        run("INSERT INTO histogram VALUES (1, 1)")
        run("ALTER TABLE histogram ADD c INT")
        run("INSERT INTO histogram VALUES (2, 2, 2)")
        for number in range(1, 11):
            run(f"INSERT INTO t VALUES ({number})")

        assert rows.ids(10) == list(range(1, 11)), "another table loses nothing"
        wait_for(lambda: not left_out_of(rest.config(watched) or {}) and _runs(rest, watched))
        assert rest.config(watched) == config, "the table is read again"
        run("INSERT INTO histogram VALUES (3, 3, 3)")
        with play.reader(play.topic("histogram")) as again:
            row = again.next()["after"]
        assert row == {"id": 3, "a": 3, "c": 3}

        told = _until(ddl, "CREATE TABLE histogram LIKE")
        assert "are not known" in told["shardmerge_unread"]
        table = ShardId(play.source, play.database, "histogram")
        assert isinstance(_tracked(play)[table], Unknown), "its shard waits for its schema"

        run("TRUNCATE TABLE histogram")
        run("INSERT INTO t VALUES (11)")
        assert rows.ids(1) == [11]
        assert "TRUNCATE" in _until(ddl, "TRUNCATE TABLE histogram")["shardmerge_unread"]


@pytest.mark.timeout(600)
def test_a_table_that_the_first_snapshot_did_not_see_is_made_known_and_read(
    play: Play, rest: ConnectRest, watched: str
) -> None:
    rest.stop(watched)
    with play.sql() as run, connected(play, rest) as line:
        run("CREATE TABLE made (id INT PRIMARY KEY, a INT)")
        run("INSERT INTO made VALUES (1, 1), (2, 2)")
        # As a first snapshot notes its place that listed the tables before.
        ((file, pos, _, _, gtids),) = line.query("SHOW MASTER STATUS")
        gtids = gtids.replace("\n", "")
        offset = {**line.offset(), "file": file, "pos": pos, "gtids": gtids}
        for key in ("event", "row"):
            offset.pop(key, None)
        rest.set_offset(watched, play.source, offset)
        rest.resume(watched)
        run("INSERT INTO made VALUES (3, 3)")
        run("INSERT INTO t VALUES (1)")

    with play.reader(play.topic("t")) as rows:
        assert rows.ids(1) == [1]
    seen: dict[int, object] = {}
    with play.reader(play.topic("made")) as rows:
        while len(seen) < 3:
            row = rows.next()["after"]
            seen[row["id"]] = row["a"]
    assert seen == {1: 1, 2: 2, 3: 3}
    table = ShardId(play.source, play.database, "made")
    assert isinstance(_tracked(play)[table], TableSchema)


def _runs(rest: ConnectRest, name: str) -> bool:
    status = rest.status(name)
    return status is not None and status.is_running


def _until(ddl: Reader, text: str) -> dict[str, Any]:
    while not (record := ddl.next())["ddl"].startswith(text):
        pass
    return record


def _tracked(play: Play) -> dict[ShardId, Tracked]:
    """What the tracker makes of the schema-change topic."""
    schemas: dict[ShardId, Tracked] = {}
    last: LastStatement | None = None
    with play.reader(play.source) as ddl:
        end = ddl.high_watermark()
        while (record := ddl.next_before(end)) is not None:
            value = json.dumps(record).encode()
            event = schema_change_event(play.source, 0, None, value)
            result = track(schemas, event, play.pipeline.routes, SERVER, last)
            last = result.last
            for shard, tracked in result.puts.items():
                if tracked is None:
                    schemas.pop(shard, None)
                else:
                    schemas[shard] = tracked
    return schemas
