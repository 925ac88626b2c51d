"""The client of a schema registry, against a small server."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from shardmerge.connectors.formats.avro_wire import RegistryUnreachable, UnknownSchema
from shardmerge.connectors.kafka.registry import RegistryAddress, RegistryRefuses, SchemaRegistry

SCHEMA = '{"type": "string"}'


class Server(HTTPServer):
    """Answers by path; notes what was asked, and by whom."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.answers: dict[str, tuple[int, str]] = {}
        self.asked: list[tuple[str, str | None]] = []
        self.posted: list[tuple[str, dict[str, str]]] = []


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        self.server.asked.append((self.path, self.headers.get("Authorization")))
        status, body = self.server.answers.get(self.path, (404, "{}"))
        self.send_response(status)
        self.end_headers()
        self.wfile.write(body.encode())

    def do_POST(self) -> None:
        length = int(self.headers["Content-Length"])
        self.server.posted.append((self.path, json.loads(self.rfile.read(length))))
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
        RegistryAddress(f"http://127.0.0.1:{server.server_port}/base/", user, password)
    )


def test_a_schema_is_asked_for_once_with_the_user(server: Server) -> None:
    server.answers["/base/schemas/ids/7"] = (200, json.dumps({"schema": SCHEMA}))
    asking = client(server, "me", "geheim")

    assert [asking.schema_text(7), asking.schema_text(7)] == [SCHEMA, SCHEMA]
    assert server.asked == [("/base/schemas/ids/7", "Basic bWU6Z2VoZWlt")]


@pytest.mark.parametrize(
    "answer", [(404, "{}"), (200, json.dumps({"schema": "x", "schemaType": "PROTOBUF"}))]
)
def test_a_schema_that_is_not_there_or_no_avro_is_an_error(
    server: Server, answer: tuple[int, str]
) -> None:
    server.answers["/base/schemas/ids/7"] = answer
    with pytest.raises(UnknownSchema, match="schema"):
        client(server).schema_text(7)


@pytest.mark.parametrize("answer", [(401, ""), (500, ""), (200, "<html>"), (200, "[]")])
def test_any_other_answer_can_be_asked_for_again(
    server: Server, answer: tuple[int, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    server.answers["/base/schemas/ids/7"] = answer
    asking = client(server)
    with pytest.raises(RegistryUnreachable):
        asking.schema_text(7)
    server.answers["/base/schemas/ids/7"] = (200, json.dumps({"schema": SCHEMA}))
    # It is left alone for a moment.
    with pytest.raises(RegistryUnreachable):
        asking.schema_text(7)
    assert len(server.asked) == 1
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now + 60)

    assert asking.schema_text(7) == SCHEMA


@pytest.mark.parametrize("status", [401, 403])
@pytest.mark.parametrize(("user", "told"), [("me", "the user 'me'"), ("", "without a user")])
def test_a_user_who_is_refused_is_told(server: Server, status: int, user: str, told: str) -> None:
    server.answers["/base/schemas/ids/7"] = (status, "")
    asking = client(server, user, "geheim" if user else "")

    for _ in range(2):  # the second is not asked again
        with pytest.raises(RegistryUnreachable, match=f"answers {status} to .*{told}") as error:
            asking.schema_text(7)
        assert "schema_registry_user" in error.value.hint
        assert "geheim" not in str(error.value)
    server.answers["/base/schemas/ids/7"] = (503, "")
    asking = client(server, user, "geheim" if user else "")
    with pytest.raises(RegistryUnreachable, match="answers 503") as error:
        asking.schema_text(7)
    assert "schema_registry_user" not in error.value.hint


def test_a_registry_that_is_not_there_is_unreachable() -> None:
    with pytest.raises(RegistryUnreachable, match="refused"):
        SchemaRegistry(RegistryAddress("http://127.0.0.1:9/")).schema_text(1)


def test_a_schema_that_is_there_is_not_registered_again(server: Server) -> None:
    server.answers["/base/subjects/a%2Fb"] = (200, json.dumps({"id": 7, "version": 1}))
    assert client(server).registered("a/b", SCHEMA) == 7
    assert server.posted == [("/base/subjects/a%2Fb", {"schema": SCHEMA, "schemaType": "AVRO"})]


def test_a_schema_that_is_not_there_is_registered(server: Server) -> None:
    server.answers["/base/subjects/s/versions"] = (200, '{"id": 8}')
    assert client(server).registered("s", SCHEMA) == 8
    assert [path for path, _ in server.posted] == ["/base/subjects/s", "/base/subjects/s/versions"]


@pytest.mark.parametrize("status", [409, 422])
def test_a_schema_that_the_registry_does_not_take_is_an_error(server: Server, status: int) -> None:
    server.answers["/base/subjects/s/versions"] = (status, '{"message": "not BACKWARD"}')
    with pytest.raises(RegistryRefuses, match="not BACKWARD") as error:
        client(server).registered("s", SCHEMA)
    assert "only shardmerge may register" in error.value.hint


@pytest.mark.parametrize("answer", [(403, "{}"), (200, '{"id": "8"}'), (200, "[]")])
def test_any_other_answer_to_a_schema_can_be_asked_for_again(
    server: Server, answer: tuple[int, str]
) -> None:
    server.answers["/base/subjects/s"] = answer
    with pytest.raises(RegistryUnreachable):
        client(server).registered("s", SCHEMA)


def test_the_schemas_of_a_subject_are_read_with_their_ids(server: Server) -> None:
    versions = "/base/subjects/a%2Fb/versions"
    server.answers |= {
        versions: (200, "[1, 3]"),
        f"{versions}/1": (200, json.dumps({"id": 7, "schema": SCHEMA})),
        f"{versions}/3": (200, json.dumps({"id": 9, "schema": '"int"'})),
    }
    assert client(server).schemas_of("a/b") == {7: SCHEMA, 9: '"int"'}
    assert client(server).schemas_of("unknown") == {}


@pytest.mark.parametrize("answer", [(500, "[]"), (200, "{}"), (200, "no"), (401, "[]")])
def test_a_subject_whose_schemas_are_not_told_can_be_asked_again(
    server: Server, answer: tuple[int, str]
) -> None:
    server.answers["/base/subjects/s/versions"] = answer
    with pytest.raises(RegistryUnreachable):
        client(server).schemas_of("s")
