"""The driver's loop on a real Kafka and a real target; sources and coordinator are played."""

from __future__ import annotations

import itertools
import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from shardmerge.connectors.local.mysql import PASSWORD, USER
from shardmerge.connectors.local.stack import LocalStack
from shardmerge.connectors.topics_admin import create_topics
from shardmerge.schemas import codec, topics
from shardmerge.schemas.errors import TargetError
from shardmerge.schemas.events import (
    Binding,
    ChangeId,
    Decision,
    Outcome,
    Release,
    ShardColumn,
    StatementKind,
    TargetStatement,
)
from shardmerge.schemas.model import Column
from shardmerge.schemas.names import ShardId, TargetTable
from shardmerge.schemas.pipeline import Connect, Kafka, Pipeline, Sink, Source, Target
from shardmerge.schemas.position import SourcePosition
from shardmerge.schemas.topics import TopicSpec, row_topic
from shardmerge.schemas.types import ColumnType
from shardmerge.spark_sink.apply_ranges import ApplyConfig, close_connections
from shardmerge.spark_sink.batches import BatchRunner
from shardmerge.spark_sink.control import ControlStore
from shardmerge.spark_sink.driver import Driver
from shardmerge.spark_sink.journal import Journal
from shardmerge.spark_sink.offsets import OffsetReader, TopicTail
from shardmerge.spark_sink.publisher import ProgressPublisher
from shardmerge.spark_sink.settings import SinkSettings
from shardmerge.spark_sink.statement_runs import StatementRunner
from shardmerge.spark_sink.targets.mysql import MySqlAddress, MySqlSession

_numbers = itertools.count()
PATIENCE_S = 30.0
QUIET_ROUNDS = 20


class Line:
    """One pipeline with one source: what Debezium and the coordinator would write."""

    def __init__(self, stack: LocalStack) -> None:
        name = f"driver{os.getpid()}x{next(_numbers)}"
        self.source, self.target = f"{name}s", TargetTable(name, "t")
        self.pipeline = Pipeline(
            name,
            Kafka(stack.bootstrap_servers),
            Connect(stack.connect_url),
            (Source(self.source, "127.0.0.1", stack.ports.source1, USER, PASSWORD, 1),),
            (),
            Target("127.0.0.1", stack.ports.target, USER, PASSWORD, f"{name}_control"),
            Sink(retry_interval_s=1),
        )
        self.address = MySqlAddress("127.0.0.1", stack.ports.target, USER, PASSWORD)
        self.session = MySqlSession(self.address)
        create_topics(stack.bootstrap_servers, topics.own_topics(self.pipeline))
        self._ddl = Producer({"bootstrap.servers": stack.bootstrap_servers, "acks": "all"})
        self.connector = Producer(
            {"bootstrap.servers": stack.bootstrap_servers, "transactional.id": name}
        )
        self.connector.init_transactions()
        self._pos = itertools.count(100, 10)
        self._offset = 0
        self._versions: dict[TargetTable, int] = {}
        self.drivers: list[tuple[Driver, Callable[[], None]]] = []

    def shard(self, table: str) -> ShardId:
        shard = ShardId(self.source, "app", table)
        create_topics(self.pipeline.kafka.bootstrap_servers, [TopicSpec(row_topic(shard), 1, 1)])
        return shard

    def start(self, runner: BatchRunner | None = None) -> Driver:
        """A driver that takes over, as a process that starts."""
        bootstrap = self.pipeline.kafka.bootstrap_servers
        session = MySqlSession(self.address)
        control = ControlStore(session, self.pipeline.target.control_database, self.pipeline.name)
        control.prepare()
        epoch = control.take_epoch()
        tail = TopicTail(bootstrap, [topics.ddl(self.pipeline).name, self.source])
        publisher = ProgressPublisher(bootstrap, topics.sink_progress(self.pipeline).name)
        journal = Journal(session, control, self.pipeline.name, epoch)
        statements = StatementRunner(lambda: self._journal(epoch))
        driver = Driver(
            self.pipeline,
            offsets=OffsetReader(bootstrap),
            tail=tail,
            control=control,
            journal=journal,
            statements=statements,
            runner=runner or BatchRunner(SinkSettings(Path()), self.config(), 1 << 60),
            publisher=publisher,
            epoch=epoch,
        )

        def close() -> None:
            statements.stop()
            publisher.close()
            tail.close()
            session.close()

        self.drivers.append((driver, close))
        driver.load()
        return driver

    def _journal(self, epoch: int) -> Journal:
        session = MySqlSession(self.address)
        control = ControlStore(session, self.pipeline.target.control_database, self.pipeline.name)
        return Journal(session, control, self.pipeline.name, epoch)

    def config(self) -> ApplyConfig:
        return ApplyConfig(
            self.pipeline.kafka.bootstrap_servers,
            self.address,
            self.pipeline.target.control_database,
            self.pipeline.name,
        )

    def close(self) -> None:
        for _, close in self.drivers:
            close()
        close_connections()
        for database in (self.target.database, self.pipeline.target.control_database):
            self.session.execute(f"DROP DATABASE IF EXISTS `{database}`")
        self.session.close()

    # --- what others write

    def begin(self) -> None:
        self.connector.begin_transaction()

    def commit(self) -> None:
        self.connector.commit_transaction()
        self._offset += 1  # the marker

    def change(self) -> int:
        """A record in the schema-change topic; returns its offset. Within a transaction."""
        self.connector.produce(self.source, b"{}")
        self._offset += 1
        return self._offset - 1

    def rows(self, shard: ShardId, *images: dict[str, Any]) -> None:
        """Rows that were inserted. Within a transaction."""
        for image in images:
            source = {
                "name": shard.source, "db": shard.database, "table": shard.table,
                "file": "binlog.000001", "pos": next(self._pos), "row": 0,
            }  # fmt: skip
            value = json.dumps({"op": "c", "after": image, "source": source}).encode()
            self.connector.produce(row_topic(shard), value, b"k")
            self.connector.poll(0)

    def here(self) -> SourcePosition:
        return SourcePosition(0, "binlog.000001", next(self._pos), 0)

    def decide(
        self,
        shard: ShardId,
        offset: int,
        place: SourcePosition,
        columns: str,
        *statements: TargetStatement,
        hold: bool = False,
        releases: tuple[ShardId, ...] = (),
    ) -> None:
        """Send a decision. ``columns``: names, all integers; identities are ``<name>#1``."""
        version = self._versions[self.target] = self._versions.get(self.target, 0) + 1
        emitted = Outcome.EMIT if statements else Outcome.NOOP
        decision = Decision(
            ChangeId(self.source, offset), self.target, version, shard, place,
            Outcome.HOLD if hold else emitted, statements,
            columns=tuple(
                ShardColumn(f"{name}#1", Column(name, ColumnType("int")))
                for name in columns.split()
            ),
            key=("id",), releases=tuple(Release(shard, version) for shard in releases),
        )  # fmt: skip
        self._ddl.produce(topics.ddl(self.pipeline).name, codec.encode(decision), b"k")
        self._ddl.flush()

    def statement(
        self, sql: str, kind: StatementKind = StatementKind.EXPANDING, **binds: str
    ) -> TargetStatement:
        bound = tuple(Binding(f"{column}#1", name) for column, name in binds.items())
        text = sql.replace("TARGET", self.target.sql)
        return TargetStatement(
            text, kind, "", ("table",) if "CREATE" in sql else ("column:c",), bound
        )

    def make(self, *tables: str) -> list[ShardId]:
        """Shards with columns id and a, and the target made from the first."""
        shards = [self.shard(table) for table in tables]
        self.begin()
        changes = [(shard, self.change(), self.here()) for shard in shards]
        self.commit()
        create = self.statement(
            "CREATE TABLE TARGET (`id` int NOT NULL, `a` int, PRIMARY KEY (`id`))", id="id", a="a"
        )
        for number, (shard, offset, place) in enumerate(changes):
            self.decide(shard, offset, place, "id a", *([create] if number == 0 else []))
        return shards

    # --- what is seen

    def content(self) -> list[tuple[Any, ...]]:
        return self.session.query(f"SELECT * FROM {self.target.sql} ORDER BY id")

    def columns(self) -> list[str]:
        return [str(row[0]) for row in self.session.query(f"SHOW COLUMNS FROM {self.target.sql}")]


def until(driver: Driver, holds: Callable[[], bool]) -> None:
    """Turn the driver until something holds."""
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline, "it does not come"
        driver.step(0.02)


def rest(driver: Driver) -> None:
    """Turn the driver until nothing moves for a while."""
    quiet = 0
    while quiet < QUIET_ROUNDS:
        quiet = 0 if driver.step(0.02) else quiet + 1


@pytest.fixture
def line(stack: LocalStack) -> Iterator[Line]:
    line = Line(stack)
    yield line
    line.close()


def test_rows_follow_the_statement_that_they_need(line: Line) -> None:
    [shard] = line.make("a")
    line.begin()
    line.rows(shard, {"id": 1, "a": 10})
    offset, place = line.change(), line.here()
    line.rows(shard, {"id": 2, "a": 20, "c": 30})
    line.commit()
    add = line.statement("ALTER TABLE TARGET ADD COLUMN `c` int", c="c")
    line.decide(shard, offset, place, "id a c", add)
    driver = line.start()
    rest(driver)
    assert line.content() == [(1, 10, None), (2, 20, 30)]


def test_no_row_passes_a_change_that_is_not_decided(line: Line) -> None:
    [shard] = line.make("a")
    driver = line.start()
    rest(driver)
    line.begin()
    offset, place = line.change(), line.here()
    line.rows(shard, {"id": 1, "a": 10})
    line.commit()
    rest(driver)
    assert line.content() == []
    line.decide(shard, offset, place, "id a")
    until(driver, lambda: line.content() == [(1, 10)])


def test_rows_of_an_open_transaction_wait_and_arrive(line: Line) -> None:
    [shard] = line.make("a")
    driver = line.start()
    line.begin()
    line.rows(shard, {"id": 1, "a": 10})
    line.connector.flush()
    rest(driver)
    assert line.content() == []
    line.commit()
    until(driver, lambda: line.content() == [(1, 10)])


def test_a_held_shard_loses_nothing_and_delays_nobody(line: Line) -> None:
    held, flowing = line.make("a", "b")
    line.begin()
    line.rows(held, {"id": 1, "a": 1})
    offset, place = line.change(), line.here()
    line.rows(held, {"id": 2, "a": 2})
    line.rows(flowing, {"id": 3, "a": 3})
    line.commit()
    line.decide(held, offset, place, "id a", hold=True)
    driver = line.start()
    rest(driver)
    assert line.content() == [(1, 1), (3, 3)]
    line.begin()
    offset, place = line.change(), line.here()
    line.commit()
    line.decide(flowing, offset, place, "id a", releases=(held,))
    until(driver, lambda: line.content() == [(1, 1), (2, 2), (3, 3)])


def test_a_debt_is_paid_when_the_last_row_before_it_is_applied(line: Line) -> None:
    one, two = line.make("a", "b")
    driver = line.start()
    rest(driver)
    line.begin()
    offset, place = line.change(), line.here()
    line.commit()
    line.begin()
    line.rows(two, {"id": 1, "a": 1})
    line.connector.flush()
    drop = line.statement("ALTER TABLE TARGET DROP COLUMN `a`", StatementKind.CONTRACTING, a="")
    line.decide(one, offset, place, "id", drop)
    rest(driver)
    assert line.columns() == ["id", "a"]
    line.commit()
    until(driver, lambda: line.columns() == ["id"])
    assert line.content() == [(1,)]


def test_a_refused_statement_holds_only_who_needs_it_and_is_tried_again(line: Line) -> None:
    one, two = line.make("a", "b")
    driver = line.start()
    rest(driver)
    line.session.execute(f"ALTER TABLE {line.target.sql} ADD COLUMN `c` int")
    line.begin()
    offset, place = line.change(), line.here()
    line.rows(one, {"id": 1, "a": 1, "c": 1})
    line.rows(two, {"id": 2, "a": 2})
    line.commit()
    add = line.statement("ALTER TABLE TARGET ADD COLUMN `c` int", c="c")
    line.decide(one, offset, place, "id a c", add)
    rest(driver)
    assert line.content() == [(2, 2, None)]
    line.session.execute(f"ALTER TABLE {line.target.sql} DROP COLUMN `c`")
    until(driver, lambda: line.content() == [(1, 1, 1), (2, 2, None)])


def test_a_statement_that_waits_for_a_lock_stops_its_own_target_only(line: Line) -> None:
    [waiting] = line.make("a")
    slow = line.target
    line.target = TargetTable(slow.database, "u")
    [flowing] = line.make("b")
    driver = line.start()
    rest(driver)
    reader = MySqlSession(line.address)
    with reader.transaction():
        reader.query(f"SELECT * FROM {slow.sql}")
        line.target = slow
        line.begin()
        offset, place = line.change(), line.here()
        line.rows(waiting, {"id": 1, "a": 1, "c": 1})
        line.commit()
        add = line.statement("ALTER TABLE TARGET ADD COLUMN `c` int", c="c")
        line.decide(waiting, offset, place, "id a c", add)
        rest(driver)
        line.begin()
        line.rows(flowing, {"id": 2, "a": 2})
        line.commit()
        line.target = TargetTable(slow.database, "u")
        until(driver, lambda: line.content() == [(2, 2)])
        line.target = slow
        assert line.columns() == ["id", "a"]
    reader.close()
    until(driver, lambda: line.columns() == ["id", "a", "c"] and line.content() == [(1, 1, 1)])


def test_a_new_driver_goes_on_and_the_old_one_is_refused(line: Line) -> None:
    [shard] = line.make("a")
    old = line.start()
    rest(old)
    line.begin()
    line.rows(shard, {"id": 1, "a": 1})
    line.commit()
    until(old, lambda: line.content() == [(1, 1)])
    new = line.start()
    line.begin()
    line.rows(shard, {"id": 1, "a": 2}, {"id": 2, "a": 2})
    line.commit()
    with pytest.raises(TargetError, match="another writer took over"):
        until(old, lambda: False)
    assert line.content() == [(1, 1)]
    until(new, lambda: line.content() == [(1, 2), (2, 2)])


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # py4j's sockets
def test_a_large_batch_runs_in_spark(line: Line) -> None:
    shards = line.make("a", "b", "c")
    runner = BatchRunner(SinkSettings(Path()), line.config(), 100)
    runner.start()
    try:
        driver = line.start(runner)
        rest(driver)
        line.begin()
        for number, shard in enumerate(shards):
            first = number * 10_000
            line.rows(shard, *({"id": first + n, "a": n} for n in range(1_000)))
        line.commit()
        runner._starter.join()
        until(driver, lambda: len(line.content()) == 3_000)
    finally:
        runner.stop()
