"""What aiokafka and Faust are told, and how tokens are got."""

from __future__ import annotations

import asyncio
import json
import threading
from base64 import b64decode
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import faust
import pytest
from faust.auth import OAuthCredentials

from shardmerge.agents.runtime.credentials import faust_settings
from shardmerge.connectors.access.aiokafka_arguments import aiokafka_arguments
from shardmerge.schemas.model.errors import StackError
from shardmerge.schemas.pipeline.kafka_client import parse_client
from shardmerge.schemas.pipeline.settings import Kafka
from tests.unit.connectors.access.certificates import authority


def kafka(**properties: str) -> Kafka:
    named = {key.replace("_", ".").replace("..", "_"): value for key, value in properties.items()}
    return Kafka("a:1, b:2", client=parse_client(named))


def scram(tmp_path: Path, protocol: str = "sasl__ssl") -> Kafka:
    tls = {"ssl_ca_location": str(authority(tmp_path).ca)} if "ssl" in protocol else {}
    return kafka(
        security_protocol=protocol.replace("__", "_"),
        sasl_mechanism="SCRAM-SHA-512",
        sasl_username="me",
        sasl_password="env:A_PASSWORD",
        **tls,
    )


def test_a_plain_line_needs_no_credentials() -> None:
    assert aiokafka_arguments(Kafka("a:1")) == {
        "bootstrap_servers": "a:1",
        "security_protocol": "PLAINTEXT",
        "ssl_context": None,
    }
    assert faust_settings(Kafka("a:1, b:2")) == {"broker": ["kafka://a:1", "kafka://b:2"]}


@pytest.mark.parametrize("protocol", ["sasl__ssl", "sasl__plaintext"])
def test_a_user_has_a_password_with_and_without_tls(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, protocol: str
) -> None:
    monkeypatch.setenv("A_PASSWORD", "geheim")
    arguments = aiokafka_arguments(scram(tmp_path, protocol))
    assert arguments["security_protocol"] == protocol.replace("__", "_").upper()
    assert arguments["sasl_mechanism"] == "SCRAM-SHA-512"
    assert (arguments["sasl_plain_username"], arguments["sasl_plain_password"]) == ("me", "geheim")
    assert (arguments["ssl_context"] is not None) == (protocol == "sasl__ssl")
    credentials = faust_settings(scram(tmp_path, protocol))["broker_credentials"]
    assert isinstance(credentials, faust.SASLCredentials)
    assert credentials.protocol.value == arguments["security_protocol"]
    assert "geheim" not in repr(credentials)


def test_a_certificate_is_shown(tmp_path: Path) -> None:
    ours = authority(tmp_path)
    us = ours.issue("us")
    found = faust_settings(
        kafka(
            security_protocol="ssl",
            ssl_ca_location=str(ours.ca),
            ssl_certificate_location=str(us.certificate),
            ssl_key_location=str(us.key),
            ssl_endpoint_identification_algorithm="none",
            connections_max_idle_ms="60000",
        )
    )
    assert isinstance(found["broker_credentials"], faust.SSLCredentials)
    assert not found["broker_credentials"].context.check_hostname
    assert found["consumer_connections_max_idle_ms"] == 60_000
    assert found["producer_connections_max_idle_ms"] == 60_000


def test_a_token_is_asked_for_once_in_its_life() -> None:
    with _endpoint({"access_token": "t", "expires_in": 300}) as (url, asked):
        provider = _provider(url)
        assert [asyncio.run(provider.token()) for _ in range(2)] == ["t", "t"]
    assert asked == [
        ("me:geheim", {"grant_type": ["client_credentials"], "scope": ["kafka"]}),
    ]


def test_an_endpoint_without_a_token_is_an_error() -> None:
    with (
        _endpoint({"error": "invalid_client"}) as (url, _),
        pytest.raises(StackError, match="gives no token") as refused,
    ):
        asyncio.run(_provider(url).token())
    assert "geheim" not in str(refused.value)


def _provider(url: str) -> Any:
    found = kafka(
        security_protocol="sasl__plaintext".replace("__", "_"),
        sasl_mechanism="OAUTHBEARER",
        sasl_oauthbearer_token_endpoint_url=url,
        sasl_oauthbearer_client_id="me",
        sasl_oauthbearer_client_secret="geheim",
        sasl_oauthbearer_scope="kafka",
    )
    assert isinstance(faust_settings(found)["broker_credentials"], OAuthCredentials)
    return aiokafka_arguments(found)["sasl_oauth_token_provider"]


@contextmanager
def _endpoint(answer: object) -> Iterator[tuple[str, list[tuple[str, dict[str, list[str]]]]]]:
    asked: list[tuple[str, dict[str, list[str]]]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            user = b64decode(self.headers["Authorization"].removeprefix("Basic ")).decode()
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            asked.append((user, parse_qs(body)))
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps(answer).encode())

        def log_message(self, format: str, *args: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/token", asked
        finally:
            server.shutdown()
            thread.join(timeout=5)
