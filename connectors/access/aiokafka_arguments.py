"""Arguments of aiokafka's clients, as the agents have them: TLS, user, tokens."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import aiohttp
from aiokafka.abc import AbstractTokenProvider
from aiokafka.errors import KafkaConnectionError

from shardmerge.connectors.clock import boot_s
from shardmerge.connectors.event_log import logger
from shardmerge.schemas.model.errors import ShardMergeError
from shardmerge.schemas.pipeline.kafka_client import AiokafkaClient, aiokafka_client
from shardmerge.schemas.pipeline.settings import Kafka

from .secrets import resolved
from .tls_context import broker_context
from .token_endpoint import no_answer, no_token, token_request

log = logger(__name__)

_TOKEN_S = 10.0
"""Longest wait for the token endpoint."""
_RENEWED_AT = 0.8
"""Part of a token's life after which a new one is asked for."""
_PATIENCE_S = 0.5
"""Longest wait for a new token while the old one is valid."""
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

    A connection takes the old token while no new one can be had, as long as the old one is valid.
    It waits for a new one only ``_PATIENCE_S`` then, and what is asked goes on beside it: a worker
    that connects may send no heartbeats, and is out of its group after six seconds.

    Clients in several threads, each with an event loop of its own, may share one.

    Args:
        client: Where tokens are, and who asks.
        clock: Gives seconds, and goes on while the machine is suspended, as a token's life does.
    """

    def __init__(self, client: AiokafkaClient, clock: Callable[[], float] = boot_s) -> None:
        self._oauth = client.oauth
        self._clock = clock
        self._token = ""
        self._renew_at = self._until = clock()
        self._renewal: asyncio.Task[None] | None = None

    async def token(self) -> str:
        """A token that is valid.

        Raises:
            KafkaConnectionError: None can be had. aiokafka tries again after it; any other error
                would end the tasks that send heartbeats, and the worker would live on without them.
        """
        now = self._clock()
        if now >= self._until:
            try:
                await self._renew()
            except ShardMergeError as error:
                raise KafkaConnectionError(str(error)) from error
        elif now >= self._renew_at and (self._renewal is None or self._renewal.done()):
            # Another thread may begin one, too, and put it in the place of this one.
            renewal = self._renewal = asyncio.create_task(self._renew_or_tell())
            await asyncio.wait({renewal}, timeout=_PATIENCE_S)
        return self._token

    async def _renew_or_tell(self) -> None:
        try:
            await self._renew()
        except ShardMergeError as error:
            left_s = max(0.0, self._until - self._clock())
            log.warning("token_delayed", error=error, seconds=round(left_s, 1))
            self._renew_at = self._clock() + min(_PAUSE_S, left_s)

    async def _renew(self) -> None:
        request = token_request(self._oauth)
        asked, limit = self._clock(), aiohttp.ClientTimeout(total=_TOKEN_S)
        try:
            async with (
                aiohttp.ClientSession(timeout=limit, raise_for_status=True) as session,
                session.post(request.url, data=request.form, headers=request.headers) as answer,
            ):
                document = await answer.json(content_type=None)
            token = str(document["access_token"])
            life_s = float(document.get("expires_in", 300))
        except (aiohttp.ClientError, TimeoutError, ValueError, KeyError, TypeError) as error:
            why = no_answer(_TOKEN_S) if isinstance(error, TimeoutError) else str(error)
            raise no_token(request.url, why) from error
        self._token = token
        self._renew_at, self._until = asked + _RENEWED_AT * life_s, asked + life_s
