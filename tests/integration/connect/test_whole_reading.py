"""Tables without a primary key are read as a whole, exactly, by a real connector."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pymysql
import pytest

from shardmerge.connectors.connect.connect_rest import ConnectRest
from shardmerge.connectors.debezium.connector_names import connector_name, readings_among
from shardmerge.connectors.deploy import deploy_connectors
from shardmerge.connectors.kafka.topics_admin import describe_topics
from shardmerge.connectors.whole.readings.reading_config import reading_topics_among
from shardmerge.connectors.whole.table_reading import PLACES
from shardmerge.local.servers.mysql import PASSWORD, USER
from shardmerge.local.servers.stack import LocalStack
from tests.breadth import further

from .conftest import Play
from .test_connectors import wait_for_snapshot
from .whole_line import Killed, WholeLine, dies_at, look_until, watch_of

DEADLOCK = 1213


@pytest.fixture
def line(play: Play, rest: ConnectRest) -> WholeLine:
    """Three tables without a key, one of them empty, whose first snapshot is taken."""
    with play.sql() as run:
        run("CREATE TABLE t (a INT, b VARCHAR(20))")
        run("INSERT INTO t VALUES (1, 'x'), (1, 'x'), (2, NULL), (NULL, 'ö')")
        run("CREATE TABLE `T.2` (a INT)")
        run("INSERT INTO `T.2` VALUES (7), (7)")
        run("CREATE TABLE nothing (a INT)")
        run("CREATE TABLE tt (a INT)")
        run("INSERT INTO tt VALUES (5)")
    deploy_connectors(play.pipeline, rest)
    wait_for_snapshot(play)
    line = WholeLine(play)
    with play.sql() as run:
        run("INSERT INTO t VALUES (0, 'first')")
        line.await_row("t", (0, "first"))
    line.decide()
    return line


def statement(dice: random.Random, number: int) -> str:
    """A change of some rows of table t, many of which are equal."""
    a = dice.randint(0, 9)
    return dice.choice(
        (
            f"INSERT INTO t VALUES ({a}, 'x'), ({a}, 'x')",
            f"UPDATE t SET b = '{number}' WHERE a = {a} LIMIT 2",
            f"DELETE FROM t WHERE a = {a} LIMIT 1",
        )
    )


@contextmanager
def writing(play: Play, seed: int) -> Iterator[None]:
    """Writers of table t, in transactions of some rows, until the end."""
    stop = threading.Event()

    def write(number: int) -> None:
        dice = random.Random(seed + number)
        with (
            pymysql.connect(
                host="127.0.0.1", port=play.port, user=USER, password=PASSWORD,
                database=play.database,
            ) as connection,
            connection.cursor() as cursor,
        ):  # fmt: skip
            while not stop.wait(0.1):
                try:
                    for _ in range(dice.randint(1, 4)):
                        cursor.execute(statement(dice, number))
                except pymysql.OperationalError as error:
                    # The server has rolled the transaction back for the other one's.
                    if error.args[0] != DEADLOCK:
                        raise
                if dice.random() < 0.9:
                    connection.commit()
                else:
                    connection.rollback()
            connection.rollback()

    threads = [threading.Thread(target=write, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def is_tidy(play: Play, rest: ConnectRest) -> bool:
    """Whether the source's own connector runs, and nothing of a reading is left."""
    name = connector_name(play.pipeline, play.pipeline.sources[0])
    status = rest.status(name)
    left = reading_topics_among(describe_topics(play.pipeline.kafka), name)
    assert not left, left
    return (
        status is not None
        and status.is_running
        and not readings_among(rest.connectors(), name)
        and "shardmerge.repair" not in (rest.config(name) or {})
    )


def test_a_reading_and_what_the_binlog_has_behind_it_are_the_table(
    play: Play, rest: ConnectRest, line: WholeLine, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", logger="shardmerge")
    with play.sql() as run:
        with writing(play, 1), watch_of(play, rest) as watch:
            time.sleep(1)
            line.ask("t", "T.2", "nothing")
            began = time.monotonic()
            look_until(watch, lambda: bool(line.commands()))
            print(f"\nfrom the request to the command: {time.monotonic() - began:.1f} s")
            time.sleep(1)
            ((offset, reloads),) = line.commands()
            line.answer(offset, reloads)
            look_until(watch, lambda: is_tidy(play, rest))
            watch.look(time.monotonic())
            assert len(line.commands()) == 1, "what is answered is not read again"
        run("INSERT INTO t VALUES (99, 'last')")
        line.await_row("t", (99, "last"))
    print("\n".join(r.getMessage() for r in caplog.records if "whole" in r.getMessage()))
    assert [r.shard for r in reloads] == sorted(map(line.shard, ("t", "T.2", "nothing")))
    assert len({(r.position, r.began_ms) for r in reloads}) == 1
    found = {reload.shard.table: line.rows(reload) for reload in reloads}
    assert found == {table: line.table(table) for table in ("t", "T.2", "nothing")}
    assert sum(found["t"].values()) > len(found["t"]), "rows that are equal are counted"
    assert [v["op"] for v in line.events("tt")] == ["r"], "no other table is read"


def test_a_reading_is_repeated_where_a_table_was_changed_meanwhile(
    play: Play, rest: ConnectRest, line: WholeLine, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("WARNING", logger="shardmerge")
    changed = False

    def alter(place: str) -> None:
        nonlocal changed
        # Behind the place of the source's connector: only the binlog tells.
        if place == "set aside" and not changed:
            changed = True
            with play.sql() as run:
                run("ALTER TABLE `T.2` ADD COLUMN c INT DEFAULT 3")

    with watch_of(play, rest, alter) as watch:
        line.ask("T.2", "t")

        def is_told() -> bool:
            line.decide()
            return bool(line.commands())

        look_until(watch, is_told)
        ((offset, reloads),) = line.commands()
        line.answer(offset, ())
        look_until(watch, lambda: len(line.commands()) == 2)
        (_, (_, repeated)) = zip(*line.commands(), strict=True)
        look_until(watch, lambda: is_tidy(play, rest))

    assert "reason=\"a table was changed meanwhile: 'ALTER TABLE `T.2`" in caplog.text
    assert 'whole_reading_refused target=merged.t reason="the table was changed' in caplog.text
    assert repeated[0].position > reloads[0].position
    assert [line.rows(r) for r in repeated] == [line.table(r.shard.table) for r in repeated]
    assert line.table("T.2") == {(7, 3): 2}


def test_a_watchdog_that_is_killed_at_any_step_goes_on_when_it_comes_back(
    play: Play, rest: ConnectRest, line: WholeLine
) -> None:
    """Each process takes up what the one before it left, and dies a step further on."""

    def is_told() -> bool:
        return bool(line.commands())

    with writing(play, 2):
        line.ask("t")
        for place in (*PLACES, "told"):
            with watch_of(play, rest, dies_at(place)) as watch, pytest.raises(Killed):
                look_until(watch, is_told)
            assert is_told() == (place == "told"), f"told too early, or lost, at {place!r}"
        with watch_of(play, rest) as watch:
            watch.look(time.monotonic())
            ((offset, reloads),) = line.commands()
            line.answer(offset, reloads)
            look_until(watch, lambda: is_tidy(play, rest))
            watch.look(time.monotonic())
    assert len(line.commands()) == 1, "what is answered is not read again"
    with play.sql() as run:
        run("INSERT INTO t VALUES (99, 'last')")
        line.await_row("t", (99, "last"))
    assert line.rows(reloads[0]) == line.table("t")


def test_a_connector_that_somebody_stopped_is_left_alone(
    play: Play, rest: ConnectRest, line: WholeLine
) -> None:
    name = connector_name(play.pipeline, play.pipeline.sources[0])
    rest.stop(name)
    line.ask("t")
    with watch_of(play, rest) as watch:
        for _ in range(3):
            watch.look(time.monotonic())
        status = rest.status(name)
        assert status is not None
        assert status.state == "STOPPED"
        assert rest.connectors() == (name,)
        rest.resume(name)
        look_until(watch, lambda: bool(line.commands()))


def test_a_reading_that_fails_does_not_keep_the_sources_own_connector(
    play: Play, rest: ConnectRest, line: WholeLine, caplog: pytest.LogCaptureFixture
) -> None:
    line.ask("t")
    with (
        watch_of(play, rest) as watch,
        pymysql.connect(
            host="127.0.0.1", port=play.port, user=USER, password=PASSWORD, database=play.database
        ) as connection,
        connection.cursor() as cursor,
    ):
        # Debezium waits 10 s for its lock.
        cursor.execute("LOCK TABLES t WRITE")
        look_until(watch, lambda: "whole_reading_given_up" in caplog.text)
        with play.sql() as run:
            run("INSERT INTO tt VALUES (6)")
        line.await_row("tt", (6,))
        cursor.execute("UNLOCK TABLES")
        look_until(watch, lambda: bool(line.commands()))
    ((_, (reload,)),) = line.commands()
    assert line.rows(reload) == line.table("t")


@further
def test_a_reading_that_began_again_on_another_worker_does_not_count(
    play: Play,
    rest: ConnectRest,
    stack: LocalStack,
    line: WholeLine,
    caplog: pytest.LogCaptureFixture,
) -> None:
    name = connector_name(play.pipeline, play.pipeline.sources[0])
    with play.sql() as run:
        for _ in range(14):  # some seconds to read: it is killed meanwhile
            run("INSERT INTO t SELECT a + 1, 'many' FROM t")
    line.ask("t")
    with watch_of(play, rest) as watch:

        def has_begun() -> bool:
            return any((rest.offset(r) or {}).get("snapshot") for r in readings_among(
                rest.connectors(), name
            ))  # fmt: skip

        look_until(watch, has_begun)
        stack.kill("connect")
        stack.start("connect")
        look_until(watch, lambda: bool(line.commands()))
    ((_, (reload,)),) = line.commands()
    assert f"not each of its tables was read once ({play.database}.t: 2)" in caplog.text
    assert line.rows(reload) == line.table("t")
