"""Topics are made once, and an existing one that would break the order is refused."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from shardmerge.connectors.kafka.topics_admin import create_topics, describe_topics
from shardmerge.local.servers.processes import require_free_port
from shardmerge.local.servers.stack import LocalStack, Ports
from shardmerge.schemas.model.errors import StackError
from shardmerge.schemas.pipeline.settings import Kafka
from shardmerge.schemas.pipeline.topics import TopicSpec

LOG = TopicSpec("admin.log", 3, 1, {"cleanup.policy": "delete", "retention.ms": "-1"})
STATE = TopicSpec("admin.state", 1, 1, {"cleanup.policy": "compact"})


def test_topics_are_made_once(stack: LocalStack) -> None:
    assert create_topics(stack.kafka, [LOG, STATE]) == (LOG.name, STATE.name)
    assert create_topics(stack.kafka, [LOG, STATE]) == ()
    assert create_topics(stack.kafka, []) == ()


def test_topics_are_told_with_the_settings_in_force(stack: LocalStack) -> None:
    create_topics(stack.kafka, [LOG])

    found = describe_topics(stack.kafka)

    assert found[LOG.name].partitions == 3
    assert found[LOG.name].settings["retention.ms"] == "-1"
    assert found[LOG.name].settings["max.message.bytes"].isdigit()
    assert not any(name.startswith("__") for name in found)


def test_two_processes_may_make_the_same_topics_at_once(stack: LocalStack) -> None:
    specs = [TopicSpec(f"admin.twice{i}", 1, 1, {"cleanup.policy": "compact"}) for i in range(8)]

    with ThreadPoolExecutor(2) as pool:
        made = list(pool.map(lambda _: create_topics(stack.kafka, specs), range(2)))

    assert sorted(made[0] + made[1]) == [spec.name for spec in specs]


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        (TopicSpec("admin.differs", 2, 1), "has 1 partitions instead of 2"),
        (
            TopicSpec("admin.differs", 1, 1, {"cleanup.policy": "delete"}),
            r"has cleanup\.policy=compact, not delete",
        ),
    ],
)
def test_an_existing_topic_that_differs_is_refused(
    stack: LocalStack, wanted: TopicSpec, words: str
) -> None:
    spec = TopicSpec("admin.differs", 1, 1, {"cleanup.policy": "compact"})
    create_topics(stack.kafka, [spec])

    with pytest.raises(StackError, match=words):
        create_topics(stack.kafka, [wanted])


def test_a_topic_that_kafka_refuses_is_named(stack: LocalStack) -> None:
    with pytest.raises(StackError, match=r"admin\.many"):
        create_topics(stack.kafka, [TopicSpec("admin.many", 1, 3)])


def test_a_broker_that_cannot_be_reached_is_named() -> None:
    port = Ports.free().kafka
    require_free_port(port, "nobody")

    with pytest.raises(StackError, match=f"Kafka at 127.0.0.1:{port}"):
        create_topics(Kafka(f"127.0.0.1:{port}"), [LOG], timeout_s=1)
    with pytest.raises(StackError, match=f"Kafka at 127.0.0.1:{port}"):
        describe_topics(Kafka(f"127.0.0.1:{port}"), timeout_s=1)
