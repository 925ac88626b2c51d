"""A pipeline whose sources and coordinator are played: what the driver's tests stand on.

Its shards have row topics of their own, or share one, as Debezium's transformation makes it.
"""

from __future__ import annotations

import itertools
import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from confluent_kafka import Producer

from shardmerge.connectors.kafka.topics_admin import create_topics
from shardmerge.local.servers.mysql import PASSWORD, USER
from shardmerge.local.servers.stack import LocalStack
from shardmerge.schemas.model.errors import StackError
from shardmerge.schemas.model.names import ShardId, TargetTable
from shardmerge.schemas.model.position import BEGINNING, SourcePosition
from shardmerge.schemas.model.shard_columns import ShardColumn
from shardmerge.schemas.model.tables import Column
from shardmerge.schemas.model.types import ColumnType
from shardmerge.schemas.pipeline import topics
from shardmerge.schemas.pipeline.routing import RoutingRule
from shardmerge.schemas.pipeline.settings import Connect, Kafka, Pipeline, Sink, Source, Target
from shardmerge.schemas.pipeline.topics import RowTopics, TopicSpec
from shardmerge.schemas.records import codec
from shardmerge.schemas.records.decisions import (
    Binding,
    Decision,
    Fixup,
    FixupKind,
    Outcome,
    Release,
    StatementKind,
    TargetStatement,
)
from shardmerge.schemas.records.reloads import Reload
from shardmerge.schemas.records.schema_changes import ChangeId
from shardmerge.spark_sink.barrier.partitions import Partition
from shardmerge.spark_sink.driver.loop import Driver
from shardmerge.spark_sink.driver.statement_runs import StatementRunner
from shardmerge.spark_sink.kafka.intake import Intake, tailed_topics
from shardmerge.spark_sink.kafka.offsets import OffsetReader
from shardmerge.spark_sink.kafka.publisher import ProgressPublisher
from shardmerge.spark_sink.kafka.topic_tail import TopicTail
from shardmerge.spark_sink.process.settings import SinkSettings
from shardmerge.spark_sink.targets.mysql.control import ControlStore
from shardmerge.spark_sink.targets.mysql.ddl.journal import Journal
from shardmerge.spark_sink.targets.mysql.session import MySqlAddress, MySqlSession
from shardmerge.spark_sink.targets.mysql.tasks.batches import BatchRunner
from shardmerge.spark_sink.targets.mysql.tasks.connection import ApplyConfig, close_connections

_numbers = itertools.count()
PATIENCE_S = 120.0
QUIET_ROUNDS = 20


class Line:
    """One pipeline with one source: what Debezium and the coordinator would write.

    A second one is there for who asks for it, see ``other_source``.

    Attributes:
        shared: The row topic of all shards; "" when each has its own.
    """

    def __init__(
        self,
        stack: LocalStack,
        *routes: RoutingRule,
        shared: bool = False,
        ordered: bool = False,
        server: Target | None = None,
    ) -> None:
        """``server``: that target, which somebody else runs, instead of the stack's."""
        self._ordered = ordered
        name = f"driver{os.getpid()}x{next(_numbers)}"
        self.source, self.target = f"{name}s", TargetTable(name, "t")
        self.shared = f"all_{name}" if shared else ""
        sources = (self.source, f"{name}o")
        self.pipeline = Pipeline(
            name,
            Kafka(stack.bootstrap_servers),
            Connect(stack.connect_url),
            tuple(
                Source(
                    source,
                    "127.0.0.1",
                    stack.ports.source1,
                    USER,
                    PASSWORD,
                    number,
                    snapshot="debezium",
                )
                for number, source in enumerate(sources, 1)
            ),
            self._routes(routes),
            replace(
                server or Target("127.0.0.1", stack.ports.target, USER, PASSWORD),
                control_database=f"{name}_control",
            ),
            Sink(retry_interval_s=1),
        )
        place = self.pipeline.target
        self.address = MySqlAddress(place.host, place.port, place.user, place.password)
        self.session = MySqlSession(self.address)
        create_topics(stack.kafka, topics.own_topics(self.pipeline))
        self._ddl = Producer({"bootstrap.servers": stack.bootstrap_servers, "acks": "all"})
        self.connector, self._other = (
            Producer({"bootstrap.servers": stack.bootstrap_servers, "transactional.id": source})
            for source in sources
        )
        self.connector.init_transactions()
        self._other.init_transactions()
        self._other_offset = 0
        self._changed = False
        self._offsets = OffsetReader(stack.kafka)
        self._written: set[Partition] = set()
        self._made: set[str] = set()
        self._pos = itertools.count(100, 10)
        self._offset = 0
        self._versions: dict[TargetTable, int] = {}
        self.drivers: list[tuple[Driver, Callable[[], None]]] = []

    def shard(self, table: str, partitions: int = 1) -> ShardId:
        shard = ShardId(self.source, "app", table)
        topic = self.topic_of(shard)
        if topic not in self._made:
            specs = [TopicSpec(topic, partitions, 1)]
            create_topics(self.pipeline.kafka, specs)
            self._made.add(topic)
        return shard

    def topic_of(self, shard: ShardId) -> str:
        return RowTopics(self.pipeline.routes).topic_of(shard)

    def _routes(self, routes: tuple[RoutingRule, ...]) -> tuple[RoutingRule, ...]:
        if not self.shared:
            return routes
        given = routes or (RoutingRule(".*", "app", ".*", "", ""),)
        return tuple(replace(rule, row_topic=self.shared) for rule in given)

    @contextmanager
    def other_source(self) -> Iterator[None]:
        """What is written meanwhile is of the second source, in a transaction of its own."""
        self._swap()
        yield
        self._swap()

    def _swap(self) -> None:
        one, other = (source.name for source in self.pipeline.sources)
        self.source = other if self.source == one else one
        self.connector, self._other = self._other, self.connector
        self._offset, self._other_offset = self._other_offset, self._offset

    def start(self, runner: BatchRunner | None = None) -> Driver:
        """A driver that takes over, as a process that starts."""
        bootstrap = self.pipeline.kafka.bootstrap_servers
        session = MySqlSession(self.address)
        control = ControlStore(session, self.pipeline.target.control_database, self.pipeline.name)
        control.prepare()
        epoch = control.take_epoch()
        tail = TopicTail(Kafka(bootstrap), tailed_topics(self.pipeline))
        publisher = ProgressPublisher(Kafka(bootstrap), topics.sink_progress(self.pipeline).name)
        journal = Journal(session, control, self.pipeline.name, epoch)
        statements = StatementRunner(
            lambda: self._journal(epoch), self.pipeline.sink.statement_connections
        )
        runner = runner or BatchRunner(SinkSettings(Path()), self.config(), 1 << 60)
        driver = Driver(
            self.pipeline,
            intake=Intake(
                self.pipeline,
                OffsetReader(Kafka(bootstrap)),
                tail,
                orders_partitions=self._ordered,
                read_windows=runner.read_windows,
                few=1,
            ),
            control=control,
            journal=journal,
            statements=statements,
            runner=runner,
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
            self.pipeline.kafka,
            self.address,
            self.pipeline.target.control_database,
            self.pipeline.name,
        ).for_kind(self.pipeline.target.kind)

    def route(self, *routes: RoutingRule) -> None:
        """Another pipeline file, for the next driver."""
        self.pipeline = replace(self.pipeline, routes=self._routes(routes))

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
        self.connector.flush()
        before = self._ends()
        self.connector.commit_transaction()
        # The broker writes the markers that end the transaction after it acknowledged the end.
        deadline = time.monotonic() + PATIENCE_S
        while any(end <= before[place] for place, end in self._ends().items()):
            assert time.monotonic() < deadline, "the transaction does not end"
        self._written.clear()
        self._offset += self._changed  # the marker
        self._changed = False

    def _ends(self) -> dict[Partition, int]:
        """Where what was written ends; a broker that was just started may not tell it at once."""
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                return self._offsets.high_watermarks(self._written)
            except StackError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.1)

    def change(self) -> int:
        """A record in the schema-change topic; returns its offset. Within a transaction."""
        self.put(self.source, b"{}")
        self._offset += 1
        self._changed = True
        return self._offset - 1

    def rows(self, shard: ShardId, *images: dict[str, Any], partition: int = 0) -> None:
        """Rows that were inserted. Within a transaction."""
        for image in images:
            self._row(shard, partition, {"op": "c", "after": image})

    def updates(self, shard: ShardId, *images: dict[str, Any], partition: int = 0) -> None:
        """Rows that were updated. Within a transaction."""
        for image in images:
            self._row(shard, partition, {"op": "u", "after": image})

    def deletions(self, shard: ShardId, *images: dict[str, Any], partition: int = 0) -> None:
        """Rows that were deleted. Within a transaction."""
        for image in images:
            self._row(shard, partition, {"op": "d", "before": image})

    def reads(
        self,
        shard: ShardId,
        *images: dict[str, Any],
        place: SourcePosition,
        ts_ms: int,
        partition: int = 0,
    ) -> None:
        """Rows that a snapshot read, which was taken there. Within a transaction."""
        for image in images:
            record = {"op": "r", "after": image, "ts_ms": ts_ms}
            self._row(shard, partition, record, pos=place.pos, snapshot="true")

    def truncation(self, shard: ShardId, partition: int = 0) -> None:
        """The event of a TRUNCATE TABLE. Within a transaction."""
        self._row(shard, partition, {"op": "t"})

    def _row(
        self, shard: ShardId, partition: int, record: dict[str, Any], **source_too: Any
    ) -> None:
        source = {
            "name": shard.source, "db": shard.database, "table": shard.table,
            "file": "binlog.000001", "pos": next(self._pos), "row": 0, **source_too,
        }  # fmt: skip
        value = json.dumps({**record, "source": source}).encode()
        self.put(self.topic_of(shard), value, partition)

    def put(self, topic: str, value: bytes | None, partition: int = 0) -> None:
        """Any record. Within a transaction."""
        self.connector.produce(topic, value, b"k", partition)
        self.connector.poll(0)
        self._written.add(Partition(topic, partition))

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
        reason: str = "",
        code: str = "",
        live: bool = True,
        releases: tuple[ShardId, ...] = (),
        key: str = "id",
        snapshot_ms: int = 0,
        reloads: tuple[Reload, ...] = (),
    ) -> None:
        """Send a decision. ``columns``: all integers, ``<name>`` or ``<name>=<name by now>``.

        Identities are ``<name>#1``. ``snapshot_ms``: when a snapshot described it, if one did.
        """
        version = self._versions[self.target] = self._versions.get(self.target, 0) + 1
        emitted = Outcome.EMIT if statements else Outcome.NOOP
        decision = Decision(
            ChangeId(self.source, offset), self.target, version, shard, place,
            Outcome.HOLD if hold else emitted, statements,
            columns=tuple(
                ShardColumn(
                    name if name.startswith("@") else f"{name}#1",
                    Column(by_now or name, ColumnType("int")),
                )
                for name, _, by_now in (text.partition("=") for text in columns.split())
            ),
            key=tuple(key.split()), live=live,
            releases=tuple(Release(shard, version) for shard in releases),
            snapshot=bool(snapshot_ms), ts_ms=snapshot_ms, reloads=reloads,
            reason=reason, code=code,
        )  # fmt: skip
        self._send(decision)

    def ask_whole(self, *shards: ShardId) -> None:
        """Decide that tables are to be read as a whole."""
        fixups = tuple(Fixup(shard, FixupKind.WHOLE, (), "asked") for shard in shards)
        self._send(replace(self._answered(), fixups=fixups))

    def tell_whole(self, *reloads: Reload) -> None:
        """Decide that they were."""
        self._send(replace(self._answered(), reloads=reloads))

    def _answered(self) -> Decision:
        """The answer to a command."""
        version = self._versions[self.target] = self._versions[self.target] + 1
        change = ChangeId("commands", version)
        return Decision(change, self.target, version, None, BEGINNING, Outcome.NOOP)

    def _send(self, decision: Decision) -> None:
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

    def make(self, *tables: str, partitions: int = 1) -> list[ShardId]:
        """Shards with columns id and a, and the target made from the first."""
        shards = [self.shard(table, partitions) for table in tables]
        self.begin()
        changes = [(shard, self.change(), self.here()) for shard in shards]
        self.commit()
        create = self.statement(
            "CREATE TABLE TARGET (`id` int NOT NULL, `a` int, PRIMARY KEY (`id`))", id="id", a="a"
        )
        for number, (shard, offset, place) in enumerate(changes):
            self.decide(shard, offset, place, "id a", *([create] if number == 0 else []))
        return shards

    def describe(
        self,
        place: SourcePosition,
        ms: int,
        *shards: ShardId,
        key: str = "id",
        origin: bool = False,
    ) -> None:
        """A snapshot begins, or begins again; the first one makes the target too."""
        self.begin()
        changes = [(shard, self.change()) for shard in shards]
        self.commit()
        primary = ", PRIMARY KEY (`id`)" if key else ""
        column = ", `f` varchar(194) COLLATE utf8mb4_bin NOT NULL" if origin else ""
        create = self.statement(
            f"CREATE TABLE TARGET (`id` int NOT NULL, `a` int{column}{primary})"
        )
        binds = (Binding("id#1", "id"), Binding("a#1", "a"), Binding("@shard", "f"))
        create = replace(create, binds=binds[: 2 + origin])
        columns = "id a @shard" if origin else "id a"
        for shard, offset in changes:
            statements = [] if self._versions.get(self.target) else [create]
            self.decide(shard, offset, place, columns, *statements, key=key, snapshot_ms=ms)

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


def rest(driver: Driver, *, but_for_statements: bool = False) -> None:
    """Turn the driver until nothing moves for a while.

    A driver whose barrier waits for records that Kafka has not delivered yet does not rest: on a
    busy machine a new consumer may need longer for its first records than all the quiet rounds.

    Args:
        driver: It, with a state loaded.
        but_for_statements: Whether a statement that runs, and does not end, is no movement.
    """
    quiet, deadline = 0, time.monotonic() + PATIENCE_S
    while quiet < QUIET_ROUNDS:
        assert time.monotonic() < deadline, "it does not come to rest"
        moves = driver.step(0.02) or (driver.runs_statements and not but_for_statements)
        missing = driver._intake.barriers.missing.values()
        quiet = 0 if moves or any(not what.undecided for what in missing) else quiet + 1
