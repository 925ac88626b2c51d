"""What is found wrong with topics that exist already."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from shardmerge.cli.checks.topic_rules import topic_findings
from shardmerge.connectors.kafka.topics_admin import FoundTopic
from shardmerge.schemas.pipeline.routing import RoutingRule
from shardmerge.schemas.pipeline.settings import Connect, Kafka, Pipeline, Source, Target
from shardmerge.schemas.pipeline.topics import own_topics

PIPELINE = Pipeline(
    "shop",
    Kafka("k:1"),
    Connect("http://c"),
    (Source("s1", "h", 3306, "u", "p", 54101),),
    (RoutingRule("s1", "app", r"t\d+", "merged", "t"),),
    Target("h", 3306, "u", "p"),
)


def as_made(**settings: str) -> dict[str, FoundTopic]:
    """All topics as the pipeline makes them; settings of the log by name, with _ for a dot."""
    found = {s.name: FoundTopic(s.name, s.partitions, dict(s.config)) for s in own_topics(PIPELINE)}
    log = found["shop.schema-log"]
    mine = {name.replace("_", "."): value for name, value in settings.items()}
    found[log.name] = replace(log, settings={**log.settings, **mine})
    return found


def test_topics_as_the_pipeline_makes_them_have_no_findings() -> None:
    assert topic_findings(PIPELINE, as_made()) == []
    assert topic_findings(PIPELINE, as_made(max_message_bytes=str(1 << 30))) == []


def test_a_missing_topic_is_found() -> None:
    found = as_made()
    del found["shop.ddl"]

    (finding,) = topic_findings(PIPELINE, found)

    assert str(finding).startswith("topic shop.ddl: it is missing, and other topics")
    assert "makes it, with 1 partition." in str(finding)
    assert finding.fault


def test_before_the_first_start_there_are_no_topics_and_that_is_no_fault() -> None:
    (finding,) = topic_findings(PIPELINE, {"of.others": FoundTopic("of.others", 1, {})})

    assert str(finding).startswith("topics: none of pipeline shop exists yet: `shardmerge connect")
    assert not finding.fault


def test_another_number_of_partitions_is_found() -> None:
    found = as_made()
    found["s1"] = replace(found["s1"], partitions=3)

    (finding,) = topic_findings(PIPELINE, found)

    assert str(finding) == "topic s1: it has 3 partitions, not 1"
    assert finding.fault


@pytest.mark.parametrize(
    ("settings", "text", "fault"),
    [
        ({"cleanup_policy": "compact"}, "cleanup.policy is compact, not delete", True),
        ({"retention_ms": "604800000"}, "retention.ms is 604800000, not -1: records", False),
        ({"retention_bytes": "1073741824"}, "retention.bytes is 1073741824, not -1", False),
        ({"max_message_bytes": "1048588"}, "max.message.bytes is 1048588, not 33554432", False),
    ],
)
def test_a_setting_that_loses_records_is_found(
    settings: Mapping[str, str], text: str, fault: bool
) -> None:
    (finding,) = topic_findings(PIPELINE, as_made(**settings))

    assert str(finding).startswith(f"topic shop.schema-log: {text}")
    assert finding.fault == fault


@pytest.mark.parametrize("name", ["s1.app.t1", "all_rows"])
def test_a_row_topic_that_is_compacted_is_found(name: str) -> None:
    (rule,) = PIPELINE.routes
    pipeline = replace(PIPELINE, routes=(replace(rule, row_topic="all_rows"),))
    topics = {
        name: FoundTopic(name, 4, {"cleanup.policy": "delete,compact"}),
        "of.others": FoundTopic("of.others", 1, {"cleanup.policy": "compact"}),
    }

    (finding,) = topic_findings(pipeline, {**as_made(), **topics})

    assert "refuses records without a key" in str(finding)
    assert not finding.fault
