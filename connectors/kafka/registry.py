"""A schema registry's client: Confluent's REST interface, which Apicurio has too.

A schema never changes under its id, so each is asked for once per process and kept.
"""

from __future__ import annotations

import json
import threading
import time
from base64 import b64encode
from dataclasses import dataclass, field
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any
from urllib.parse import quote, urlsplit

from shardmerge.connectors.access.secrets import resolved
from shardmerge.connectors.access.tls_context import client_context, tls_fault
from shardmerge.connectors.formats.avro_wire import RegistryUnreachable, UnknownSchema
from shardmerge.schemas.model.errors import StackError
from shardmerge.schemas.pipeline.settings import Kafka
from shardmerge.schemas.pipeline.tls import Tls

_JSON = "application/vnd.schemaregistry.v1+json"
_TIMEOUT_S = 5.0
_REFUSED = (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN)
_AWAY = "see whether it runs; what waits for it goes on by itself"
_NO_ACCESS = (
    "are schema_registry_user and schema_registry_password of the pipeline file right, and may the "
    "user read schemas and register them? What waits goes on by itself when the registry lets it "
    "in; after a change of the file, deploy the connectors and start agents and sink again"
)
_REST_S = 1.0
"""How long a registry that did not answer is left alone: records come faster than it fails."""


class RegistryRefuses(StackError):
    """The registry does not take a schema."""


@dataclass(frozen=True, slots=True)
class RegistryAddress:
    """Where the registry is; picklable.

    Attributes:
        url: Of the interface's root, such as ``http://registry:8081``.
        user, password: Of HTTP's basic authentication; no user: none. The password may be a
            reference, see ``secrets``.
        nulls_are_lost: The converter that writes rows puts a column's default where the row has
            NULL (measured, Apicurio's 2.6.13; it has no setting for that, nor has 3.2.5).
        tls: Its certificates.
    """

    url: str
    user: str = ""
    password: str = ""
    nulls_are_lost: bool = False
    tls: Tls = field(default_factory=Tls)

    @classmethod
    def of(cls, kafka: Kafka) -> RegistryAddress | None:
        """The address for the connectors' records; None when their format needs none."""
        return cls.of_own(kafka) if kafka.row_format == "avro" else None

    @classmethod
    def of_own(cls, kafka: Kafka) -> RegistryAddress | None:
        """The address for our own records; None when the pipeline file names none."""
        if not kafka.schema_registry:
            return None
        return cls(
            kafka.schema_registry,
            kafka.schema_registry_user,
            kafka.schema_registry_password,
            nulls_are_lost=kafka.avro_converter == "apicurio",
            tls=kafka.schema_registry_tls,
        )


_NO_REGISTRY = "its answer is not that of a schema registry"


class SchemaRegistry:
    """A client of one registry. Threads may ask for schemas side by side, not register them."""

    def __init__(self, address: RegistryAddress) -> None:
        parts = urlsplit(address.url)
        self._connection = HTTPConnection(parts.hostname or "", parts.port, timeout=_TIMEOUT_S)
        if parts.scheme == "https":
            self._connection = HTTPSConnection(
                parts.hostname or "",
                parts.port,
                timeout=_TIMEOUT_S,
                context=client_context(address.tls),
            )
        self._url = address.url.rstrip("/")
        self._path = parts.path.rstrip("/")
        self._headers = {"Accept": f"{_JSON}, application/json"}
        if address.user:
            pair = b64encode(f"{address.user}:{resolved(address.password)}".encode()).decode()
            self._headers["Authorization"] = f"Basic {pair}"
        self._known: dict[int, str] = {}
        self._asking = threading.Lock()
        self._user = address.user
        self._failure = self._hint = ""
        self._rests_until = 0.0

    def schema_text(self, number: int) -> str:
        """The JSON of the schema of that id.

        Raises:
            UnknownSchema: The registry has none, or not in Avro.
            RegistryUnreachable: It does not answer, refuses the user, or fails.
        """
        with self._asking:
            text = self._known.get(number)
            if text is None:
                text = self._known[number] = self._ask(number)
            return text

    def registered(self, subject: str, text: str) -> int:
        """The id of a schema, which is registered under a subject if it is not there yet.

        A user who may only read gets the id of a schema that others have registered.

        Raises:
            RegistryRefuses: It does not take the schema: the subject has others that do not agree.
            RegistryUnreachable: It does not answer, refuses the user, or fails.
        """
        path = f"/subjects/{quote(subject, safe='')}"
        request = json.dumps({"schema": text, "schemaType": "AVRO"})
        status, body = self._answer("POST", path, request)
        if status == HTTPStatus.NOT_FOUND:
            status, body = self._answer("POST", f"{path}/versions", request)
        if status in (HTTPStatus.CONFLICT, HTTPStatus.UNPROCESSABLE_ENTITY):
            raise RegistryRefuses(
                f"the schema registry at {self._url} does not take the schema of {subject}: "
                f"{body.decode(errors='replace')[:500]}",
                hint="only shardmerge may register schemas under this subject, and its "
                "compatibility must be NONE or FORWARD (new versions add fields)",
                code="SM-4202",
            )
        number: int = self._field(status, body, "id", int)
        return number

    def schemas_of(self, subject: str) -> dict[int, str]:
        """Id → JSON of every schema that is registered under a subject; empty without one.

        Raises:
            RegistryUnreachable: It does not answer, refuses the user, or fails.
        """
        path = f"/subjects/{quote(subject, safe='')}/versions"
        status, body = self._answer("GET", path)
        if status == HTTPStatus.NOT_FOUND:
            return {}
        versions = self._read(status, body)
        if not isinstance(versions, list):
            raise self._failed(_NO_REGISTRY)
        found = {}
        for version in versions:
            answer = self._answer("GET", f"{path}/{version}")
            found[self._field(*answer, "id", int)] = self._field(*answer, "schema", str)
        return found

    def _ask(self, number: int) -> str:
        status, body = self._answer("GET", f"/schemas/ids/{number}")
        if status == HTTPStatus.NOT_FOUND:
            raise UnknownSchema(
                f"the schema registry at {self._url} has no schema {number}",
                hint="schema_registry must name the registry that the connectors use, with all of "
                "its schemas",
                code="SM-2123",
            )
        kind = self._field(status, body, "schemaType", str, "AVRO")
        text: str = self._field(status, body, "schema", str)
        if kind != "AVRO":
            raise UnknownSchema(
                f"schema {number} of the registry at {self._url} is of type {kind}, not AVRO",
                hint="the connectors must write with an Avro converter",
                code="SM-2123",
            )
        return text

    def _answer(self, method: str, path: str, body: str | None = None) -> tuple[int, bytes]:
        """Status and body. A connection for each question: there are few of them."""
        if time.monotonic() < self._rests_until:
            raise self._unreachable()
        headers = self._headers | ({"Content-Type": _JSON} if body is not None else {})
        try:
            self._connection.request(method, self._path + path, body, headers)
            response = self._connection.getresponse()
            return response.status, response.read()
        except (OSError, HTTPException) as error:
            raise self._failed(tls_fault(error) or str(error) or type(error).__name__) from error
        finally:
            self._connection.close()

    def _field(self, status: int, body: bytes, name: str, kind: type, default: Any = None) -> Any:
        said = self._read(status, body)
        value = said.get(name, default) if isinstance(said, dict) else None
        if not isinstance(value, kind):
            raise self._failed(_NO_REGISTRY)
        return value

    def _read(self, status: int, body: bytes) -> Any:
        """The JSON of an answer; None if it is none."""
        if status in _REFUSED:
            who = f"the user {self._user!r}" if self._user else "a request without a user"
            raise self._failed(f"it answers {status} to {who}", _NO_ACCESS)
        if status != HTTPStatus.OK:
            raise self._failed(f"it answers {status}")
        try:
            return json.loads(body)
        except ValueError:
            return None

    def _failed(self, why: str, hint: str = _AWAY) -> RegistryUnreachable:
        """It is left alone for a while."""
        self._rests_until = time.monotonic() + _REST_S
        self._failure, self._hint = why, hint
        return self._unreachable()

    def _unreachable(self) -> RegistryUnreachable:
        return RegistryUnreachable(
            f"the schema registry at {self._url} does not give schemas: {self._failure}",
            hint=self._hint,
            code="SM-4201",
        )
