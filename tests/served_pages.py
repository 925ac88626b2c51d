"""The agents' web server over a view in memory: no Kafka, no agents."""

from __future__ import annotations

import asyncio
import math
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import cast

import faust
from aiohttp import web

from shardmerge.agents.access.ended import EndedSessions, digest_of
from shardmerge.agents.coordination.state.target_state import TargetState
from shardmerge.agents.preview.simulated_agents import AgentsState
from shardmerge.agents.status.connector_log import ConnectorLog
from shardmerge.agents.status.view import StatusView
from shardmerge.agents.web.commanding import Send
from shardmerge.agents.web.consumer import ViewReader
from shardmerge.agents.web.present import Present
from shardmerge.agents.web.server import StatusWeb
from shardmerge.connectors.metrics.family import Sample
from shardmerge.schemas.model.errors import StackError
from shardmerge.schemas.model.names import TargetTable
from shardmerge.schemas.pipeline.settings import Pipeline
from shardmerge.schemas.records.operator_commands import OperatorCommand
from shardmerge.schemas.records.schema_changes import ChangeId
from tests.example_pages import pipeline


class ExamplePresent:
    """What the agents know, without Kafka."""

    def __init__(self, state: AgentsState) -> None:
        self._state = state

    def take(self, state: AgentsState) -> None:
        """Let the agents know something else."""
        self._state = state

    def state(self, target: TargetTable) -> TargetState | None:
        return self._state.targets.get(target)

    def agents_state(self) -> AgentsState:
        return self._state


def _refuses(_: OperatorCommand) -> ChangeId:
    raise AssertionError("nothing was to be given")


class _CaughtUp:
    caught_up = True


class ExampleEnded:
    """What a worker knows of ended sessions, without Kafka; workers can share it."""

    def __init__(self, *, caught_up: bool = True, fails: bool = False) -> None:
        self.caught_up, self.fails = caught_up, fails
        self._ended = EndedSessions()

    def has(self, nonce: str) -> bool:
        return self._ended.has(nonce)

    async def end(self, nonce: str) -> None:
        self._ended.add(digest_of(nonce), math.inf, 0.0)
        if self.fails:
            raise StackError("Kafka did not take the end of a session", code="SM-6914")


def status_web(
    view: StatusView,
    present: Present,
    of: Pipeline | None = None,
    send: Send | None = None,
    ended: ExampleEnded | None = None,
    *,
    connectors: ConnectorLog | None = None,
) -> StatusWeb:
    """The server, not started."""

    async def measured(_: bool) -> list[Sample]:
        return []

    app = faust.App("pages", broker="memory://", store="memory://", autodiscover=False)
    reader = cast(ViewReader, _CaughtUp())
    return StatusWeb(
        app,
        pipeline=of or pipeline(),
        path=Path("/etc/shop.toml"),
        view=view,
        reader=reader,
        connectors=connectors or ConnectorLog(),
        present=present,
        measured=measured,
        send=send or _refuses,
        ended=ended or ExampleEnded(),
    )


@contextmanager
def served(
    view: StatusView,
    present: Present | None = None,
    of: Pipeline | None = None,
    send: Send | None = None,
    connectors: ConnectorLog | None = None,
) -> Iterator[str]:
    """Serve a view; gives the address.

    Args:
        view: What the pages show.
        present: What the agents know; by default nothing.
        of: The pipeline; by default the example's, from whose pages nobody gives commands.
        send: Takes the commands.
        connectors: What is known of the connectors; by default nothing.
    """
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    async def start() -> tuple[web.AppRunner, int]:
        known = present or ExamplePresent(AgentsState())
        server = status_web(view, known, of, send, connectors=connectors).web_app
        runner = web.AppRunner(server, access_log=None, shutdown_timeout=5)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        return runner, runner.addresses[0][1]

    runner, port = asyncio.run_coroutine_threadsafe(start(), loop).result(20)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        asyncio.run_coroutine_threadsafe(runner.cleanup(), loop).result(20)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()
