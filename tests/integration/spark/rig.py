"""What a test of the apply path stands on: one target database, control tables, row topics."""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from time import monotonic
from typing import Any

from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from shardmerge.local.servers.mysql import PASSWORD, USER
from shardmerge.local.servers.stack import LocalStack
from shardmerge.schemas.model.names import ShardId, TargetTable
from shardmerge.schemas.model.position import BEGINNING, SourcePosition
from shardmerge.schemas.model.shard_columns import ShardColumn
from shardmerge.schemas.model.tables import TableSchema
from shardmerge.schemas.records.decisions import Binding, TargetStatement
from shardmerge.spark_sink.barrier.partitions import Partition
from shardmerge.spark_sink.kafka.range_reader import row_consumer
from shardmerge.spark_sink.planning.ranges import RangeResult, RangeTask, Segment, ShardStream
from shardmerge.spark_sink.targets.mysql.control import ControlStore
from shardmerge.spark_sink.targets.mysql.ddl.introspection import (
    schema_of,
    server_context,
    show_create,
)
from shardmerge.spark_sink.targets.mysql.ddl.journal import Journal
from shardmerge.spark_sink.targets.mysql.session import MySqlAddress, MySqlSession
from shardmerge.spark_sink.targets.mysql.tasks.apply_ranges import apply_together
from shardmerge.spark_sink.targets.mysql.tasks.connection import ApplyConfig, TaskConnection
from tests.target_statements import written

_numbers = itertools.count()
FILE = "binlog.000001"


class Rig:
    """See the module; every instance has names of its own.

    Attributes:
        session: A session with the target.
        config: For tasks.
        epoch: The writer epoch that ``task`` gives its tasks.
        shard, target: The only shard, and the table it is merged into.
        topic: Its row topic, with one partition.
    """

    def __init__(self, stack: LocalStack, name: str, address: MySqlAddress | None = None) -> None:
        self.stack = stack
        self.shard = ShardId("source1", name, "t")
        self.target = TargetTable(name, "t")
        self.topic = f"source1.{name}.t"
        self.config = ApplyConfig(
            stack.kafka,
            address or MySqlAddress("127.0.0.1", stack.ports.target, USER, PASSWORD),
            f"{name}_control",
            name,
            lock_wait_timeout_s=5,
        )
        self.session = self.new_session()
        self.control = ControlStore(self.session, self.config.control_database, name)
        self.connection = TaskConnection(self.config)
        self.epoch = 0
        self._producer: Producer | None = None
        self._places = itertools.count(1000, 10)

    @classmethod
    def make(cls, stack: LocalStack, address: MySqlAddress | None = None) -> Rig:
        """Databases, control tables, topic; the writer epoch is taken.

        Args:
            stack: Whose Kafka it uses.
            address: Of the target's server; the stack's own by default.
        """
        rig = cls(stack, f"rig_{os.getpid()}_{next(_numbers)}", address)
        rig.session.execute(f"CREATE DATABASE `{rig.target.database}`")
        rig.control.prepare()
        rig.epoch = rig.control.take_epoch()
        rig.make_topic()
        return rig

    def other_shard(self) -> Rig:
        """Another shard of the target, with a topic of its own; there is nothing to close."""
        other = Rig(self.stack, f"{self.target.database}_{next(_numbers)}", self.config.target)
        other.target, other.config, other.epoch = self.target, self.config, self.epoch
        other.session, other.control, other.connection = self.session, self.control, self.connection
        other.make_topic()
        return other

    def close(self) -> None:
        """Drop the databases, end the connections."""
        self.connection.close()
        for database in (self.target.database, self.config.control_database):
            self.session.execute(f"DROP DATABASE IF EXISTS `{database}`")
        self.session.close()

    def new_session(self, lock_wait_s: int = 5) -> MySqlSession:
        """Another session with the target."""
        return MySqlSession(self.config.target, lock_wait_timeout_s=lock_wait_s)

    def journal(
        self,
        epoch: int | None = None,
        *,
        online: bool = False,
        lock_wait_s: int = 5,
        shard_columns: Collection[str] = (),
    ) -> Journal:
        """A journal on a session of its own, as a driver that starts has it."""
        session = self.new_session(lock_wait_s)
        control = ControlStore(session, self.config.control_database, self.config.pipeline)
        name = self.config.pipeline
        return Journal(
            session,
            control,
            name,
            epoch or self.epoch,
            lock_wait_s,
            online=online,
            shard_columns=shard_columns,
        )

    def make_topic(self) -> None:
        """Make the row topic."""
        admin = AdminClient({"bootstrap.servers": self.stack.bootstrap_servers})
        for done in admin.create_topics([NewTopic(self.topic, 1, 1)]).values():
            done.result()

    def create(self, columns: str) -> TableSchema:
        """Make the target table; its schema, which is the shard's too."""
        self.session.execute(f"CREATE TABLE {self.target.sql} ({columns})")
        return self.schema()

    def schema(self) -> TableSchema:
        """The target's real schema."""
        context = server_context(self.session, self.target.database)
        schema = schema_of(show_create(self.session, self.target), context)
        assert schema is not None
        return schema

    def rows(self, columns: str = "*") -> list[tuple[Any, ...]]:
        """The target's rows, by primary key."""
        return self.session.query(f"SELECT {columns} FROM {self.target.sql} ORDER BY 1")

    def event(self, op: str, image: dict[str, Any], place: SourcePosition | None = None) -> bytes:
        """A Debezium row record's value; without a place it stands after the one before."""
        place = place or SourcePosition(0, FILE, next(self._places), 0)
        source = {
            "name": self.shard.source, "db": self.shard.database, "table": self.shard.table,
            "file": place.file, "pos": place.pos, "row": place.row,
        }  # fmt: skip
        return json.dumps(
            {"op": op, "before" if op == "d" else "after": image, "source": source}
        ).encode()

    def next_place(self) -> SourcePosition:
        """A place behind every event so far."""
        return SourcePosition(0, FILE, next(self._places), 0)

    def place_from(self, pos: int) -> None:
        """Let the next event stand there."""
        self._places = itertools.count(pos, 10)

    def produce(self, values: Iterable[bytes | None], *, commit: bool = True) -> None:
        """Send records in one Kafka transaction, committed or aborted."""
        if self._producer is None:
            self._producer = Producer(
                {
                    "bootstrap.servers": self.stack.bootstrap_servers,
                    "transactional.id": self.topic,
                    "queue.buffering.max.messages": 1_000_000,
                }
            )
            self._producer.init_transactions()
        self._producer.begin_transaction()
        before, count = self.end_offset(), 0
        for value in values:
            self._producer.produce(self.topic, value, key=b"k")
            count += 1
        if commit:
            self._producer.commit_transaction()
        else:
            self._producer.flush()
            self._producer.abort_transaction()
        # The broker writes the marker that ends the transaction after it acknowledged the end.
        deadline = monotonic() + 30
        while self.end_offset() <= before + count:
            assert monotonic() < deadline

    def end_offset(self) -> int:
        """The row partition's last stable offset, which is its end with commit markers."""
        consumer = row_consumer(self.stack.kafka)
        try:
            return int(consumer.get_watermark_offsets(TopicPartition(self.topic, 0), timeout=10)[1])
        finally:
            consumer.close()

    def segment(
        self,
        schema: TableSchema,
        start: SourcePosition = BEGINNING,
        key: Sequence[str] | None = None,
    ) -> Segment:
        """A segment with a table's columns; identities are ``<name>#1``."""
        primary = schema.primary_key
        return Segment(
            start,
            tuple(ShardColumn(f"{c.name}#1", c) for c in schema.columns),
            tuple(key) if key is not None else (primary.columns if primary else ()),
        )

    def task(
        self,
        *segments: Segment,
        stop: SourcePosition | None = None,
        start: int | None = None,
        end: int | None = None,
    ) -> RangeTask:
        """The task from the stored offset to the topic's end."""
        if start is None:
            start = self.control.offsets().get(Partition(self.topic, 0), 0)
        bindings = {
            c.id: Binding(c.id, c.column.name, writable=c.column.generated is None)
            for s in segments
            for c in s.columns
        }
        return RangeTask(
            self.topic,
            0,
            start,
            self.end_offset() if end is None else end,
            ShardStream(self.shard, self.target, segments, stop),
            bindings,
            self.epoch,
        )

    def apply(
        self, *segments: Segment, stop: SourcePosition | None = None, **config: Any
    ) -> RangeResult:
        """Apply from the stored offset to the topic's end."""
        connection = self.connection
        if config:
            connection = TaskConnection(replace(self.config, **config))
        try:
            return apply_together([self.task(*segments, stop=stop)], connection)[0]
        finally:
            if config:
                connection.close()


def statement(sql: str) -> TargetStatement:
    """A target statement with that text."""
    return written(sql)
