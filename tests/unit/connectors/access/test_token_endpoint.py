"""What a token endpoint is asked, and when it counts as silent."""

from __future__ import annotations

import socket
import threading
from base64 import b64decode

import pytest

from shardmerge.connectors.access.token_endpoint import silence_of, token_request
from shardmerge.schemas.model.errors import ConfigError
from shardmerge.schemas.pipeline.connector_properties import Properties


def oauth(port: int, **more: str) -> Properties:
    url = f"http://127.0.0.1:{port}/token"
    found = {"token.endpoint.url": url, "client.id": "me", "client.secret": "env:A_SECRET", **more}
    return tuple(sorted(found.items()))


@pytest.fixture(autouse=True)
def secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_SECRET", "geheim")


def test_it_is_asked_by_the_grant_of_client_credentials() -> None:
    asked = token_request(oauth(7, scope="kafka"))
    assert asked.url == "http://127.0.0.1:7/token"
    assert asked.form == {"grant_type": "client_credentials", "scope": "kafka"}
    (kind, pair) = asked.headers["Authorization"].split()
    assert (kind, b64decode(pair)) == ("Basic", b"me:geheim")
    assert "scope" not in token_request(oauth(7)).form


def test_a_secret_that_is_not_there_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("A_SECRET")
    with pytest.raises(ConfigError, match="A_SECRET"):
        silence_of(oauth(7), 0.3)


def test_an_endpoint_that_takes_a_connection_and_says_nothing_is_silent() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        silence = silence_of(oauth(listener.getsockname()[1]), 0.3)
    assert silence is not None
    assert (silence.code, "no answer within 0.3 s" in silence.message) == ("SM-4112", True)
    assert "geheim" not in str(silence)


@pytest.mark.parametrize("said", [b"HTTP/1.0 401 Unauthorized\r\n\r\n", b"what?\r\n\r\n", b""])
def test_an_endpoint_that_refuses_is_not_silent(said: bytes) -> None:
    """Nor is one that speaks another language, or hangs up: librdkafka tells of them at once."""

    def answer(listener: socket.socket) -> None:
        connection, _ = listener.accept()
        with connection:
            connection.recv(65_536)
            connection.sendall(said)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=answer, args=(listener,), daemon=True)
        thread.start()
        assert silence_of(oauth(listener.getsockname()[1]), 10.0) is None
        thread.join(10.0)


def test_an_endpoint_that_is_down_is_not_silent() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    assert silence_of(oauth(port), 10.0) is None
