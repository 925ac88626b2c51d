"""The agents' web server over a view in memory: no Kafka, no agents."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import cast

import faust
from aiohttp import web

from shardmerge.agents.status.view import StatusView
from shardmerge.agents.web.consumer import ViewReader
from shardmerge.agents.web.server import StatusWeb
from shardmerge.connectors.metrics.family import Sample


class _CaughtUp:
    caught_up = True


def status_web(view: StatusView) -> StatusWeb:
    """The server, not started."""

    async def measured(_: bool) -> list[Sample]:
        return []

    app = faust.App("pages", broker="memory://", store="memory://", autodiscover=False)
    reader = cast(ViewReader, _CaughtUp())
    return StatusWeb(app, pipeline="shop", view=view, reader=reader, measured=measured)


@contextmanager
def served(view: StatusView) -> Iterator[str]:
    """Serve a view; gives the address."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    async def start() -> tuple[web.AppRunner, int]:
        runner = web.AppRunner(status_web(view).web_app, access_log=None, shutdown_timeout=5)
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
