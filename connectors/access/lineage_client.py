"""The client of a lineage server, and what it says when the server does not take an event.

It needs the package openlineage-python, which the extra ``lineage`` brings.
"""

from __future__ import annotations

from typing import Any

import requests
from confluent_kafka import KafkaError, KafkaException
from openlineage.client import OpenLineageClient
from openlineage.client.serde import Serde
from openlineage.client.transport.file import FileConfig, FileTransport
from openlineage.client.transport.http import (
    HttpConfig,
    HttpSslContextConfig,
    HttpTransport,
    TokenProvider,
)
from openlineage.client.transport.transport import Config, Transport

from shardmerge.schemas.pipeline.lineage.open_lineage import OpenLineage
from shardmerge.schemas.pipeline.settings import Kafka

from .http import session_to
from .kafka import client_error, producer
from .secrets import resolved

_TIMEOUT_S = 5.0
_REFUSALS = frozenset({400, 413, 422})
"""Answers of HTTP that are about the event: another try would get the same."""


def lineage_client(settings: OpenLineage, kafka: Kafka) -> OpenLineageClient:
    """A client for the transport that the pipeline file names; ``off`` is none of them.

    Args:
        settings: The table ``[lineage]``.
        kafka: The brokers of the transport ``kafka``.
    """
    transport: Transport
    match settings.transport:
        case "http":
            transport = _http(settings)
        case "kafka":
            transport = _KafkaTransport(kafka, settings.topic)
        case _:
            transport = FileTransport(FileConfig(settings.path, append=True))
    return OpenLineageClient(transport=transport)


def refusal(error: Exception) -> str:
    """Why an event is refused for good; "" when it may be sent again."""
    if isinstance(error, requests.HTTPError) and error.response is not None:
        answer = error.response
        return f"{error}: {answer.text[:500]}" if answer.status_code in _REFUSALS else ""
    if isinstance(error, KafkaException) and error.args[0].code() == KafkaError.MSG_SIZE_TOO_LARGE:
        return str(error)
    return ""


def _http(settings: OpenLineage) -> HttpTransport:
    config = HttpConfig(
        # Without the slash a path in the address would be replaced.
        settings.url.rstrip("/") + "/",
        settings.endpoint.lstrip("/"),
        _TIMEOUT_S,
        auth=_Key(settings.api_key),
        ssl_context=HttpSslContextConfig(ca_cert_path=settings.ca) if settings.ca else None,
        session=session_to(settings.url),
        # Who sends repeats by himself.
        retry={"total": 0},
    )
    return HttpTransport(config)


class _Key(TokenProvider):
    """Looks the key up for each event, so that one that was changed counts."""

    def __init__(self, text: str) -> None:
        super().__init__({})
        self._text = text

    def get_bearer(self) -> str | None:
        return f"Bearer {resolved(self._text)}" if self._text else None


class _KafkaTransport(Transport):
    """Writes to Kafka as the pipeline's other clients do.

    The library's own transport logs a failed delivery and goes on, so nobody could send the event
    again.
    """

    kind = "kafka"
    config_class = Config

    def __init__(self, kafka: Kafka, topic: str) -> None:
        self._kafka, self._topic = kafka, topic
        limits = {"message.timeout.ms": int(_TIMEOUT_S * 1000), "enable.idempotence": True}
        self._producer = producer(kafka, limits)

    def emit(self, event: Any) -> None:
        """Write an event, under the key that keeps the events of a job in their order."""
        answers: list[KafkaError | None] = []
        parent = event.run.facets.get("parent")
        job = event.job if parent is None else parent.job
        value = Serde.to_json(event).encode()
        key = f"run:{job.namespace}/{job.name}"
        self._producer.produce(
            self._topic, value, key, on_delivery=lambda error, _: answers.append(error)
        )
        self._producer.flush(2 * _TIMEOUT_S)
        if not answers:
            # The client can take longer than its own limit; the event is written by another try.
            self._producer.purge()
            self._producer.flush(_TIMEOUT_S)
        failed = KafkaException(answers[0] if answers else KafkaError(KafkaError._TIMED_OUT))
        if failed.args[0] is None:
            return
        if refusal(failed):
            raise failed
        raise client_error(self._kafka, failed, f"topic {self._topic}")

    def close(self, timeout: float = -1) -> bool:
        """Nothing is left to be written."""
        left: int = self._producer.flush(max(timeout, 0))
        return left == 0
