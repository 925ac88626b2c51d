"""Arguments of aiokafka's clients, as the agents have them: TLS, user, tokens."""

from __future__ import annotations

import time
from base64 import b64encode
from typing import Any

import aiohttp
from aiokafka.abc import AbstractTokenProvider

from shardmerge.schemas.model.errors import StackError
from shardmerge.schemas.pipeline.kafka_client import AiokafkaClient, aiokafka_client
from shardmerge.schemas.pipeline.settings import Kafka

from .secrets import resolved
from .tls_context import broker_context

_TOKEN_TIMEOUT = aiohttp.ClientTimeout(total=10.0)
_RENEWED_AT = 0.8
"""Part of a token's life after which a new one is asked for."""


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
    """

    def __init__(self, client: AiokafkaClient) -> None:
        self._oauth = dict(client.oauth)
        self._token, self._until = "", 0.0

    async def token(self) -> str:
        """A token that is valid for a while.

        Raises:
            StackError: The endpoint does not answer, or gives no token.
        """
        if time.monotonic() >= self._until:
            await self._renew()
        return self._token

    async def _renew(self) -> None:
        url = resolved(self._oauth["token.endpoint.url"])
        form = {"grant_type": "client_credentials"}
        if "scope" in self._oauth:
            form["scope"] = resolved(self._oauth["scope"])
        client, secret = self._oauth["client.id"], self._oauth["client.secret"]
        pair = b64encode(f"{resolved(client)}:{resolved(secret)}".encode()).decode()
        headers = {"Authorization": f"Basic {pair}"}
        try:
            async with (
                aiohttp.ClientSession(timeout=_TOKEN_TIMEOUT, raise_for_status=True) as session,
                session.post(url, data=form, headers=headers) as answer,
            ):
                document = await answer.json(content_type=None)
            self._token = str(document["access_token"])
            life_s = float(document.get("expires_in", 300))
        except (aiohttp.ClientError, TimeoutError, ValueError, KeyError, TypeError) as error:
            raise StackError(
                f"the token endpoint {url} gives no token: {error}",
                hint="are sasl.oauthbearer.client.id and client.secret of [kafka.client] right?",
                code="SM-4112",
            ) from error
        self._until = time.monotonic() + _RENEWED_AT * life_s
