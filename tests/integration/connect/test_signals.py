"""Snapshots of single tables, asked for while rows and DDL stream on, from a real connector."""

from __future__ import annotations

import bisect
import dataclasses
import itertools
import json
import random
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import pymysql
import pytest
from confluent_kafka import Producer

from shardmerge.connectors.connect.connect_rest import ConnectRest
from shardmerge.connectors.debezium.connector_names import connector_name
from shardmerge.connectors.debezium.signals import Notice, notice, signal_id, snapshot_signal
from shardmerge.connectors.debezium.source_config import connector_config
from shardmerge.connectors.deploy import deploy_connectors
from shardmerge.connectors.kafka.topics_admin import create_topics
from shardmerge.connectors.repair.source_repair import repairs_of
from shardmerge.connectors.reread_watch import RereadWatch
from shardmerge.connectors.sources.signal_table import prepare_signal_table
from shardmerge.local.servers.mysql import PASSWORD, USER
from shardmerge.local.servers.stack import LocalStack
from shardmerge.schemas.model.errors import StackError
from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.pipeline import topics
from tests.breadth import with_further

from .conftest import Play, Reader
from .test_connectors import wait_for, watched


def ask(play: Play, change_id: str, table: str = "t") -> str:
    """Send the request for a table's snapshot; its id."""
    shard = ShardId(play.source, play.database, table)
    producer = Producer({"bootstrap.servers": play.pipeline.kafka.bootstrap_servers})
    key, value = snapshot_signal(change_id, shard)
    producer.produce(topics.signals(play.pipeline).name, key=key, value=value)
    assert producer.flush(30) == 0
    return signal_id(change_id, shard)


def wait_until_done(play: Play, request: str) -> list[Notice]:
    """What the connector said until everything that it was asked for is read.

    A scan that failed is no answer: whoever watches asks again.
    """
    said, is_read = [], True
    with play.reader(topics.notifications(play.pipeline).name) as reader:
        while True:
            found = notice(json.dumps(reader.next()).encode())
            if found is not None:
                said.append(found)
                if found.type == "TABLE_SCAN_COMPLETED":
                    is_read = found.status != "SQL_EXCEPTION"
                if (found.id, found.type) == (request, "COMPLETED") and is_read:
                    return said


def place(value: dict[str, Any]) -> tuple[str, int, int]:
    source = value["source"]
    return source["file"], source["pos"], source["row"]


def image(value: dict[str, Any]) -> dict[str, Any]:
    return value["after"] or value["before"]  # type: ignore[no-any-return]


def all_of(reader: Reader) -> Iterator[dict[str, Any]]:
    """Every record up to the end as it is now; commit markers may be the last."""
    end = reader.high_watermark()
    while (value := reader.next_before(end)) is not None:
        yield value


def test_a_table_is_read_again_between_the_rows_and_ddl_around_it(
    play: Play, rest: ConnectRest
) -> None:
    with play.sql() as run, play.reader(play.topic("t")) as rows, play.reader(play.source) as ddl:
        run("CREATE TABLE t (id INT PRIMARY KEY)")
        run("INSERT INTO t VALUES (1), (2), (3)")
        run("CREATE TABLE other (id INT PRIMARY KEY)")
        run("INSERT INTO other VALUES (1)")
        deploy_connectors(play.pipeline, rest)
        assert [rows.next()["op"] for _ in range(3)] == ["r"] * 3
        run("ALTER TABLE t ADD COLUMN c VARCHAR(9) NOT NULL DEFAULT 'new'")
        run("INSERT INTO t VALUES (4, 'x')")
        request = ask(play, f"{play.source}@1.0")
        said = wait_until_done(play, request)
        run("INSERT INTO t VALUES (5, 'y')")
        run("ALTER TABLE t DROP COLUMN c")
        run("INSERT INTO t VALUES (6)")

        values = [rows.next() for _ in range(7)]
        changes: list[dict[str, Any]] = []
        while len(changes) < 2:
            change = ddl.next()
            changes += [change] if change["ddl"].startswith("ALTER") else []

    assert [v["op"] for v in values] == ["c", "r", "r", "r", "r", "c", "c"]
    again = values[1:5]
    assert [v["source"]["snapshot"] for v in again] == ["incremental"] * 4
    assert [v["after"] for v in again] == [
        {"id": 1, "c": "new"}, {"id": 2, "c": "new"}, {"id": 3, "c": "new"}, {"id": 4, "c": "x"},
    ]  # fmt: skip
    add, drop = map(place, changes)
    assert add < place(values[0]) < place(again[0]) <= place(again[-1]) < place(values[5])
    assert place(values[5]) < drop < place(values[6])
    scans = [n for n in said if n.type == "TABLE_SCAN_COMPLETED"]
    assert [(n.source, n.id, n.status, n.table) for n in scans] == [
        (play.source, request, "SUCCEEDED", f"{play.database}.t")
    ]


def test_a_table_with_an_odd_name_is_the_only_one_that_is_read(
    play: Play, rest: ConnectRest
) -> None:
    pipeline = dataclasses.replace(play.pipeline, name=f"{play.pipeline.name}-x")
    play = dataclasses.replace(play, pipeline=pipeline)
    with play.sql() as run:
        for name in ("größe-1(a)", "größe-1(a)b"):
            run(f"CREATE TABLE `{name}` (id INT PRIMARY KEY)")
            run(f"INSERT INTO `{name}` VALUES (1)")
        deploy_connectors(play.pipeline, rest)
        shard = ShardId(play.source, play.database, "größe-1(a)")
        with play.reader(topics.row_topic(shard)) as rows:
            assert rows.next()["op"] == "r"
            said = wait_until_done(play, ask(play, "a@1.0", shard.table))
            assert rows.next()["source"]["snapshot"] == "incremental"
    assert [n.status for n in said if n.status] == ["SUCCEEDED"]


@contextmanager
def changing_rows(play: Play, count: int) -> Iterator[None]:
    """Two sessions that update, delete and insert rows below an id."""
    stop = threading.Event()
    failures: list[Exception] = []

    def change(seed: int) -> None:
        chance = random.Random(seed)
        try:
            with play.sql() as run:
                # Often enough to meet every chunk, and not so often that all wait for them.
                while not stop.wait(0.005):
                    row, kind = chance.randrange(count), chance.random()
                    if kind < 0.6:
                        run(f"UPDATE t SET a = a + 1 WHERE id = {row}")
                    elif kind < 0.8:
                        run(f"DELETE FROM t WHERE id = {row}")
                    else:
                        run(f"INSERT IGNORE INTO t (id, a) VALUES ({row}, {seed})")
        except pymysql.MySQLError as error:
            failures.append(error)

    threads = [threading.Thread(target=change, args=(seed,)) for seed in (1, 2)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert failures == []


def final_rows(play: Play) -> dict[int, dict[str, Any]]:
    """The table's rows as the row topic tells them, each checked against the DDL before it.

    A row that was written before a column was dropped has no more of it than the table has.
    """
    with play.reader(play.source) as ddl:
        known = []
        for change in all_of(ddl):
            tables = [t for t in change["tableChanges"] or () if t["id"].endswith('"t"')]
            if (tables and change["source"]["snapshot"] in (None, "false")) or "`t`" in change[
                "ddl"
            ]:
                for table in tables:
                    names = frozenset(
                        c["name"] for c in (table["table"] or {"columns": ()})["columns"]
                    )
                    known.append((place(change), names))
    starts = [start for start, _ in known]
    assert starts == sorted(starts)
    rows: dict[int, dict[str, Any]] = {}
    before: dict[str, Any] | None = None
    came: dict[tuple[Any, ...], int] = {}
    with play.reader(play.topic("t")) as reader:
        for value in all_of(reader):
            here = place(value)
            # Whether a row that goes back came before tells who is wrong: the offset that a task
            # began at, or the place of a row that was read again.
            told = (here, value["op"], *sorted(image(value).items(), key=repr))
            if before is not None:
                assert here >= place(before), (
                    f"the rows' places never go back: {before}, {value}; "
                    f"the latter came before at offset {came.get(told)}"
                )
            before = value
            came.setdefault(told, value["offset"])
            row = image(value)
            assert frozenset(row) == known[bisect.bisect_right(starts, here) - 1][1]
            if value["op"] == "d":
                rows.pop(row["id"], None)
            else:
                rows[row["id"]] = row
    names = known[-1][1]
    return {key: {n: v for n, v in row.items() if n in names} for key, row in rows.items()}


def rows_of(play: Play) -> dict[int, dict[str, Any]]:
    with (
        pymysql.connect(
            host="127.0.0.1", port=play.port, user=USER, password=PASSWORD, database=play.database
        ) as connection,
        connection.cursor() as cursor,
    ):
        cursor.execute("SELECT * FROM t")
        names = [entry[0] for entry in cursor.description or ()]
        return {row[0]: dict(zip(names, row, strict=True)) for row in cursor.fetchall()}


@contextmanager
def read_again(play: Play, rest: ConnectRest) -> Iterator[None]:
    """As in production, what a connector leaves undone is asked for again."""
    with (
        closing(
            RereadWatch(play.pipeline, rest, repairs_of(play.pipeline, rest), shortest_s=10.0)
        ) as watch,
        watched(watch),
    ):
        yield


def deploy_with_small_chunks(play: Play, rest: ConnectRest) -> str:
    """Make a connector that reads tables by 50 rows at a time, and wait for its first snapshot.

    Not by an update: a snapshot that is interrupted starts anew, and nothing tells of rows that
    were deleted in between.
    """
    source = play.pipeline.sources[0]
    create_topics(play.pipeline.kafka, topics.own_topics(play.pipeline))
    prepare_signal_table(play.pipeline, source)
    config = connector_config(play.pipeline, source)
    name = connector_name(play.pipeline, source)
    rest.create_or_update(name, config | {"incremental.snapshot.chunk.size": "50"})
    rest.wait_running(name)
    marked(play)
    return name


def marked(play: Play) -> None:
    """Write rows until one of them comes from the binlog: what was before it has come too."""
    with play.sql() as run, play.reader(play.topic("t")) as topic:
        for number in itertools.count(-int(time.time()), -1):
            run(f"INSERT INTO t (id, a) VALUES ({number}, 0)")
            while image(value := topic.next())["id"] != number:
                continue
            if value["op"] == "c":
                return


def fill(play: Play, count: int) -> None:
    values = ", ".join(f"({i}, 0)" for i in range(count))
    with play.sql() as run:
        run("CREATE TABLE t (id INT PRIMARY KEY, a INT)")
        run(f"INSERT INTO t VALUES {values}")


def test_rows_and_columns_that_change_while_the_table_is_read_stay_right(
    play: Play, rest: ConnectRest
) -> None:
    count = 1000
    fill(play, count)
    deploy_with_small_chunks(play, rest)
    request = ""
    with read_again(play, rest), changing_rows(play, count), play.sql() as run:
        for number in range(9):
            run(f"ALTER TABLE t ADD COLUMN c{number} INT NOT NULL DEFAULT {number}")
            if number % 4 == 0:
                request = ask(play, f"{play.source}@{number}.0")
            time.sleep(0.3)
            if number % 3:
                run(f"ALTER TABLE t DROP COLUMN c{number}")
        wait_until_done(play, request)
    # Behind everything else, so that its arrival tells that the rest has come.
    marked(play)

    assert final_rows(play) == rows_of(play)


@pytest.mark.parametrize("kind", with_further("killed", "restarted"))
def test_a_connector_that_ends_in_the_middle_reads_on(
    play: Play, rest: ConnectRest, stack: LocalStack, kind: str
) -> None:
    count = 1000
    fill(play, count)
    name = deploy_with_small_chunks(play, rest)
    with play.reader(play.topic("t")) as topic:
        while topic.next()["op"] != "c":
            continue  # the first snapshot
        with read_again(play, rest), changing_rows(play, count):
            request = ask(play, f"{play.source}@1.0")
            read = 0
            while read < 100:
                read += topic.next()["op"] == "r"
            if kind == "restarted":
                rest.restart(name)
            else:
                stack.kill("connect")
                stack.start("connect")
            wait_for(lambda: any(s is not None and s.is_running for s in [rest.status(name)]))
            wait_until_done(play, request)
    marked(play)

    assert final_rows(play) == rows_of(play)


def test_a_user_without_the_right_is_refused_with_what_to_grant(
    play: Play, stack: LocalStack
) -> None:
    source = dataclasses.replace(play.pipeline.sources[0], user="reader", password="x")
    with play.sql() as run:
        run("CREATE USER IF NOT EXISTS reader IDENTIFIED WITH mysql_native_password BY 'x'")

    with pytest.raises(
        StackError, match="user 'reader' cannot make or write `shardmerge_"
    ) as raised:
        prepare_signal_table(play.pipeline, source)
    assert "GRANT CREATE, SELECT, INSERT, DELETE ON `shardmerge_it" in raised.value.hint

    # With a table that somebody else made, and the rights to write it, nothing more is needed.
    prepare_signal_table(play.pipeline, play.pipeline.sources[0])
    with play.sql() as run:
        run(f"GRANT SELECT, INSERT, DELETE ON `shardmerge_{play.pipeline.name}_{source.name}`.* "
            "TO reader")  # fmt: skip
    prepare_signal_table(play.pipeline, source)
