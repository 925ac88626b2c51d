"""A real registry that wants a user: what the connectors' converter and our client make of it."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import replace

import pytest
from confluent_kafka import Producer

from shardmerge.connectors.connect.connect_rest import ConnectRest
from shardmerge.connectors.debezium.source_config import connector_config
from shardmerge.connectors.deploy import deploy_connectors
from shardmerge.connectors.formats.avro_wire import JsonOfAvro, RegistryUnreachable
from shardmerge.connectors.kafka.record_formats import record_format
from shardmerge.connectors.kafka.registry import RegistryAddress, SchemaRegistry
from shardmerge.connectors.kafka.topic_reader import TopicReader
from shardmerge.connectors.kafka.topics_admin import create_topics
from shardmerge.local.servers.stack import LocalStack
from shardmerge.schemas.pipeline import topics
from shardmerge.schemas.pipeline.settings import Kafka
from tests.integration.registry_proxy import USER, RegistryProxy, registry_proxy
from tests.unit.schemas.records.test_codec_plain import RECORDED

from .conftest import Play

PASSWORD = "pa:ss word"
NOBODY = ("", "")
WRONG = (USER, "another")


@pytest.fixture
def proxy(stack: LocalStack) -> Iterator[RegistryProxy]:
    with registry_proxy(stack.registry_url, PASSWORD) as proxy:
        yield proxy


def asking(kafka: Kafka, proxy: RegistryProxy, user: str, password: str) -> Kafka:
    """Both formats with the registry behind the proxy."""
    return replace(
        kafka, row_format="avro", record_format="avro-registry", avro_converter="apicurio",
        schema_registry=proxy.url, schema_registry_user=user, schema_registry_password=password,
    )  # fmt: skip


@pytest.mark.parametrize("user", [NOBODY, WRONG], ids=["nobody", "wrong"])
def test_our_own_records_need_the_registrys_user(
    play: Play, proxy: RegistryProxy, user: tuple[str, str]
) -> None:
    kafka = play.pipeline.kafka
    right = record_format(asking(kafka, proxy, USER, PASSWORD))
    with pytest.raises(RegistryUnreachable, match="answers 401 to") as refused:
        record_format(asking(kafka, proxy, *user))
    assert "schema_registry_user" in refused.value.hint

    topic = topics.ddl(play.pipeline)
    create_topics(Kafka(kafka.bootstrap_servers), [topic])
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
    producer.produce(topic.name, right.write(RECORDED[0]), b"k")
    producer.flush()
    with TopicReader(Kafka(kafka.bootstrap_servers)) as reader:
        [extent] = reader.extents([topic.name])
        [stored] = reader.records(extent)
    value = stored.value or b""
    assert value[:1] == b"\0"
    assert right.read(value) == RECORDED[0]
    # Who has the registry's user needs nothing else of us; who has not cannot read it.
    address = RegistryAddress(proxy.url, USER, PASSWORD)
    assert json.loads(JsonOfAvro(SchemaRegistry(address).schema_text)(value) or b"")
    address = RegistryAddress(proxy.url, *user)
    with pytest.raises(RegistryUnreachable, match="answers 401 to"):
        JsonOfAvro(SchemaRegistry(address).schema_text)(value)


def test_a_connector_without_the_registrys_user_stands_and_loses_nothing(
    play: Play, rest: ConnectRest, proxy: RegistryProxy
) -> None:
    kafka = play.pipeline.kafka
    right = replace(play.pipeline, kafka=asking(kafka, proxy, USER, PASSWORD))
    [source] = play.pipeline.sources
    with play.sql() as run:
        run("CREATE TABLE t (id INT PRIMARY KEY)")
        (name,) = deploy_connectors(right, rest)
        for number, user in enumerate((NOBODY, WRONG)):
            run(f"INSERT INTO t VALUES ({2 * number})")
            await_ids(play, proxy, list(range(2 * number + 1)))

            wrong = replace(right, kafka=asking(kafka, proxy, *user))
            rest.create_or_update(name, connector_config(wrong, source))
            run(f"INSERT INTO t VALUES ({2 * number + 1})")
            deadline = time.monotonic() + 120  # a heartbeat is sent each 30 s
            while True:
                status = rest.status(name)
                if status is not None and status.is_failed:
                    break
                assert time.monotonic() < deadline, "it does not need the user"
                time.sleep(0.1)
            assert "NotAuthorizedException" in status.reason()

            # Right behind the failure, which Connect still tells of for a moment.
            deploy_connectors(right, rest)
        await_ids(play, proxy, [0, 1, 2, 3])


def await_ids(play: Play, proxy: RegistryProxy, expected: list[int]) -> None:
    """Wait for the rows, read with the registry's user."""
    read = JsonOfAvro(SchemaRegistry(RegistryAddress(proxy.url, USER, PASSWORD)).schema_text)
    deadline = time.monotonic() + 60
    found: list[int] = []
    with TopicReader(play.pipeline.kafka) as reader:
        while found != expected:
            assert time.monotonic() < deadline, found
            found = sorted(
                json.loads(read(record.value) or b"")["after"]["id"]
                for extent in reader.extents([play.topic("t")])
                for record in reader.records(extent)
            )
            time.sleep(0.1)
