"""Arguments of aiokafka's clients, as the agents have them: TLS, user, tokens."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable
from typing import Any

import aiohttp
from aiokafka.abc import AbstractTokenProvider
from aiokafka.errors import KafkaConnectionError

from shardmerge.connectors.clock import boot_s
from shardmerge.connectors.event_log import logger
from shardmerge.schemas.model.errors import ShardMergeError, StackError
from shardmerge.schemas.pipeline.kafka_client import AiokafkaClient, aiokafka_client
from shardmerge.schemas.pipeline.settings import Kafka

from .secrets import resolved
from .tls_context import broker_context

log = logger(__name__)

_TOKEN_TIMEOUT = aiohttp.ClientTimeout(total=10.0)
_RENEWED_AT = 0.8
"""Part of a token's life after which a new one is asked for."""
_PAUSE_S = 5.0
"""Until a new token is asked for again, while the old one is valid."""


def aiokafka_arguments(kafka: Kafka) -> dict[str, Any]:
    """What a client of aiokafka needs to connect: servers, protocol, TLS, user.

    Raises:
        ConfigError: A file or a password is not where the pipeline file says.
    """
    client = aiokafka_client(kafka.client)
    found: dict[str, Any] = {
        "bootstrap_servers": kafka.bootstrap_servers,
        "security_protocol": client.protocol,
        "ssl_context": broker_context(client),
        **dict(client.times),
    }
    if client.oauth:
        found |= {
            "sasl_mechanism": client.mechanism,
            "sasl_oauth_token_provider": TokenProvider(client),
        }
    elif client.mechanism:
        found |= {
            "sasl_mechanism": client.mechanism,
            "sasl_plain_username": resolved(client.username),
            "sasl_plain_password": resolved(client.password),
        }
    return found


class TokenProvider(AbstractTokenProvider):  # type: ignore[misc]
    """Gets OAuth tokens by the grant of client credentials, and keeps each for most of its life.

    Source: RFC 6749, 4.4; librdkafka and Kafka's Java clients ask in the same way.

    A connection takes the old token while no new one can be had, as long as the old one is valid.

    Args:
        client: Where tokens are, and who asks.
        clock: Gives seconds, and goes on while the machine is suspended, as a token's life does.
    """

    def __init__(self, client: AiokafkaClient, clock: Callable[[], float] = boot_s) -> None:
        self._oauth = dict(client.oauth)
        self._clock = clock
        self._token = ""
        self._renew_at = self._until = clock()

    async def token(self) -> str:
        """A token that is valid.

        Raises:
            KafkaConnectionError: None can be had. aiokafka tries again after it; any other error
                would end the tasks that send heartbeats, and the worker would live on without them.
        """
        if self._clock() >= self._renew_at:
            try:
                await self._renew()
            except ShardMergeError as error:
                left_s = self._until - self._clock()
                if left_s <= 0:
                    raise KafkaConnectionError(str(error)) from error
                log.warning("token_delayed", error=error, seconds=round(left_s, 1))
                self._renew_at = self._clock() + min(_PAUSE_S, left_s)
        return self._token

    async def _renew(self) -> None:
        url = resolved(self._oauth["token.endpoint.url"])
        form = {"grant_type": "client_credentials"}
        if "scope" in self._oauth:
            form["scope"] = resolved(self._oauth["scope"])
        client, secret = self._oauth["client.id"], self._oauth["client.secret"]
        pair = b64encode(f"{resolved(client)}:{resolved(secret)}".encode()).decode()
        headers = {"Authorization": f"Basic {pair}"}
        asked = self._clock()
        try:
            async with (
                aiohttp.ClientSession(timeout=_TOKEN_TIMEOUT, raise_for_status=True) as session,
                session.post(url, data=form, headers=headers) as answer,
            ):
                document = await answer.json(content_type=None)
            token = str(document["access_token"])
            life_s = float(document.get("expires_in", 300))
        except (aiohttp.ClientError, TimeoutError, ValueError, KeyError, TypeError) as error:
            raise StackError(
                f"the token endpoint {url} gives no token: {error}",
                hint="are sasl.oauthbearer.client.id and client.secret of [kafka.client] right?",
                code="SM-4112",
            ) from error
        self._token = token
        self._renew_at, self._until = asked + _RENEWED_AT * life_s, asked + life_s
