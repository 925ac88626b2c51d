"""Clients of confluent-kafka: the only place where they are made, and their errors explained."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient

from shardmerge.schemas.model.errors import StackError
from shardmerge.schemas.pipeline.kafka_client import aiokafka_client, librdkafka_client
from shardmerge.schemas.pipeline.settings import Kafka

from .secrets import resolved
from .tls_context import broker_context, handshake_fault
from .token_endpoint import no_token, silence_of

_NOT_ADMITTED = frozenset(
    {
        KafkaError._AUTHENTICATION,
        KafkaError._SSL,
        KafkaError.SASL_AUTHENTICATION_FAILED,
        KafkaError.UNSUPPORTED_SASL_MECHANISM,
        KafkaError.ILLEGAL_SASL_STATE,
    }
)
_AWAY = frozenset({KafkaError._TRANSPORT, KafkaError._TIMED_OUT, KafkaError._ALL_BROKERS_DOWN})
"""What a client says in the end, whatever the reason is that it reaches no broker."""
_DENIED = frozenset(
    {
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.GROUP_AUTHORIZATION_FAILED,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
        KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    }
)
_PROBE_S = 5.0
_UNGRANTED = "Failed to acquire SASL OAUTHBEARER token: "
"""What librdkafka says before any broker is asked."""


def admin_client(kafka: Kafka, **settings: Any) -> AdminClient:
    """A client that makes, describes and deletes topics, and logs nothing: its calls raise.

    ``settings`` are librdkafka's, with ``_`` for dots.
    """
    named = {name.replace("_", "."): value for name, value in settings.items()}
    return AdminClient(_settings(kafka, {"log_level": 0, **named}))


def consumer(kafka: Kafka, settings: Mapping[str, Any]) -> Consumer:
    """A consumer with librdkafka's ``settings``."""
    return Consumer(_settings(kafka, settings))


def assigned_consumer(kafka: Kafka, group: str, settings: Mapping[str, Any]) -> Consumer:
    """A consumer whose partitions and offsets the caller assigns, and which keeps none in Kafka.

    It reads committed records only. An offset that Kafka has no more is an error: to read on
    elsewhere would skip records.

    Args:
        kafka: Where it reads.
        group: The client asks for a group and never joins it; the user must have READ on it.
        settings: Further settings of librdkafka.
    """
    own = {
        "group.id": group,
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "isolation.level": "read_committed",
        "auto.offset.reset": "error",
    }
    return consumer(kafka, {**own, **settings})


def producer(kafka: Kafka, settings: Mapping[str, Any]) -> Producer:
    """A producer with librdkafka's ``settings``."""
    return Producer(_settings(kafka, settings))


def _settings(kafka: Kafka, settings: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "bootstrap.servers": kafka.bootstrap_servers,
        **librdkafka_client(kafka.client, resolved),
        **settings,
    }


def check_admitted(kafka: Kafka, timeout_s: float = _PROBE_S) -> None:
    """Raise ``StackError`` when a broker refuses the connection or the user.

    A client of Kafka tries for ever, and says in the end only that it reached no broker. So a
    process asks once, when it starts. A broker that is away raises nothing: the process waits.
    """
    if refusal := _refusal(kafka, timeout_s):
        raise refusal


def client_error(kafka: Kafka, error: KafkaException, what: str = "") -> StackError:
    """The error of a client as one for people, with the reason if brokers do not admit us.

    Args:
        kafka: Whose brokers.
        error: What a client raised.
        what: What was asked of them, if that matters.
    """
    fault = error.args[0]
    where = f"Kafka at {kafka.bootstrap_servers}: {what + ': ' if what else ''}"
    if fault.code() in _AWAY and (refusal := _refusal(kafka, _PROBE_S, what)):
        return refusal
    if fault.code() in _DENIED:
        return StackError(
            where + fault.str(),
            hint="grant it to the user: docs/how-to/secure.md lists the ACLs",
            code="SM-4111",
        )
    hint = "see whether the brokers run and whether the pipeline file names them"
    if not kafka.client:
        hint += "; brokers that want TLS or a user need [kafka.client]"
    return StackError(where + fault.str(), hint=hint, code="SM-4101")


def _refusal(kafka: Kafka, timeout_s: float, what: str = "") -> StackError | None:
    """Why no broker admits us; None when one does, or when none gives a reason."""
    if not kafka.client:
        return None
    where = f"Kafka at {kafka.bootstrap_servers}: {what + ': ' if what else ''}"
    oauth = aiokafka_client(kafka.client).oauth
    if oauth and (silence := silence_of(oauth, min(timeout_s, _PROBE_S))):
        return StackError(where + silence.message, hint=silence.hint, code=silence.code)
    heard: list[KafkaError] = []
    client = AdminClient(_settings(kafka, {"error_cb": heard.append, "log_level": 0}))
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        client.poll(0.1)
        refused = [error for error in heard if error.code() in _NOT_ADMITTED]
        if refused:
            text, hint, code = _refusal_text(kafka, refused[0])
            return StackError(where + text, hint=hint, code=code)
        try:
            client.list_topics(timeout=0.3)
        except KafkaException as error:
            if error.args[0].code() not in _AWAY:
                heard.append(error.args[0])
        else:
            return None
    return None


def _refusal_text(kafka: Kafka, error: KafkaError) -> tuple[str, str, str]:
    """What was seen, what to do, and the code."""
    text = error.str()
    if error.code() == KafkaError._SSL:
        return (
            f"no TLS connection: {_tls_reason(kafka) or text}",
            "is ssl.ca.location the CA of the brokers' certificates, is none of them expired, and "
            "do they name the host?",
            "SM-4110",
        )
    user = "sasl.username and sasl.password"
    if oauth := aiokafka_client(kafka.client).oauth:
        user = "sasl.oauthbearer.client.id and client.secret"
        if text.startswith(_UNGRANTED):
            url = resolved(dict(oauth)["token.endpoint.url"])
            ungranted = no_token(url, text.removeprefix(_UNGRANTED))
            return ungranted.message, ungranted.hint, ungranted.code
    return (
        f"the brokers do not accept the user: {text}",
        f"are sasl.mechanism, {user} of [kafka.client] right?",
        "SM-4110",
    )


def _tls_reason(kafka: Kafka) -> str:
    """Why TLS fails, by a connection of Python's; librdkafka only says that it cannot verify."""
    context = broker_context(aiokafka_client(kafka.client))
    host, _, port = kafka.bootstrap_servers.split(",")[0].strip().rpartition(":")
    if context is None or not port.isdecimal():
        return ""
    return handshake_fault(host.strip("[]"), int(port), context, _PROBE_S)
