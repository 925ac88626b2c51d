"""Row topics that somebody deletes, makes anew or gives more partitions; sources are played."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewPartitions

from shardmerge.connectors.kafka.topics_admin import create_topics
from shardmerge.local.servers.stack import LocalStack
from shardmerge.schemas.model.errors import ContractError
from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.pipeline.settings import Kafka
from shardmerge.schemas.pipeline.topics import TopicSpec
from shardmerge.spark_sink.driver.loop import Driver
from shardmerge.spark_sink.kafka.offsets import OffsetReader
from tests.breadth import with_further
from tests.integration.spark.played_line import PATIENCE_S, Line, rest, until


@pytest.fixture(params=with_further(False, True), ids=["own topics", "one topic"])
def line(stack: LocalStack, request: pytest.FixtureRequest) -> Iterator[Line]:
    with closing(Line(stack, shared=request.param)) as line:
        yield line


def insert(line: Line, shard: ShardId, *ids: int) -> None:
    line.begin()
    line.rows(shard, *({"id": number, "a": number} for number in ids))
    line.commit()


def ids(line: Line) -> list[int]:
    return [row[0] for row in line.content()]


def admin(line: Line) -> AdminClient:
    return AdminClient({"bootstrap.servers": line.pipeline.kafka.bootstrap_servers})


def delete(line: Line, topic: str) -> None:
    client = admin(line)
    client.delete_topics([topic])[topic].result()
    reader = OffsetReader(line.pipeline.kafka)
    deadline = time.monotonic() + PATIENCE_S
    while reader.described([topic]):
        assert time.monotonic() < deadline, "it is still there"
        time.sleep(0.1)


def make(line: Line, topic: str) -> None:
    bootstrap = line.pipeline.kafka.bootstrap_servers
    create_topics(Kafka(bootstrap), [TopicSpec(topic, 1, 1)])
    # What the one before knows of the topic is of the deleted one.
    line.connector = Producer({"bootstrap.servers": bootstrap, "transactional.id": line.source})
    line.connector.init_transactions()


def stops(driver: Driver, what: str) -> None:
    with pytest.raises(ContractError, match=what) as error:
        until(driver, lambda: False)
    assert "another pipeline" in error.value.hint


def test_a_topic_that_was_made_anew_with_more_rows_stops_the_sink(line: Line) -> None:
    [shard] = line.make("a")
    insert(line, shard, 1, 2)
    driver = line.start()
    rest(driver)
    assert ids(line) == [1, 2]
    topic = line.topic_of(shard)
    delete(line, topic)
    make(line, topic)
    insert(line, shard, 3, 4, 5, 6, 7, 8)
    stops(driver, f"row topic {topic} was deleted and made anew")
    stops(line.start(), f"row topic {topic} was deleted and made anew")
    assert ids(line) == [1, 2], "not those alone that stand behind the stored offset"


def test_a_topic_with_more_partitions_than_it_had_stops_the_sink(line: Line) -> None:
    [shard] = line.make("a")
    insert(line, shard, 1)
    driver = line.start()
    rest(driver)
    topic = line.topic_of(shard)
    client = admin(line)
    client.create_partitions([NewPartitions(topic, 3)])[topic].result()
    stops(driver, f"row topic {topic} has 3 partitions, and it had 1")
    stops(line.start(), f"row topic {topic} has 3 partitions, and it had 1")


def test_topics_that_stay_as_they_were_are_read_on_also_by_an_upgraded_sink(line: Line) -> None:
    one, two = line.make("a", "b")
    insert(line, one, 1)
    rest(line.start())
    insert(line, two, 2)
    rest(line.start())
    assert ids(line) == [1, 2]
    stored = f"`{line.pipeline.target.control_database}`.row_topics"
    line.session.execute(f"DROP TABLE {stored}")
    insert(line, one, 3)
    rest(line.start())
    assert ids(line) == [1, 2, 3]
    kept = line.session.query(f"SELECT topic, LENGTH(topic_id) > 0, partitions FROM {stored}")
    assert sorted(kept) == sorted({(line.topic_of(shard), 1, 1) for shard in (one, two)})


def test_a_topic_that_is_gone_stops_the_sink(line: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shardmerge.spark_sink.driver.row_topic_check.GONE_S", 0.5)
    [shard] = line.make("a")
    insert(line, shard, 1)
    driver = line.start()
    rest(driver)
    topic = line.topic_of(shard)
    delete(line, topic)
    stops(driver, f"row topic {topic} is gone")
    stops(line.start(), f"row topic {topic} is gone")


def test_the_topic_of_a_dropped_shard_may_be_deleted(
    stack: LocalStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shardmerge.spark_sink.driver.row_topic_check.GONE_S", 0)
    with closing(Line(stack)) as line:
        dropped, stays = line.make("a", "b")
        insert(line, dropped, 1)
        line.begin()
        offset, place = line.change(), line.here()
        line.commit()
        line.decide(dropped, offset, place, "", live=False)
        driver = line.start()
        rest(driver)
        delete(line, line.topic_of(dropped))
        insert(line, stays, 2)
        until(driver, lambda: ids(line) == [1, 2])
        insert(line, stays, 3)
        again = line.start()
        until(again, lambda: ids(line) == [1, 2, 3])
        rest(again)
