"""Clients of Kafka: their settings, and why brokers refuse them. More: tests/integration/secure."""

from __future__ import annotations

import socket
import time
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from shardmerge.connectors.access import kafka as access
from shardmerge.connectors.access.kafka import admin_client, check_admitted, client_error
from shardmerge.schemas.model.errors import StackError
from shardmerge.schemas.pipeline.kafka_client import parse_client
from shardmerge.schemas.pipeline.settings import Kafka
from tests.unit.connectors.access.certificates import answering, authority


def tls(port: int, ca: Path) -> Kafka:
    client = parse_client({"security.protocol": "ssl", "ssl.ca.location": str(ca)})
    return Kafka(f"127.0.0.1:{port}", client=client)


def test_each_client_gets_the_files_properties_and_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[tuple[str, dict[str, Any]]] = []
    for name in ("AdminClient", "Consumer", "Producer"):
        monkeypatch.setattr(access, name, lambda conf, name=name: made.append((name, conf)))
    monkeypatch.setenv("A_PASSWORD", "geheim")
    client = {"security.protocol": "sasl_plaintext", "sasl.mechanism": "PLAIN"}
    client |= {"sasl.username": "me", "sasl.password": "env:A_PASSWORD"}
    kafka = Kafka("k:1", client=parse_client(client))
    admin_client(kafka, client_id="x")
    access.consumer(kafka, {"group.id": "g"})
    access.producer(kafka, {"acks": "all"})
    common = {"bootstrap.servers": "k:1", **client, "sasl.password": "geheim"}
    assert made == [
        ("AdminClient", {**common, "client.id": "x", "log_level": 0}),
        ("Consumer", {**common, "group.id": "g"}),
        ("Producer", {**common, "acks": "all"}),
    ]


@pytest.mark.parametrize("wrong", ["unable to get local issuer", "certificate has expired"])
def test_a_certificate_that_is_not_accepted_is_told_with_the_reason(
    tmp_path: Path, wrong: str
) -> None:
    ours, other = authority(tmp_path / "ours"), authority(tmp_path / "other", "another CA")
    expired = "expired" in wrong
    with answering(ours.issue("broker", expired=expired)) as port:
        trusted = tls(port, ours.ca if expired else other.ca)
        with pytest.raises(StackError, match=f"no TLS connection: .* accepted: {wrong}") as refused:
            check_admitted(trusted)
        away = KafkaException(KafkaError(KafkaError._TRANSPORT))
        assert wrong in client_error(trusted, away, "topic t").message
    assert refused.value.message.startswith(f"Kafka at 127.0.0.1:{port}: ")
    assert "ssl.ca.location" in refused.value.hint


def with_tokens(url: str) -> Kafka:
    prefix = "sasl.oauthbearer."
    client = {"security.protocol": "sasl_plaintext", "sasl.mechanism": "OAUTHBEARER"}
    client |= {f"{prefix}token.endpoint.url": url, f"{prefix}client.id": "me"}
    return Kafka("127.0.0.1:1", client=parse_client({**client, f"{prefix}client.secret": "geheim"}))


def test_an_endpoint_that_gives_no_token_is_not_told_as_a_refusal_of_the_brokers() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]  # nothing answers there when it is closed
    url = f"http://127.0.0.1:{port}/token"
    kafka = with_tokens(url)
    with pytest.raises(StackError, match=f"the token endpoint {url} gives no token: ") as refused:
        check_admitted(kafka, timeout_s=30)
    assert refused.value.code == "SM-4112"
    assert "geheim" not in str(refused.value)


def test_an_endpoint_that_hangs_is_told_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client of librdkafka says nothing of it, and cannot be ended, for 20 seconds."""
    monkeypatch.setattr(access, "_PROBE_S", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as listener:  # it takes, and never answers
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/token"
        kafka = with_tokens(url)
        began = time.monotonic()
        with pytest.raises(StackError) as refused:
            check_admitted(kafka, timeout_s=0.5)
        told = client_error(kafka, KafkaException(KafkaError(KafkaError._TRANSPORT)), "topic t")
        assert time.monotonic() - began < 10.0
    silence = f"the token endpoint {url} gives no token: no answer within"
    assert refused.value.message == f"Kafka at 127.0.0.1:1: {silence} 0.5 s"
    assert told.message == f"Kafka at 127.0.0.1:1: topic t: {silence} 0.5 s"
    assert {refused.value.code, told.code} == {"SM-4112"}
    assert "geheim" not in str(refused.value)


def test_a_broker_that_is_away_refuses_nobody(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    gone = tls(port, authority(tmp_path).ca)
    check_admitted(gone, timeout_s=0.3)
    check_admitted(Kafka(f"127.0.0.1:{port}"), timeout_s=0.3)


def test_a_plain_client_is_told_what_secure_brokers_need() -> None:
    away = KafkaException(KafkaError(KafkaError._TRANSPORT))
    assert "[kafka.client]" in client_error(Kafka("k:1"), away).hint


def test_a_right_that_is_missing_is_told_as_one() -> None:
    denied = KafkaException(KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED))
    told = client_error(Kafka("k:1"), denied, "topic t")
    assert told.message.startswith("Kafka at k:1: topic t: ")
    assert "docs/how-to/secure.md" in told.hint
