"""What aiokafka and Faust are told, and how tokens are got."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from base64 import b64decode
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import faust
import pytest
from aiokafka.errors import KafkaConnectionError
from faust.auth import OAuthCredentials

from shardmerge.agents.runtime.credentials import faust_settings
from shardmerge.connectors.access import aiokafka_arguments as aiokafka_arguments_module
from shardmerge.connectors.access.aiokafka_arguments import TokenProvider, aiokafka_arguments
from shardmerge.schemas.pipeline.kafka_client import aiokafka_client, parse_client
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


def test_an_endpoint_without_a_token_is_an_error_after_which_aiokafka_tries_again() -> None:
    with (
        _endpoint({"error": "invalid_client"}) as (url, _),
        pytest.raises(KafkaConnectionError, match=r"SM-4112: .* gives no token") as refused,
    ):
        asyncio.run(_provider(url).token())
    assert refused.value.retriable
    assert "geheim" not in str(refused.value)


class Clock:
    """A clock that the test moves."""

    now = 1_000.0

    def __call__(self) -> float:
        return self.now


FAILURES = [
    {"error": "invalid_client"},
    {"access_token": "new", "expires_in": "soon"},
    {"access_token": "new", "expires_in": None},
    ["new"],
]


@pytest.mark.parametrize("failure", FAILURES, ids=str)
def test_a_token_is_used_to_its_end_while_no_new_one_can_be_had(
    failure: object, caplog: pytest.LogCaptureFixture
) -> None:
    clock = Clock()
    with _endpoint({"access_token": "old", "expires_in": 300}, failure) as (url, asked):
        provider = TokenProvider(aiokafka_client(_with_tokens(url).client), clock)
        found = [asyncio.run(provider.token())]
        for clock.now in (1_239.9, 1_240.0, 1_241.0, 1_299.9):
            found.append(asyncio.run(provider.token()))
        assert found == ["old"] * 5
        assert len(asked) == 3, "after a failure some seconds pass until it is asked again"
        assert caplog.text.count("token_delayed") == 2
        clock.now = 1_300.0
        for _ in range(2):  # nothing is left to be used: each connection asks
            with pytest.raises(KafkaConnectionError, match="SM-4112"):
                asyncio.run(provider.token())
        assert len(asked) == 5
    assert "geheim" not in caplog.text


def test_a_token_is_got_again_when_the_endpoint_is_back() -> None:
    clock = Clock()
    gone: dict[str, str] = {}
    answers = {"access_token": "old", "expires_in": 300}, gone, {"access_token": "new"}
    with _endpoint(*answers) as (url, _):
        provider = TokenProvider(aiokafka_client(_with_tokens(url).client), clock)
        found = []
        for clock.now in (1_000.0, 1_250.0, 1_290.0):
            found.append(asyncio.run(provider.token()))
    assert found == ["old", "old", "new"]


def test_a_secret_that_is_not_there_for_a_while_is_no_other_error_than_an_endpoint(
    tmp_path: Path,
) -> None:
    clock, secret = Clock(), tmp_path / "secret"
    secret.write_text("geheim")
    with _endpoint({"access_token": "old", "expires_in": 300}) as (url, _):
        access = _with_tokens(url, secret=f"file:{secret}")
        provider = TokenProvider(aiokafka_client(access.client), clock)
        assert asyncio.run(provider.token()) == "old"
        secret.unlink()
        clock.now = 1_250.0
        assert asyncio.run(provider.token()) == "old"
        clock.now = 1_300.0
        with pytest.raises(KafkaConnectionError, match="SM-"):
            asyncio.run(provider.token())


class HangingEndpoint:
    """An endpoint that gives the token "old" at once, and later ones when it may."""

    def __init__(self) -> None:
        self.may_answer = asyncio.Event()
        self.asked = 0

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[str]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        try:
            yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/token"
        finally:
            self.may_answer.set()
            server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        self.asked += 1
        token = "old" if self.asked == 1 else "new"
        if self.asked > 1:
            await self.may_answer.wait()
        body = json.dumps({"access_token": token, "expires_in": 300})
        writer.write(f"HTTP/1.0 200 OK\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())
        writer.close()


def test_an_endpoint_that_hangs_delays_no_connection_while_the_old_token_is_valid() -> None:
    clock, endpoint = Clock(), HangingEndpoint()

    async def play() -> None:
        async with endpoint.listening() as url:
            provider = TokenProvider(aiokafka_client(_with_tokens(url).client), clock)
            assert await provider.token() == "old"
            clock.now = 1_250.0
            began = time.monotonic()
            found = [await provider.token() for _ in range(5)]
            assert (found, endpoint.asked) == (["old"] * 5, 2)
            assert time.monotonic() - began < 3.0, "a worker is out of its group after 6 s"
            endpoint.may_answer.set()
            async with asyncio.timeout(10):
                while await provider.token() == "old":
                    await asyncio.sleep(0.01)
            assert endpoint.asked == 2

    asyncio.run(play())


def test_an_endpoint_that_hangs_is_told_and_asked_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(aiokafka_arguments_module, "_TOKEN_S", 1.0)
    clock, endpoint = Clock(), HangingEndpoint()

    async def play() -> None:
        async with endpoint.listening() as url:
            provider = TokenProvider(aiokafka_client(_with_tokens(url).client), clock)
            await provider.token()
            for clock.now, asked in ((1_250.0, 2), (1_251.0, 2), (1_256.0, 3)):
                assert await provider.token() == "old"
                assert endpoint.asked == asked
                async with asyncio.timeout(10):
                    while caplog.text.count("token_delayed") < asked - 1:
                        await asyncio.sleep(0.01)
            assert "gives no token: no answer within 1 s" in caplog.text
            clock.now = 1_300.0
            with pytest.raises(KafkaConnectionError, match=r"SM-4112: .*: no answer within 1 s"):
                await provider.token()

    asyncio.run(play())


def _with_tokens(url: str, secret: str = "geheim") -> Kafka:
    return kafka(
        security_protocol="sasl__plaintext".replace("__", "_"),
        sasl_mechanism="OAUTHBEARER",
        sasl_oauthbearer_token_endpoint_url=url,
        sasl_oauthbearer_client_id="me",
        sasl_oauthbearer_client_secret=secret,
        sasl_oauthbearer_scope="kafka",
    )


def _provider(url: str) -> Any:
    found = _with_tokens(url)
    assert isinstance(faust_settings(found)["broker_credentials"], OAuthCredentials)
    return aiokafka_arguments(found)["sasl_oauth_token_provider"]


@contextmanager
def _endpoint(*answers: object) -> Iterator[tuple[str, list[tuple[str, dict[str, list[str]]]]]]:
    """An endpoint with these answers, the last one again and again, and what it was asked."""
    asked: list[tuple[str, dict[str, list[str]]]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            user = b64decode(self.headers["Authorization"].removeprefix("Basic ")).decode()
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            asked.append((user, parse_qs(body)))
            self.send_response(200)
            self.end_headers()
            answer = answers[min(len(asked), len(answers)) - 1]
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
