"""What ends the sink's waits, on a real broker with transactions."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping

import pytest
from confluent_kafka import Producer

from shardmerge.connectors.kafka.topics_admin import create_topics
from shardmerge.local.servers.stack import LocalStack
from shardmerge.schemas.pipeline.topics import TopicSpec
from shardmerge.spark_sink.barrier.partitions import Partition
from shardmerge.spark_sink.kafka import arrivals
from shardmerge.spark_sink.kafka.arrivals import Arrivals
from shardmerge.spark_sink.kafka.offsets import OffsetReader
from shardmerge.spark_sink.kafka.topic_tail import TailEnd, TailRecord, TopicTail
from shardmerge.spark_sink.kafka.windows.window import Kept

DDL, ROWS, OTHERS = "arrivals.ddl", "arrivals.rows", "arrivals.others"
LONG_S = 30.0


@pytest.fixture(scope="module")
def servers(stack: LocalStack) -> str:
    create_topics(stack.kafka, [TopicSpec(name, 1, 1) for name in (DDL, ROWS, OTHERS)])
    return stack.bootstrap_servers


@pytest.fixture
def producer(servers: str) -> Iterator[Producer]:
    made = Producer({"bootstrap.servers": servers, "transactional.id": "arrivals", "linger.ms": 0})
    made.init_transactions(30)
    yield made
    made.flush(10)


def send(producer: Producer, topic: str, count: int = 1) -> None:
    producer.begin_transaction()
    for number in range(count):
        producer.produce(topic, str(number).encode(), partition=0)
    producer.commit_transaction(30)


def ends_of(stack: LocalStack, *topics: str) -> dict[Partition, int]:
    return OffsetReader(stack.kafka).stable_ends([Partition(topic, 0) for topic in topics])


def follow(arrivals: Arrivals, ends: Mapping[Partition, int]) -> bool:
    own = {partition: end for partition, end in ends.items() if partition.topic == DDL}
    return arrivals.follow({p: end for p, end in ends.items() if p not in own}, own)


@pytest.fixture
def followed(stack: LocalStack, producer: Producer) -> Iterator[Arrivals]:
    """Arrivals that follow the three topics from their present ends."""
    made = Arrivals(stack.kafka, frozenset({DDL}))
    ends = ends_of(stack, DDL, ROWS, OTHERS)
    deadline = time.monotonic() + LONG_S
    while not follow(made, ends):
        assert time.monotonic() < deadline
        assert made.wait(0.1, rows=True) is False
    yield made
    made.close()


def waited(arrivals: Arrivals, timeout_s: float, *, rows: bool) -> tuple[bool, bool]:
    """Whether the wait ended before its bound, and whether a decision ended it."""
    began = time.monotonic()
    wanted = arrivals.wait(timeout_s, rows=rows)
    return time.monotonic() - began < timeout_s - 0.1, wanted


def test_a_committed_row_ends_a_wait_and_an_open_transaction_does_not(
    followed: Arrivals, producer: Producer
) -> None:
    producer.begin_transaction()
    producer.produce(ROWS, b"row", partition=0)
    producer.flush(10)
    assert waited(followed, 1.0, rows=True) == (False, False)
    producer.commit_transaction(30)
    assert waited(followed, LONG_S, rows=True) == (True, False)
    assert waited(followed, 0.7, rows=True) == (False, False), "one row ends one wait"
    send(producer, OTHERS)
    assert waited(followed, LONG_S, rows=True) == (True, False)
    known = dict.fromkeys((Partition(topic, 0) for topic in (ROWS, OTHERS)), 0)
    assert followed.take_found(known) == known.keys()
    assert followed.take_found(known) == set(), "each is told once"


def test_the_records_that_end_a_wait_are_there_as_a_whole(
    followed: Arrivals, producer: Producer, stack: LocalStack
) -> None:
    rows = Partition(ROWS, 0)
    start = ends_of(stack, ROWS)[rows]
    send(producer, ROWS, 2)
    assert waited(followed, LONG_S, rows=True) == (True, False)
    found = list(followed.seen[rows].offsets)
    while len(found) < 2:
        assert waited(followed, LONG_S, rows=True) == (True, False)
        assert followed.seen[rows].start == found[-1] + 1
        found += followed.seen[rows].offsets
    assert found == [start, start + 1]

    producer.begin_transaction()
    producer.produce(ROWS, b"given up", partition=0)
    producer.flush(10)
    producer.abort_transaction(30)
    send(producer, ROWS)
    assert waited(followed, LONG_S, rows=True) == (True, False)
    end = ends_of(stack, ROWS)[rows] - 1
    assert followed.seen == {rows: Kept(start + 2, end, [end - 1], [b"0"])}, "committed ones only"

    send(producer, DDL)
    assert waited(followed, LONG_S, rows=True) == (True, True)
    assert followed.seen == {}, "decisions are read by the tail"


def test_rows_do_not_end_a_wait_for_more_rows_and_a_decision_does(
    followed: Arrivals, producer: Producer
) -> None:
    send(producer, ROWS, 3)
    assert waited(followed, 1.0, rows=False) == (False, False)
    send(producer, DDL)
    assert waited(followed, LONG_S, rows=False) == (True, True)


def test_a_backlog_is_left_alone_until_somebody_waits_for_rows_again(
    followed: Arrivals, producer: Producer, stack: LocalStack
) -> None:
    send(producer, ROWS, 5_000)
    assert waited(followed, LONG_S, rows=True) == (True, False)
    assert followed.seen == {}
    send(producer, ROWS, 5_000)
    assert waited(followed, 1.0, rows=True) == (False, False)
    ends = ends_of(stack, DDL, ROWS, OTHERS)
    followed.take_found(ends)
    assert followed.take_found(ends) == {Partition(ROWS, 0)}, "nobody would see more"
    assert not follow(followed, ends), "just added"
    deadline = time.monotonic() + LONG_S
    while not follow(followed, ends):
        assert time.monotonic() < deadline
        followed.wait(0.1, rows=True)
    send(producer, ROWS)
    assert waited(followed, LONG_S, rows=True) == (True, False)


def test_a_new_partition_is_followed_from_the_end_that_is_known(
    followed: Arrivals, producer: Producer, stack: LocalStack
) -> None:
    new = Partition("arrivals.new", 0)
    create_topics(stack.kafka, [TopicSpec(new.topic, 1, 1)])
    known = ends_of(stack, ROWS, OTHERS, new.topic)
    followed.take_found(known)
    assert followed.take_found(known) == {new}, "nobody would see its rows"
    send(producer, new.topic)
    followed.follow_also(known)
    followed.follow_also(known)
    deadline = time.monotonic() + LONG_S
    while not (found := followed.take_found(known)):
        assert time.monotonic() < deadline
        followed.follow_also({})
        followed.wait(0.1, rows=True)
    assert found == {new}, "also what came before it was followed"


def test_of_many_partitions_a_row_ends_a_wait_as_soon(
    followed: Arrivals, producer: Producer, stack: LocalStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The brokers keep the request open for longer then, and a new client is made for that."""
    monkeypatch.setattr(arrivals, "_LONG", 2)
    ends = ends_of(stack, DDL, ROWS, OTHERS)
    assert not follow(followed, ends)
    deadline = time.monotonic() + LONG_S
    while not follow(followed, ends):
        assert time.monotonic() < deadline
        assert not followed.wait(0.1, rows=True)
    send(producer, ROWS)
    assert waited(followed, LONG_S, rows=True) == (True, False)
    rows = Partition(ROWS, 0)
    # Behind the row is the marker of its transaction.
    assert followed.rows_of == {rows: ends_of(stack, ROWS)[rows] - 1}


def test_decisions_that_were_read_already_end_no_wait(
    followed: Arrivals, producer: Producer, stack: LocalStack
) -> None:
    large = b"x" * 2_000  # the broker answers with one transaction at a time
    for _ in range(300):
        producer.begin_transaction()
        producer.produce(DDL, large, partition=0)
        producer.commit_transaction(30)
    assert waited(followed, LONG_S, rows=True) == (True, True)
    ends = ends_of(stack, DDL, ROWS, OTHERS)
    follow(followed, ends)
    assert waited(followed, 1.0, rows=True) == (False, False)
    deadline = time.monotonic() + LONG_S
    while not follow(followed, ends):
        assert time.monotonic() < deadline
        assert not followed.wait(0.1, rows=True)
    send(producer, DDL)
    assert waited(followed, LONG_S, rows=True) == (True, True), "this one is new"


def test_a_tail_reads_on_where_it_fell_asleep(stack: LocalStack, producer: Producer) -> None:
    tail = TopicTail(stack.kafka, [DDL])
    try:
        found: list[TailRecord | TailEnd] = []
        deadline = time.monotonic() + LONG_S
        while tail.places() is None:
            assert time.monotonic() < deadline
            found += tail.read(0.2)
        (place,) = (tail.places() or {}).values()
        tail.sleep()
        send(producer, DDL)
        assert list(tail.read(0.5)) == []
        assert tail.places() == {DDL: place}

        tail.wake()

        later: list[TailRecord | TailEnd] = []
        while tail.places() is None:
            assert time.monotonic() < deadline
            later += tail.read(0.2)
        assert [e.offset for e in later if isinstance(e, TailRecord)] == [place]
        assert tail.places() == {DDL: place + 2}, "the record and its transaction's marker"
    finally:
        tail.close()
