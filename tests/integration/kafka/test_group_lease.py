"""The writer's lease of sinks whose target keeps no locks, on a real broker."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest

from shardmerge.connectors.access.kafka import admin_client
from shardmerge.connectors.access.lease_names import Sinks
from shardmerge.connectors.kafka.lease_group import lease_group, sinks_in_group
from shardmerge.connectors.kafka.topics_admin import create_topics
from shardmerge.local.servers.stack import LocalStack
from shardmerge.schemas.pipeline.settings import Kafka
from shardmerge.schemas.pipeline.topics import TopicSpec
from shardmerge.spark_sink.targets.iceberg.lease import SILENCE_S, GroupLease
from tests.running import holding, wait_for

TOPIC = "lease.ddl"
LONG_S = 30
HOLDER = """
import sys, time
from tests.integration.kafka.test_group_lease import lease_at, Kafka
lease = lease_at(Kafka(sys.argv[1]), sys.argv[2])
assert lease.wait(30)
print("held", flush=True)
while True:
    lease.renew()
    time.sleep(0.2)
"""


def lease_at(kafka: Kafka, pipeline: str) -> GroupLease:
    return GroupLease(kafka, lease_group(pipeline), TOPIC, lambda: 7)


@pytest.fixture(scope="module")
def kafka(stack: LocalStack) -> Kafka:
    create_topics(stack.kafka, [TopicSpec(TOPIC, 1, 1)])
    return stack.kafka


@pytest.fixture
def leases(kafka: Kafka, request: pytest.FixtureRequest) -> Iterator[Callable[[], GroupLease]]:
    """Makes leases of one pipeline, and frees them at the end."""
    made: list[GroupLease] = []

    def make() -> GroupLease:
        made.append(lease_at(kafka, request.node.name))
        return made[-1]

    yield make
    for lease in made:
        lease.close()


def test_a_standby_takes_nothing_from_the_writer_and_follows_when_it_leaves(
    kafka: Kafka, leases: Callable[[], GroupLease], request: pytest.FixtureRequest
) -> None:
    group = lease_group(request.node.name)
    admin = admin_client(kafka)
    assert sinks_in_group(kafka, admin, group) == Sinks()
    one, two = leases(), leases()
    assert one.wait(LONG_S)
    assert one.wait(0), "it has it already"
    two.connect()
    wait_for(lambda: one.renew() and not two.wait(1) and one.sinks().standbys, "standby")
    until = time.monotonic() + 3
    while time.monotonic() < until:
        assert one.renew() == 7
        assert one.wait(0)
        assert not two.wait(0)
    assert one.sinks() == sinks_in_group(kafka, admin, group) == Sinks("127.0.0.1", ("127.0.0.1",))
    one.close()
    began = time.monotonic()
    assert two.wait(LONG_S)
    assert time.monotonic() - began < SILENCE_S, "nobody waits for a sink that has left"
    assert two.sinks() == Sinks("127.0.0.1")


def test_a_sink_that_was_killed_loses_the_lease(
    kafka: Kafka, leases: Callable[[], GroupLease], request: pytest.FixtureRequest
) -> None:
    with holding(HOLDER, kafka.bootstrap_servers, request.node.name):
        waiting = leases()
        assert not waiting.wait(2)
    assert waiting.wait(LONG_S)
    assert waiting.renew() == 7
