"""Every topic that the pipeline reads or writes, as data: names, keys, policies, partitions."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from shardmerge.schemas.model.names import ShardId, TargetTable

from .routing import RoutingRule
from .settings import Pipeline
from .web import TOKEN

MAX_RECORD_BYTES = 32 * 1024 * 1024
"""Largest record of our own topics, such as a wide table's schema or an agent's journal row."""
MAX_ROW_BYTES = 256 * 1024 * 1024
"""Largest row record. An update has two images, and 3 bytes of a blob become 4 bytes there."""


@dataclass(frozen=True, slots=True)
class TopicSpec:
    """A topic that is created before anything reads or writes it."""

    name: str
    partitions: int
    replication: int
    config: Mapping[str, str] = field(default_factory=dict)


def commands(pipeline: Pipeline) -> TopicSpec:
    """OperatorCommand records; key: target."""
    return TopicSpec(f"{pipeline.name}.commands", 1, pipeline.kafka.replication, _KEEP)


def schema_log(pipeline: Pipeline) -> TopicSpec:
    """SchemaChange records; key: target. This is the coordinator's only input."""
    return TopicSpec(
        f"{pipeline.name}.schema-log",
        pipeline.kafka.log_partitions,
        pipeline.kafka.replication,
        _KEEP,
    )


def ddl(pipeline: Pipeline) -> TopicSpec:
    """Decision records; key: target and version. One partition: the sink reads it in order."""
    return TopicSpec(f"{pipeline.name}.ddl", 1, pipeline.kafka.replication, _COMPACT)


def joined_schemas(pipeline: Pipeline) -> TopicSpec:
    """JoinedSchema records, the latest per target; key: target."""
    return TopicSpec(f"{pipeline.name}.joined-schemas", 1, pipeline.kafka.replication, _COMPACT)


def sink_progress(pipeline: Pipeline) -> TopicSpec:
    """SinkProgress records: what the sink has executed and applied; key: target."""
    return TopicSpec(f"{pipeline.name}.sink-progress", 1, pipeline.kafka.replication, _COMPACT)


def validations(pipeline: Pipeline) -> TopicSpec:
    """TargetValidation records: what `shardmerge validate` found last. Only views read them.

    The key is the target; ``TARGET/part`` for the latest comparison that did not compare all rows.
    """
    return TopicSpec(f"{pipeline.name}.validations", 1, pipeline.kafka.replication, _COMPACT)


def signals(pipeline: Pipeline) -> TopicSpec:
    """Requests to the connectors; key: source. One partition: Debezium reads only that one."""
    return TopicSpec(f"{pipeline.name}.signals", 1, pipeline.kafka.replication, _KEEP)


def notifications(pipeline: Pipeline) -> TopicSpec:
    """The connectors' notifications about their snapshots."""
    return TopicSpec(f"{pipeline.name}.notifications", 1, pipeline.kafka.replication, _KEEP)


def schema_changes(pipeline: Pipeline, source: str) -> TopicSpec:
    """Debezium's schema-change topic of a source. More than one partition would lose the order."""
    return TopicSpec(source, 1, pipeline.kafka.replication, _KEEP)


def connector_offsets(pipeline: Pipeline, source: str) -> TopicSpec:
    """The topic in which Kafka Connect stores the offsets of a source's connector.

    Each connector has its own topic, because a task writes its offsets in the transaction of its
    rows. With the worker's common topic, the open transaction of a killed task delays the worker:
    it waits for the transaction's end before it starts anything (measured: 117 s). With a topic per
    connector, the new task ends its predecessor's transaction before it reads the topic.

    To read a source anew, PATCH the connector's offset to another position. Connect 4.3.1 never
    answers a request to delete offsets in a connector's own topic.
    """
    return TopicSpec(f"{pipeline.name}.{source}.offsets", 1, pipeline.kafka.replication, _COMPACT)


def ended_sessions(pipeline: Pipeline) -> TopicSpec:
    """Sessions of the pages that users ended; key: digest. A session lasts less than a day."""
    config = {"cleanup.policy": "delete", "retention.ms": str(24 * 3_600_000)}
    return TopicSpec(f"{pipeline.name}.ended-sessions", 1, pipeline.kafka.replication, config)


def own_records(pipeline: Pipeline) -> frozenset[str]:
    """Names of the topics with our own records. Requests to connectors are Debezium's records."""
    specs = (commands, schema_log, ddl, joined_schemas, sink_progress, validations)
    return frozenset(spec(pipeline).name for spec in specs)


def own_topics(pipeline: Pipeline) -> tuple[TopicSpec, ...]:
    """The topics that must exist before connectors, agents or sink start."""
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


def page_topics(pipeline: Pipeline) -> tuple[TopicSpec, ...]:
    """The topics that only the pages need. The sink's user needs no right to make them."""
    ended = (ended_sessions(pipeline),) if pipeline.web.commands == TOKEN else ()
    return (validations(pipeline), *ended)


_OTHERS = re.compile(r"[^A-Za-z0-9._-]")


def row_topic(shard: ShardId) -> str:
    """Debezium's row topic of a shard.

    Source: Debezium's default topic naming: characters outside ``[A-Za-z0-9._-]`` become ``_``.
    """
    name = f"{shard.source}.{shard.database}.{shard.table}"
    return _OTHERS.sub("_", name)


class RowTopics:
    """Which topic holds the rows of a shard.

    A shard has its own topic, named by Debezium, or the ``row_topic`` of its route. Debezium's
    transformation ``ByLogicalTableRouter`` sends the records of topics that match
    ``shared_pattern`` to the ``row_topic``; the first route that matches counts. The envelope's
    ``source`` block says which shard a record is from.

    Args:
        routes: The pipeline's routes.

    Attributes:
        shared: The topics that several shards can share.
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
        """Whether the shard's topic can have rows of other shards too."""
        return bool(self._rules) and self.topic_of(shard) in self.shared

    def misses(self, shard: ShardId) -> bool:
        """Whether Debezium's transformations send a shard's rows elsewhere than to ``topic_of``.

        They match names of topics; routes match names of tables. A topic's name can have fewer
        kinds of characters, so it may match differently.
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
    """The regular expression of a source's topics whose rows a route sends to its ``row_topic``.

    It is "" when the route sends none. Java and Python both read the expression.
    """
    if not rule.row_topic or not re.fullmatch(rule.source, source):
        return ""
    skip = f"(?!(?:{unnamed(rule.skip)})$)" if rule.skip else ""
    return rf"{re.escape(source)}\.(?:{unnamed(rule.database)})\.{skip}(?:{unnamed(rule.table)})"


_NAMED_GROUP = re.compile(r"\(\?P<\w+>")


def unnamed(pattern: str) -> str:
    """An expression without the names of its groups: Java allows fewer names than Python."""
    return _NAMED_GROUP.sub("(?:", pattern)


def decision_key(target: TargetTable | None, version: int, change_id: str) -> str:
    """Key of a decision: target and version, or the change's id when it is ignored."""
    return f"ignored/{change_id}" if target is None else f"{target}/{version}"


_SIZE = {"max.message.bytes": str(MAX_RECORD_BYTES)}
_KEEP = {"cleanup.policy": "delete", "retention.ms": "-1", "retention.bytes": "-1", **_SIZE}
_COMPACT = {"cleanup.policy": "compact", **_SIZE}
