"""Sends open pages an event when something changed (server-sent events)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from aiohttp import web

from .answers import HEADERS

PAUSE_S = 1.0
"""Seconds between two looks at the revision. A page gets at most one event in this time."""
SILENCE_S = 15.0
"""Seconds without an event after which a comment is sent, so that proxies keep the connection."""
MAX_STREAMS = 100
"""Pages beyond this number get no events: they say so, and are fetched every 30 seconds."""


class RevisionEvents:
    """Serves ``/events``: the view's revision at once, and again whenever it has changed.

    Args:
        revision: Returns the present revision.
    """

    def __init__(self, revision: Callable[[], int], *, pause_s: float = PAUSE_S) -> None:
        self._revision = revision
        self._pause_s = pause_s
        self._ended = asyncio.Event()
        self._streams = 0

    async def end(self, _: Any = None) -> None:
        """End every answer, so that the server can stop."""
        self._ended.set()

    async def serve(self, request: web.Request) -> web.StreamResponse:
        """The answer to one page. It lasts until the page or the worker ends."""
        if self._streams >= MAX_STREAMS:
            return web.Response(status=503, text="too many open pages", headers=HEADERS)
        answer = web.StreamResponse(headers={**HEADERS, "Content-Type": "text/event-stream"})
        self._streams += 1
        try:
            await answer.prepare(request)
            await self._tell(answer)
        except ConnectionResetError:
            pass  # the page was closed
        finally:
            self._streams -= 1
        return answer

    async def _tell(self, answer: web.StreamResponse) -> None:
        told, silent_s = -1, 0.0
        while not self._ended.is_set():
            present = self._revision()
            if present != told:
                await answer.write(f"event: revision\ndata: {present}\n\n".encode())
                told, silent_s = present, 0.0
            elif silent_s >= SILENCE_S:
                await answer.write(b": nothing new\n\n")
                silent_s = 0.0
            try:
                await asyncio.wait_for(self._ended.wait(), self._pause_s)
            except TimeoutError:
                silent_s += self._pause_s
