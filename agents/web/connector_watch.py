"""Asks Kafka Connect from time to time how the connectors are, as a background service.

Nothing but the pages depends on the answer: whatever goes wrong here is shown there, and the agents
go on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import closing
from typing import Any

from mode import Service

from shardmerge.agents.status.connector_log import ConnectorLog
from shardmerge.connectors.clock import now_ms
from shardmerge.connectors.connect.connect_rest import ConnectRest
from shardmerge.connectors.connect.pipeline_connectors import pipeline_connectors
from shardmerge.connectors.event_log import logger
from shardmerge.connectors.formats.connector_status import ConnectorState
from shardmerge.schemas.model.errors import ShardMergeError
from shardmerge.schemas.pipeline.settings import Pipeline

log = logger(__name__)

PAUSE_S = 10.0
"""Pause between two looks. One look is one request."""
_PATIENCE_S = 2.0
_REQUEST_S = 3.0
Ask = Callable[[], tuple[ConnectorState, ...]]
"""Returns the connector of each source; the call blocks."""


def connect_of(pipeline: Pipeline) -> Ask:
    """Asks the pipeline's Connect cluster. Each call opens a connection of its own."""

    def ask() -> tuple[ConnectorState, ...]:
        rest = ConnectRest.of(pipeline.connect, patience_s=_PATIENCE_S, timeout_s=_REQUEST_S)
        with closing(rest):
            return pipeline_connectors(pipeline, rest)

    return ask


class ConnectorWatch(Service):  # type: ignore[misc]
    """Looks at the connectors as long as the worker runs.

    Args:
        ask: Asks Connect. It is called in a thread, because the agents share the event loop.
        seen: Takes the answers.
        pause_s: Pause between two looks.
        now_ms: Returns milliseconds since 1970.
    """

    def __init__(
        self,
        ask: Ask,
        seen: ConnectorLog,
        *,
        pause_s: float = PAUSE_S,
        now_ms: Callable[[], int] = now_ms,
        **kwargs: Any,
    ) -> None:
        self._ask, self._seen = ask, seen
        self._pause_s, self._now_ms = pause_s, now_ms
        super().__init__(**kwargs)

    @Service.task  # type: ignore[untyped-decorator]
    async def _watch(self) -> None:
        while not self.should_stop:
            await self.look()
            await self.sleep(self._pause_s)

    async def look(self) -> None:
        """Ask once."""
        try:
            self._seen.take(await asyncio.to_thread(self._ask), self._now_ms())
        except ShardMergeError as error:
            self._miss(error.message, error.hint, error.code)
        except Exception as error:
            # An address that is none of Connect's can answer anything.
            self._miss(f"Kafka Connect's answer cannot be read: {error!r}", "", "SM-4304")

    def _miss(self, fault: str, hint: str, code: str) -> None:
        if not self._seen.view.fault:
            log.warning("connect_unanswered", reason=fault)
        self._seen.miss(fault, hint, code, self._now_ms())
