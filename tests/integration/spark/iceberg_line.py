"""Lines onto an Iceberg target: one with a played source, one that a connector reads from MySQL."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from confluent_kafka import Producer

from shardmerge.agents.coordination import coordinator
from shardmerge.agents.coordination.decision_records import Step
from shardmerge.agents.handling.effects import Send
from shardmerge.agents.handling.handlers import CoordinatorHandler, TrackerHandler
from shardmerge.agents.replay.log import Refold
from shardmerge.agents.runtime.wire_formats import wire
from shardmerge.connectors.connect.connect_rest import ConnectRest
from shardmerge.connectors.debezium.connector_names import connector_name
from shardmerge.connectors.deploy import deploy_connectors
from shardmerge.connectors.formats.stored_record import StoredRecord
from shardmerge.connectors.kafka.record_formats import json_of_connectors, record_format
from shardmerge.connectors.kafka.topic_reader import TopicReader
from shardmerge.local.servers.stack import LocalStack
from shardmerge.schemas.ddl.apply.statements import apply_alter
from shardmerge.schemas.ddl.changes import AlterTable
from shardmerge.schemas.ddl.grammar import parse
from shardmerge.schemas.model.actions import Adoption
from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.model.origin import NO_ORIGIN, Origin
from shardmerge.schemas.model.policies import EARLIEST_POLICIES, RowsPolicy
from shardmerge.schemas.model.shard_columns import Lineage
from shardmerge.schemas.model.tables import TableSchema
from shardmerge.schemas.pipeline import topics
from shardmerge.schemas.pipeline.file import parse_pipeline
from shardmerge.schemas.pipeline.settings import Kafka, Pipeline
from shardmerge.schemas.records import codec
from shardmerge.schemas.records.drift import Adoptions
from shardmerge.schemas.records.operator_commands import CommandKind, OperatorCommand
from shardmerge.schemas.records.schema_changes import ChangeId, SchemaChange
from shardmerge.schemas.target.dialects.spark import SparkDialect
from shardmerge.spark_sink.driver.drift_watch import DriftWatch
from shardmerge.spark_sink.driver.loop import Driver
from shardmerge.spark_sink.driver.statement_runs import StatementRunner
from shardmerge.spark_sink.kafka.intake import Intake, tailed_topics
from shardmerge.spark_sink.kafka.offsets import OffsetReader
from shardmerge.spark_sink.kafka.publisher import ProgressPublisher
from shardmerge.spark_sink.kafka.topic_tail import TopicTail
from shardmerge.spark_sink.targets.iceberg.fold import close_readers
from tests.strategies import SERVER

from .contract import IcebergKind
from .played_line import QUIET_ROUNDS, Line


@contextmanager
def sink(
    kind: IcebergKind, pipeline: Pipeline, drift_interval_s: float = 0
) -> Iterator[Callable[[], bool]]:
    """A new driver of the sink; the function turns it once, and says whether anything moves."""
    bootstrap, format_ = pipeline.kafka.bootstrap_servers, record_format(pipeline.kafka)
    target = kind.open(pipeline)
    target.state.prepare()
    epoch = target.state.take_epoch()
    tail = TopicTail(Kafka(bootstrap), tailed_topics(pipeline))
    publisher = ProgressPublisher(Kafka(bootstrap), topics.sink_progress(pipeline).name, format_)
    statements = StatementRunner(
        lambda: target.journal_of_thread(epoch), pipeline.sink.statement_connections
    )
    driver = Driver(
        pipeline, intake=Intake(pipeline, OffsetReader(Kafka(bootstrap)), tail, format_),
        control=target.state, journal=target.journal(epoch), statements=statements,
        runner=target.batches, publisher=publisher, epoch=epoch, loads=target.loads,
        drift=DriftWatch(target.drift, target.looks_of_thread, drift_interval_s, epoch),
    )  # fmt: skip
    try:
        driver.load()
        yield lambda: bool(driver.step(0.02) or statements.busy)
    finally:
        driver.stop()
        statements.stop()
        publisher.close()
        tail.close()


class IcebergLine(Line):
    """A source of two shards, the coordinator's own decisions, an Iceberg target."""

    def __init__(
        self,
        stack: LocalStack,
        kind: IcebergKind,
        origin: Origin = NO_ORIGIN,
        *,
        shared: bool = False,
    ) -> None:
        super().__init__(stack, shared=shared)
        self.kind, self.origin = kind, origin
        self.pipeline: Pipeline = replace(
            self.pipeline, target=kind.settings(self.pipeline.target.control_database)
        )
        self.state = coordinator.initial(self.target)
        self.schemas: dict[ShardId, TableSchema] = {}

    def alter(self, shard: ShardId, action: str) -> None:
        statement = parse(f"ALTER TABLE t {action}", SERVER)
        assert isinstance(statement, AlterTable)
        done = apply_alter(self.schemas[shard], statement, "t", SERVER)
        self.send(shard, done.schema, tuple(done.lineage), tuple(done.actions))

    def send(
        self,
        shard: ShardId,
        after: TableSchema | None,
        lineage: tuple[Lineage, ...] = (),
        actions: tuple[str, ...] = (),
    ) -> None:
        change = SchemaChange(
            ChangeId(self.source, self.change()), self.target, shard, self.here(),
            self.schemas.get(shard), after, lineage, actions, "",
            policies=replace(EARLIEST_POLICIES, origin=self.origin, on_drop=RowsPolicy.DELETE),
        )  # fmt: skip
        if after is not None:
            self.schemas[shard] = after
        self._take(coordinator.decide(self.state, change, SparkDialect()))

    def adopt(self, adoption: Adoption) -> None:
        """What the coordinator does with the command ``adopt``."""
        command = OperatorCommand(
            ChangeId("commands", self.state.version), self.target, CommandKind.ADOPT,
            argument=str(Adoptions((adoption,))), by="ann", ts_ms=0,
        )  # fmt: skip
        self._take(coordinator.obey(self.state, command, SparkDialect()))

    def _take(self, step: Step) -> None:
        assert step.decision is not None
        self.state = step.state
        value = codec.encode(step.decision)
        self._ddl.produce(topics.ddl(self.pipeline).name, value, b"k")
        self._ddl.flush()

    def turn(self) -> None:
        """A new driver, until it rests."""
        with sink(self.kind, self.pipeline) as moves:
            quiet = 0
            while quiet < QUIET_ROUNDS:
                quiet = 0 if moves() else quiet + 1

    def found(self) -> list[dict[str, Any]]:
        return rows_of(self.kind, self.target.sql)


class ReadLine:
    """One source that a connector reads, the agents' folds in this process, an Iceberg target.

    Args:
        name: Of the pipeline, its source and its target's database.
        database: Of the source server; its tables ``t1``, ``t2``, … are the shards.
        server_id: Of the connector.
        kafka: Further keys of ``[kafka]``, such as ``row_format``.
    """

    def __init__(
        self,
        stack: LocalStack,
        kind: IcebergKind,
        name: str,
        database: str,
        server_id: int,
        **kafka: str,
    ) -> None:
        route = (
            f'[[routes]]\ndatabase = "{database}"\ntable = "t\\\\d"\ntarget = "{name}.t"\n'
            'origin = { shard = "_s" }\n'
        )
        parsed = parse_pipeline(stack.pipeline_text(name, route, **kafka), {})
        source = replace(parsed.sources[0], name=name, databases=database, server_id=server_id)
        target = kind.settings(f"{name}_control")
        # Every batch is a job of Spark's: its workers decode the rows.
        batches = replace(parsed.sink, spark_min_records=1)
        self.pipeline = replace(parsed, sources=(source,), target=target, sink=batches)
        self.kind = kind
        self._rest = ConnectRest(stack.connect_url)
        self._reader = TopicReader(stack.kafka)
        self._producer = Producer({"bootstrap.servers": stack.bootstrap_servers, "acks": "all"})
        self._tracker = Refold(TrackerHandler(self.pipeline))
        self._coordinator = Refold(CoordinatorHandler(self.pipeline))
        self._folded_to = self._logged = self._commanded = 0

    def deploy(self) -> None:
        """Topics and connector, until it runs."""
        deploy_connectors(self.pipeline, self._rest)
        # Not before there are topics: with a registry, it registers our contracts.
        self._wire = wire(self.pipeline, record_format(self.pipeline.kafka))
        self._json = json_of_connectors(self.pipeline.kafka)

    def close(self) -> None:
        close_readers()
        self._reader.close()
        self._rest.delete(connector_name(self.pipeline, self.pipeline.sources[0]))
        self._rest.close()

    def sink(self) -> Any:
        return sink(self.kind, self.pipeline)

    def decide(self) -> None:
        """What the agents do with the schema changes that came."""
        [extent] = self._reader.extents([self.pipeline.sources[0].name])
        for record in self._reader.records(replace(extent, begin=self._folded_to)):
            read = replace(record, value=self._json(record.value))
            for send in self._sends(self._tracker, read):
                if send.topic != topics.schema_log(self.pipeline).name:
                    self._send(send)
                    continue
                logged = StoredRecord(send.topic, 0, self._logged, send.key, send.value)
                self._logged += 1
                for answer in self._sends(self._coordinator, logged):
                    self._send(answer)
        self._folded_to = extent.end
        self._producer.flush()

    def command(self, command: OperatorCommand) -> None:
        """An operator's command, as the agents get it."""
        name = topics.commands(self.pipeline).name
        record = StoredRecord(name, 0, self._commanded, b"", codec.encode(command))
        self._commanded += 1
        for answer in self._sends(self._coordinator, record):
            self._send(answer)
        self._producer.flush()

    def _sends(self, fold: Refold, record: StoredRecord) -> tuple[Send, ...]:
        effects = fold.effects(record)
        fold.rows.take(effects)
        return effects.sends

    def _send(self, send: Send) -> None:
        self._producer.produce(send.topic, self._wire(send), send.key)

    def found(self) -> list[dict[str, Any]]:
        """The target's rows; none before it is there."""
        target = f"{self.pipeline.name}.t"
        if not self.kind.session.catalog.tableExists(f"lake.{target}"):
            return []
        return rows_of(self.kind, target)

    def stored(self, topic: str) -> list[bytes | None]:
        """The values in the first partition of a topic."""
        first, *_ = self._reader.extents([topic])
        return [record.value for record in self._reader.records(first)]


def rows_of(kind: IcebergKind, table: str) -> list[dict[str, Any]]:
    rows = kind.session.sql(f"SELECT * FROM lake.{table} ORDER BY id").collect()
    return [row.asDict() for row in rows]
