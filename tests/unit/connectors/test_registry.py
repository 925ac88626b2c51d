"""The client of a schema registry, against a small server."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from shardmerge.connectors.avro_wire import RegistryUnreachable, UnknownSchema
from shardmerge.connectors.registry import RegistryAddress, SchemaRegistry

SCHEMA = '{"type": "string"}'


class Server(HTTPServer):
    """Answers by path; notes what was asked, and by whom."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.answers: dict[str, tuple[int, str]] = {}
        self.asked: list[tuple[str, str | None]] = []


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        self.server.asked.append((self.path, self.headers.get("Authorization")))
        status, body = self.server.answers.get(self.path, (404, "{}"))
        self.send_response(status)
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def client(server: Server, user: str = "", password: str = "") -> SchemaRegistry:
    return SchemaRegistry(
        RegistryAddress(f"http://127.0.0.1:{server.server_port}/root/", user, password)
    )


def test_a_schema_is_asked_for_once_with_the_user(server: Server) -> None:
    server.answers["/root/schemas/ids/7"] = (200, json.dumps({"schema": SCHEMA}))
    asking = client(server, "me", "geheim")

    assert [asking.schema_text(7), asking.schema_text(7)] == [SCHEMA, SCHEMA]
    assert server.asked == [("/root/schemas/ids/7", "Basic bWU6Z2VoZWlt")]


@pytest.mark.parametrize(
    "answer", [(404, "{}"), (200, json.dumps({"schema": "x", "schemaType": "PROTOBUF"}))]
)
def test_a_schema_that_is_not_there_or_no_avro_is_an_error(
    server: Server, answer: tuple[int, str]
) -> None:
    server.answers["/root/schemas/ids/7"] = answer
    with pytest.raises(UnknownSchema, match="schema"):
        client(server).schema_text(7)


@pytest.mark.parametrize("answer", [(401, ""), (500, ""), (200, "<html>"), (200, "[]")])
def test_any_other_answer_can_be_asked_for_again(
    server: Server, answer: tuple[int, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    server.answers["/root/schemas/ids/7"] = answer
    asking = client(server)
    with pytest.raises(RegistryUnreachable):
        asking.schema_text(7)
    server.answers["/root/schemas/ids/7"] = (200, json.dumps({"schema": SCHEMA}))
    # It is left alone for a moment.
    with pytest.raises(RegistryUnreachable):
        asking.schema_text(7)
    assert len(server.asked) == 1
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now + 60)

    assert asking.schema_text(7) == SCHEMA


def test_a_registry_that_is_not_there_is_unreachable() -> None:
    with pytest.raises(RegistryUnreachable, match="refused"):
        SchemaRegistry(RegistryAddress("http://127.0.0.1:9/")).schema_text(1)
