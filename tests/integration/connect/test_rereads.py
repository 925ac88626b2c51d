"""Requests for snapshots that a real connector leaves unanswered are brought on."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import closing

import pymysql
import pytest
from confluent_kafka import Consumer, TopicPartition

from shardmerge.connectors.connect.connect_rest import ConnectRest
from shardmerge.connectors.debezium.connector_names import connector_name
from shardmerge.connectors.debezium.open_requests import Remedy
from shardmerge.connectors.debezium.signals import notice, signal_database
from shardmerge.connectors.deploy import deploy_connectors
from shardmerge.connectors.repair.source_repair import repairs_of
from shardmerge.connectors.reread_watch import RereadWatch
from shardmerge.local.servers.mysql import PASSWORD, USER
from shardmerge.local.servers.stack import LocalStack
from shardmerge.schemas.model.names import SIGNAL_TABLE
from shardmerge.schemas.pipeline import topics

from .conftest import Play
from .test_connectors import wait_for
from .test_signals import ask, wait_until_done


@pytest.fixture
def watch(play: Play, rest: ConnectRest) -> Iterator[RereadWatch]:
    """A watch with little patience; the topics are there, and a table with rows."""
    with play.sql() as run:
        run("CREATE TABLE t (id INT PRIMARY KEY)")
        run("INSERT INTO t VALUES (1), (2), (3)")
    deploy_connectors(play.pipeline, rest)
    with closing(
        RereadWatch(play.pipeline, rest, repairs_of(play.pipeline, rest), shortest_s=4.0)
    ) as watch:
        yield watch


def applied(watch: RereadWatch, until: Callable[[list[Remedy]], bool]) -> list[Remedy]:
    """Let the watch look until its remedies are as they should be."""
    remedies: list[Remedy] = []

    def look() -> bool:
        remedies.extend(remedy for _, remedy in watch.look(time.monotonic()))
        return until(remedies)

    wait_for(look)
    return remedies


def test_a_snapshot_that_stands_goes_on_after_a_restart(
    play: Play, rest: ConnectRest, watch: RereadWatch
) -> None:
    marks = f"`{signal_database(play.pipeline, play.pipeline.sources[0])}`.`{SIGNAL_TABLE}`"
    with play.reader(play.topic("t")) as rows, play.sql() as run:
        assert [rows.next()["op"] for _ in range(3)] == ["r"] * 3
        # Between its two marks the connector waits for the table. A mark that is gone by then is
        # never deleted, so that the end of the chunk never comes: Debezium stands without an error.
        run("LOCK TABLES t WRITE")
        request = ask(play, "a@1.0")
        with (
            pymysql.connect(
                host="127.0.0.1", port=play.port, user=USER, password=PASSWORD, autocommit=True
            ) as other,
            other.cursor() as cursor,
        ):
            wait_for(lambda: cursor.execute(f"SELECT * FROM {marks}") == 1)
            cursor.execute(f"TRUNCATE TABLE {marks}")
        run("UNLOCK TABLES")
        # It has begun, and says so: the request is not lost.
        with play.reader(topics.notifications(play.pipeline).name) as said:
            while (begun := notice(json.dumps(said.next()).encode())) is None or (
                begun.id != request
            ):
                continue

        assert applied(watch, bool) == [Remedy.RESTART]
        wait_until_done(play, request)
        assert [rows.next()["source"]["snapshot"] for _ in range(3)] == ["incremental"] * 3
        # Answered: nothing more is done.
        end = time.monotonic() + 6
        assert applied(watch, lambda _: time.monotonic() > end) == []


def test_a_request_that_is_lost_is_sent_again(
    play: Play, rest: ConnectRest, stack: LocalStack, watch: RereadWatch
) -> None:
    name = connector_name(play.pipeline, play.pipeline.sources[0])
    config = rest.config(name)
    assert config is not None
    # The whole worker: a task that is only deleted may still commit its own place after ours.
    stack.stop("connect")
    request = ask(play, "a@1.0")
    # As if the connector had read it, and died before its place in the binlog was stored.
    topic = TopicPartition(topics.signals(play.pipeline).name, 0, 1)
    consumer = Consumer(
        {
            "bootstrap.servers": play.pipeline.kafka.bootstrap_servers,
            "group.id": config["signal.kafka.groupId"],
        }
    )
    consumer.commit(offsets=[topic], asynchronous=False)
    consumer.close()
    stack.start("connect")
    rest.wait_running(name)

    assert applied(watch, bool) == [Remedy.SEND_AGAIN]
    said = wait_until_done(play, request)
    assert [notice.status for notice in said if notice.status] == ["SUCCEEDED"]
    end = time.monotonic() + 6
    assert applied(watch, lambda _: time.monotonic() > end) == []
