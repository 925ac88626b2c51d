"""What is wrong with topics that exist already, as Kafka describes them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from shardmerge.connectors.kafka.topics_admin import FoundTopic
from shardmerge.schemas.pipeline.settings import Pipeline
from shardmerge.schemas.pipeline.topics import TopicSpec, own_topics

from .findings import Finding

_POLICY = "cleanup.policy"
_WHY = {
    "retention.ms": "records older than that are lost: what happened cannot be replayed",
    "retention.bytes": "records beyond that are lost: what happened cannot be replayed",
    "max.message.bytes": "a record that is larger stops what it is about",
}


def topic_findings(pipeline: Pipeline, found: Mapping[str, FoundTopic]) -> list[Finding]:
    """How topics differ from what a pipeline needs.

    Args:
        pipeline: The pipeline.
        found: Every topic of Kafka by name.
    """
    own = own_topics(pipeline)
    if not any(spec.name in found for spec in own):
        text = (
            f"none of pipeline {pipeline.name} exists yet: `shardmerge connect apply` and "
            "`shardmerge run` make them"
        )
        return [Finding("topics", text, fault=False, code="SM-6401")]
    findings = [finding for spec in own for finding in _own(spec, found.get(spec.name))]
    rows = sorted(found.keys() - {spec.name for spec in own})
    return findings + _compacted(pipeline, (found[name] for name in rows))


def _own(spec: TopicSpec, topic: FoundTopic | None) -> Iterable[Finding]:
    where = f"topic {spec.name}"
    if topic is None:
        many = "partition" if spec.partitions == 1 else "partitions"
        text = (
            "it is missing, and other topics of the pipeline exist. If it was never made, "
            f"`shardmerge connect apply` makes it, with {spec.partitions} {many}. If it was "
            "deleted, its records are lost"
        )
        yield Finding(where, text, code="SM-6401")
        return
    if topic.partitions != spec.partitions:
        yield Finding(
            where, f"it has {topic.partitions} partitions, not {spec.partitions}", code="SM-6401"
        )
    for name, wanted in spec.config.items():
        value = topic.settings.get(name, "")
        if name == _POLICY and value != wanted:
            yield Finding(where, f"{name} is {value}, not {wanted}", code="SM-6401")
        elif name in _WHY and _is_less(value, wanted):
            yield Finding(
                where, f"{name} is {value}, not {wanted}: {_WHY[name]}", fault=False, code="SM-6401"
            )


def _is_less(value: str, wanted: str) -> bool:
    if value in (wanted, "-1"):
        return False
    return wanted == "-1" or int(value) < int(wanted)


def _compacted(pipeline: Pipeline, topics: Iterable[FoundTopic]) -> list[Finding]:
    """Warnings about row topics that Kafka compacts, and where it refuses records without a key."""
    shared = {rule.row_topic for rule in pipeline.routes if rule.row_topic}
    prefixes = tuple(f"{source.name}." for source in pipeline.sources)
    text = (
        "{} is {}: Kafka refuses records without a key there, which are a TRUNCATE and all rows "
        "of tables without a primary key"
    )
    return [
        Finding(f"topic {topic.name}", text.format(_POLICY, policy), fault=False, code="SM-6401")
        for topic in topics
        if topic.name in shared or topic.name.startswith(prefixes)
        if "compact" in (policy := topic.settings.get(_POLICY, ""))
    ]
