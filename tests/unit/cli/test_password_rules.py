"""Passwords that connectors would get as they are."""

from __future__ import annotations

from dataclasses import replace

from shardmerge.cli.checks.password_rules import password_findings
from shardmerge.schemas.pipeline.kafka_client import parse_client
from shardmerge.schemas.pipeline.settings import Connect, Kafka, Pipeline, Source, Target
from shardmerge.schemas.pipeline.tls import Tls

OPEN = Pipeline(
    "p",
    Kafka(
        "k:1",
        row_format="avro",
        schema_registry="http://r",
        schema_registry_password="geheim",
        client=parse_client(
            {
                "security.protocol": "sasl_plaintext",
                "sasl.mechanism": "PLAIN",
                "sasl.username": "me",
                "sasl.password": "geheim",
            }
        ),
    ),
    Connect("http://c", connector=(("driver.x.password", "geheim"), ("poll.interval.ms", "1"))),
    (
        Source("s1", "h", 1, "u", "geheim", 1, tls=Tls(truststore_password="geheim")),
        Source("s2", "h", 1, "u", "env:PASSWORD", 2),
        Source("s3", "h", 1, "u", "geheim", 3, connect_password="${vault:db:s3}"),
    ),
    (),
    Target("h", 1, "u", "geheim"),
)


def test_each_password_that_would_lie_readable_is_a_warning() -> None:
    found = password_findings(OPEN)
    assert not any(finding.fault for finding in found)
    assert [(f.where, f.text.partition(" ")[0]) for f in found] == [
        ("source s1", "password"),
        ("source s1", "truststore_password"),
        ("[kafka]", "schema_registry_password"),
        ("[kafka.client]", "sasl.password"),
        ("[connect.connector]", "driver.x.password"),
    ]


def test_no_warning_holds_a_password() -> None:
    assert "geheim" not in str(password_findings(OPEN))


def test_what_connect_looks_up_is_none() -> None:
    looked_up = Source("s4", "h", 1, "u", "env:P", 4, connector=(("a.password", "${env:P}"),))
    hidden = replace(
        OPEN,
        kafka=Kafka("k:1"),
        connect=Connect("http://c"),
        sources=(*OPEN.sources[1:], looked_up),
    )
    assert password_findings(hidden) == []
