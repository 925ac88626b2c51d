"""Follows a pipeline's topics, and keeps its decisions, schema changes and progress.

The demo and the tests use it. Everything that the system decides is a record, so the
topics tell everything.
"""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass
from types import TracebackType

from confluent_kafka import KafkaError, KafkaException, Message, TopicPartition

from shardmerge.connectors.access.kafka import consumer
from shardmerge.connectors.debezium.envelope import unwrapped
from shardmerge.connectors.debezium.signals import Notice, notice
from shardmerge.schemas.model.errors import ShardMergeError, StackError
from shardmerge.schemas.model.names import ShardId, TargetTable
from shardmerge.schemas.pipeline import topics
from shardmerge.schemas.pipeline.settings import Pipeline
from shardmerge.schemas.records.awaited_readings import AwaitedReadings
from shardmerge.schemas.records.decisions import Decision, JoinedSchema
from shardmerge.schemas.records.progress import SinkProgress

from .record_formats import json_of_connectors, record_format


@dataclass(frozen=True, slots=True)
class SourceEvent:
    """A schema-change record of a source, as far as it matters for knowing what is decided.

    Attributes:
        offset: In the source's schema-change topic.
        database: The database that Debezium names; "" when it names none.
        ddl: The statement.
    """

    source: str
    offset: int
    database: str
    ddl: str

    def concerns(self, databases: Collection[str]) -> bool:
        """Whether the statement is about one of these databases.

        Measured: for CREATE INDEX and DROP INDEX Debezium names the session's database, or "" if
        there is none. In that case the statement itself names the database.
        """
        if self.database:
            return self.database in databases
        return any(name in self.ddl for name in databases)


@dataclass(frozen=True, slots=True)
class Facts:
    """An immutable picture of everything read so far.

    Attributes:
        events: Per source, in offset order.
        decisions: In the order of the ddl topic; one per schema change.
        seen_at: Monotonic seconds at which a decision was read here, by its change's id as text.
        notices: What the connectors said about snapshots of single tables, in their order.
    """

    events: dict[str, tuple[SourceEvent, ...]]
    decisions: tuple[Decision, ...]
    seen_at: dict[str, float]
    joined: dict[TargetTable, JoinedSchema]
    progress: dict[TargetTable, SinkProgress]
    notices: tuple[Notice, ...] = ()

    def of_target(self, target: TargetTable) -> list[Decision]:
        """The target's decisions in version order."""
        return sorted((d for d in self.decisions if d.target == target), key=lambda d: d.version)

    def live(self, target: TargetTable) -> list[ShardId]:
        """The shards that did not leave, sorted."""
        found: dict[ShardId, bool] = {}
        for decision in self.of_target(target):
            if decision.shard is not None:
                found[decision.shard] = decision.live
            found |= dict.fromkeys(decision.leaves, False)
        return sorted(shard for shard, live in found.items() if live)

    def held(self, target: TargetTable) -> dict[ShardId, Decision]:
        """Shards at a gate which nothing has opened, each with the decision that holds it."""
        found: dict[ShardId, list[Decision]] = {}
        for decision in self.of_target(target):
            for release in decision.releases:
                still = [d for d in found.get(release.shard, ()) if d.version > release.through]
                found[release.shard] = still
            if decision.shard is not None and decision.outcome == "hold":
                found.setdefault(decision.shard, []).append(decision)
        return {shard: decisions[0] for shard, decisions in found.items() if decisions}

    def unread(self, target: TargetTable) -> list[ShardId]:
        """Shards that decisions want read again more often than connectors have read them.

        A request that a connector reads twice, after it was killed, counts twice.
        """
        scans = Counter((n.source, n.table) for n in self.notices if n.tells_scan)
        asked = Counter(
            fixup.shard
            for decision in self.of_target(target)
            for fixup in decision.fixups
            if fixup.kind.asks_for_snapshot
        )
        waiting = {
            shard
            for shard, times in asked.items()
            if scans[shard.source, f"{shard.database}.{shard.table}"] < times
        }
        awaited = AwaitedReadings()
        for decision in self.of_target(target):
            awaited.take(decision)
        return sorted(waiting | awaited.latest().keys())

    def undecided(self, source: str, databases: Collection[str], up_to: int) -> list[SourceEvent]:
        """Events of these databases at offsets up to ``up_to`` that lack a decision."""
        ordinals: dict[int, set[int]] = {}
        counts: dict[int, int] = {}
        for decision in self.decisions:
            if decision.id.source == source:
                ordinals.setdefault(decision.id.offset, set()).add(decision.id.ordinal)
                counts[decision.id.offset] = decision.id.count
        return [
            event
            for event in self.events.get(source, ())
            if event.offset <= up_to
            and event.concerns(databases)
            and len(ordinals.get(event.offset, ())) < counts.get(event.offset, 1)
        ]


class Observer:
    """Follows a pipeline's topics in a thread of its own, from their beginning.

    Use as a context manager. Every ``Facts`` returned is a picture that does not change any more.
    """

    def __init__(self, pipeline: Pipeline) -> None:
        self._sources = tuple(source.name for source in pipeline.sources)
        self._ddl = topics.ddl(pipeline).name
        self._joined = topics.joined_schemas(pipeline).name
        self._progress = topics.sink_progress(pipeline).name
        self._notifications = topics.notifications(pipeline).name
        self._consumer = consumer(
            pipeline.kafka,
            {
                "group.id": f"{pipeline.name}-observer",
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "log_level": 3,
            },
        )
        self._to_json = json_of_connectors(pipeline.kafka)
        self._format = record_format(pipeline.kafka)
        self._lock = threading.Lock()
        self._stop = False
        self._error: BaseException | None = None
        self._events: dict[str, list[SourceEvent]] = {name: [] for name in self._sources}
        self._decisions: dict[str, Decision] = {}
        self._seen_at: dict[str, float] = {}
        self._joins: dict[TargetTable, JoinedSchema] = {}
        self._progresses: dict[TargetTable, SinkProgress] = {}
        self._notices: list[Notice] = []
        self._facts = Facts({}, (), {}, {}, {})
        self._dirty = True
        self._thread = threading.Thread(target=self._run, name="observer", daemon=True)

    def __enter__(self) -> Observer:
        self._consumer.assign([TopicPartition(name, 0, 0) for name in self.topics])
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop = True
        self._thread.join(timeout=30)

    @property
    def topics(self) -> tuple[str, ...]:
        """The topics that it follows; each has one partition."""
        return (
            self._progress, self._joined, self._notifications, self._ddl, *self._sources,
        )  # fmt: skip

    def facts(self) -> Facts:
        """What is known now.

        Raises:
            StackError: Reading the topics failed.
        """
        with self._lock:
            return self._picture()

    def wait(self, condition: Callable[[Facts], bool], seconds: float) -> bool:
        """Wait until a condition on the facts holds; False when the bound passed first."""
        deadline = time.monotonic() + seconds
        # Polls instead of waking at every record: a condition may look at thousands of decisions.
        while not condition(self.facts()):
            if (left := deadline - time.monotonic()) <= 0:
                return False
            time.sleep(min(left, 0.05))
        return True

    def _picture(self) -> Facts:
        if self._error is not None:
            raise StackError(f"reading the pipeline's topics failed: {self._error}", code="SM-4108")
        if self._dirty:
            self._facts = Facts(
                {name: tuple(events) for name, events in self._events.items()},
                tuple(self._decisions.values()),
                dict(self._seen_at),
                dict(self._joins),
                dict(self._progresses),
                tuple(self._notices),
            )
            self._dirty = False
        return self._facts

    def _run(self) -> None:
        try:
            while not self._stop:
                messages = self._consumer.consume(num_messages=500, timeout=0.05)
                if messages:
                    with self._lock:
                        for message in messages:
                            self._take(message)
                        self._dirty = True
        except (KafkaException, ShardMergeError, ValueError, KeyError) as error:
            with self._lock:
                self._error = error
        finally:
            self._consumer.close()

    def _take(self, message: Message) -> None:
        if (error := message.error()) is not None:
            # A broker that restarts, or a topic that is just being made: it comes back.
            if error.fatal() or error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
                raise KafkaException(error)
            return
        value, topic = message.value(), message.topic()
        if value is None or topic is None:
            return
        if topic in (*self._sources, self._notifications):
            value = self._to_json(value) or b""
        if topic in self._events:
            change = unwrapped(json.loads(value))
            self._events[topic].append(
                SourceEvent(
                    topic,
                    message.offset() or 0,
                    change.get("databaseName") or "",
                    change.get("ddl") or "",
                )
            )
            return
        if topic == self._notifications:
            if (said := notice(value)) is not None:
                self._notices.append(said)
            return
        record = self._format.read(value)
        if isinstance(record, Decision):
            key = str(record.id)
            self._decisions.setdefault(key, record)
            self._seen_at.setdefault(key, time.monotonic())
        elif isinstance(record, JoinedSchema):
            self._joins[record.target] = record
        elif isinstance(record, SinkProgress):
            self._progresses[record.target] = record
