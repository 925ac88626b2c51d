"""Every topic that the pipeline reads or writes, as data: names, keys, policies, partitions."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from shardmerge.schemas.model.names import ShardId, TargetTable

from .routing import RoutingRule
from .settings import Pipeline

MAX_RECORD_BYTES = 32 * 1024 * 1024
"""Of a record of our own topics: the schema of a wide table, the journal row of an agent."""
MAX_ROW_BYTES = 256 * 1024 * 1024
"""Of a row record: an update carries two images, and 3 bytes of a blob take 4 of them."""


@dataclass(frozen=True, slots=True)
class TopicSpec:
    """A topic to make before anything reads or writes it."""

    name: str
    partitions: int
    replication: int
    config: Mapping[str, str] = field(default_factory=dict)


def commands(pipeline: Pipeline) -> TopicSpec:
    """OperatorCommand by target."""
    return TopicSpec(f"{pipeline.name}.commands", 1, pipeline.kafka.replication, _KEEP)


def schema_log(pipeline: Pipeline) -> TopicSpec:
    """SchemaChange by target: the coordinator's only input."""
    return TopicSpec(
        f"{pipeline.name}.schema-log",
        pipeline.kafka.log_partitions,
        pipeline.kafka.replication,
        _KEEP,
    )


def ddl(pipeline: Pipeline) -> TopicSpec:
    """Decision by target and version. One partition: the sink folds it in offset order."""
    return TopicSpec(f"{pipeline.name}.ddl", 1, pipeline.kafka.replication, _COMPACT)


def joined_schemas(pipeline: Pipeline) -> TopicSpec:
    """JoinedSchema by target: the latest version."""
    return TopicSpec(f"{pipeline.name}.joined-schemas", 1, pipeline.kafka.replication, _COMPACT)


def sink_progress(pipeline: Pipeline) -> TopicSpec:
    """SinkProgress by target: what the sink has executed and applied."""
    return TopicSpec(f"{pipeline.name}.sink-progress", 1, pipeline.kafka.replication, _COMPACT)


def signals(pipeline: Pipeline) -> TopicSpec:
    """Requests to the connectors by source. One partition: Debezium reads no other."""
    return TopicSpec(f"{pipeline.name}.signals", 1, pipeline.kafka.replication, _KEEP)


def notifications(pipeline: Pipeline) -> TopicSpec:
    """What the connectors say about their snapshots."""
    return TopicSpec(f"{pipeline.name}.notifications", 1, pipeline.kafka.replication, _KEEP)


def schema_changes(pipeline: Pipeline, source: str) -> TopicSpec:
    """Debezium's schema-change topic of a source: one partition, or its order is lost."""
    return TopicSpec(source, 1, pipeline.kafka.replication, _KEEP)


def connector_offsets(pipeline: Pipeline, source: str) -> TopicSpec:
    """Where Kafka Connect keeps how far a source's connector has come.

    Its own for each: a task writes its offsets in the transaction of its rows. In the worker's own
    topic the transaction of a task that was killed is still open, and the worker that comes back
    waits for its end before it starts anything (measured: 117 s). The task that reads a topic of
    its own has ended its predecessor's transaction before.

    To read a source anew, give its connector's offset another place (PATCH): Connect 4.3.1 never
    answers a request to delete offsets that are kept so.
    """
    return TopicSpec(f"{pipeline.name}.{source}.offsets", 1, pipeline.kafka.replication, _COMPACT)


def own_records(pipeline: Pipeline) -> frozenset[str]:
    """Names of the topics of records of ours; requests to connectors are Debezium's."""
    specs = (commands, schema_log, ddl, joined_schemas, sink_progress)
    return frozenset(spec(pipeline).name for spec in specs)


def own_topics(pipeline: Pipeline) -> tuple[TopicSpec, ...]:
    """Everything to make before connectors, agents or sink start."""
    return (
        commands(pipeline),
        schema_log(pipeline),
        ddl(pipeline),
        joined_schemas(pipeline),
        sink_progress(pipeline),
        signals(pipeline),
        notifications(pipeline),
        *(schema_changes(pipeline, s.name) for s in pipeline.sources),
        *(connector_offsets(pipeline, s.name) for s in pipeline.sources),
    )


def row_topic(shard: ShardId) -> str:
    """Debezium's row topic of a shard.

    Source: Debezium's default topic naming: characters outside ``[A-Za-z0-9._-]`` become ``_``.
    """
    name = f"{shard.source}.{shard.database}.{shard.table}"
    return "".join(c if c.isascii() and (c.isalnum() or c in "._-") else "_" for c in name)


class RowTopics:
    """Which topic holds the rows of a shard.

    Its own, as Debezium names it, or the one that a route gives all of its shards: Debezium's
    transformation ``ByLogicalTableRouter`` moves what matches ``shared_pattern`` there, by the
    first route that does. The envelope's ``source`` block says which shard a record is of.

    Args:
        routes: Of the pipeline.

    Attributes:
        shared: The topics that several shards can have.
    """

    def __init__(self, routes: Sequence[RoutingRule] = ()) -> None:
        self._rules = tuple(rule for rule in routes if rule.row_topic)
        self._known: dict[ShardId, str] = {}
        self._missed: dict[ShardId, bool] = {}
        self.shared = frozenset(rule.row_topic for rule in self._rules)

    def topic_of(self, shard: ShardId) -> str:
        """The topic that holds a shard's rows."""
        if not self._rules:
            return row_topic(shard)
        topic = self._known.get(shard)
        if topic is None:
            rule = next((r for r in self._rules if r.match(shard) is not None), None)
            topic = self._known[shard] = rule.row_topic if rule is not None else row_topic(shard)
        return topic

    def is_shared(self, shard: ShardId) -> bool:
        """Whether the rows of other shards come in its topic too."""
        return bool(self._rules) and self.topic_of(shard) in self.shared

    def misses(self, shard: ShardId) -> bool:
        """Whether Debezium's transformations bring a shard's rows elsewhere than to ``topic_of``.

        They see names of topics, which are poorer in characters than the tables' names that
        routes are about.
        """
        if not self._rules:
            return False
        found = self._missed.get(shard)
        if found is None:
            own = row_topic(shard)
            patterns = ((rule, shared_pattern(rule, shard.source)) for rule in self._rules)
            moved = (rule.row_topic for rule, p in patterns if p and re.fullmatch(p, own))
            found = self._missed[shard] = next(moved, own) != self.topic_of(shard)
        return found


def shared_pattern(rule: RoutingRule, source: str) -> str:
    """The expression of the topics of a source whose rows a route moves to its ``row_topic``.

    "" when it moves none. It is Java's as well as Python's.
    """
    if not rule.row_topic or not re.fullmatch(rule.source, source):
        return ""
    skip = f"(?!(?:{unnamed(rule.skip)})$)" if rule.skip else ""
    return rf"{re.escape(source)}\.(?:{unnamed(rule.database)})\.{skip}(?:{unnamed(rule.table)})"


_NAMED_GROUP = re.compile(r"\(\?P<\w+>")


def unnamed(pattern: str) -> str:
    """An expression without the names of its groups: Java's are narrower than Python's."""
    return _NAMED_GROUP.sub("(?:", pattern)


def decision_key(target: TargetTable | None, version: int, change_id: str) -> str:
    """Key of a decision: target and version, or the change's id when it is ignored."""
    return f"ignored/{change_id}" if target is None else f"{target}/{version}"


_SIZE = {"max.message.bytes": str(MAX_RECORD_BYTES)}
_KEEP = {"cleanup.policy": "delete", "retention.ms": "-1", "retention.bytes": "-1", **_SIZE}
_COMPACT = {"cleanup.policy": "compact", **_SIZE}
