"""Faust's web server with our pages instead of Faust's own, which show the tables' raw content."""

from __future__ import annotations

import json
import time
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from typing import Any

from aiohttp import web
from faust.web.drivers.aiohttp import Web as FaustWeb

from shardmerge.agents.status import pages
from shardmerge.agents.status.view import StatusView
from shardmerge.agents.status.view_metrics import view_samples
from shardmerge.connectors.metrics import catalog
from shardmerge.connectors.metrics.endpoint import exposition
from shardmerge.connectors.metrics.family import Sample, Samples

from .consumer import ViewReader

_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


class StatusWeb(FaustWeb):  # type: ignore[misc]
    """Serves ``/``, ``/target/<database>.<table>``, their twins in ``/api/``, health and metrics.

    Args:
        measured: What the worker counts besides the view. It is told whether the agents consume.
    """

    default_blueprints = ()
    production_blueprints = ()
    debug_blueprints = ()
    optional_blueprints = ()

    def __init__(
        self,
        app: Any,
        *,
        pipeline: str,
        view: StatusView,
        reader: ViewReader,
        measured: Callable[[bool], Awaitable[Samples]],
        **kwargs: Any,
    ) -> None:
        super().__init__(app, **kwargs)
        self._pipeline = pipeline
        self._view = view
        self._reader = reader
        self._measured = measured
        routes: dict[str, Callable[[web.Request], Any]] = {
            "/": self._index,
            "/target/{name}": self._target,
            "/api/status": self._api_status,
            "/api/target/{name}": self._api_target,
            "/healthz": self._healthz,
            "/metrics": self._metrics,
        }
        for path, handler in routes.items():
            self.web_app.router.add_get(path, handler)

    async def _index(self, _: web.Request) -> web.Response:
        return _html(pages.index_page(self._view, self._pipeline, self._reader.caught_up))

    async def _target(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        target = self._view.target(name)
        if target is None:
            page = pages.missing_page(name, self._pipeline, self._reader.caught_up)
            return _html(page, status=404)
        return _html(pages.target_page(target, self._pipeline, self._reader.caught_up))

    async def _api_status(self, _: web.Request) -> web.Response:
        return _json(pages.status_json(self._view, self._pipeline, self._reader.caught_up))

    async def _api_target(self, request: web.Request) -> web.Response:
        target = self._view.target(request.match_info["name"])
        if target is None:
            return _json({"error": "no decision names this target"}, status=404)
        return _json(pages.target_json(target))

    async def _healthz(self, _: web.Request) -> web.Response:
        """200 when the agents consume, 503 while they start, recover or rebalance."""
        ready = self._is_ready()
        assigned = sorted(
            f"{tp.topic}/{tp.partition}"
            for tp in (self.app.consumer.assignment() if ready else ())
            if tp.topic not in self.app.tables.changelog_topics
        )
        answer = {"ready": ready, "assigned": assigned, "view_caught_up": self._reader.caught_up}
        return _json(answer, status=200 if ready else 503)

    def _is_ready(self) -> bool:
        completed = self.app.tables.recovery.completed.is_set()
        return completed and not self.app.rebalancing

    async def _metrics(self, request: web.Request) -> web.Response:
        """The metrics, for Prometheus."""
        measured = await self._measured(self._is_ready())
        answer = exposition(partial(self._samples, measured), request.headers.get("Accept", ""))
        headers = {**_HEADERS, "Content-Type": answer.content_type}
        return web.Response(body=answer.body, headers=headers)

    def _samples(self, measured: Samples) -> Iterator[Sample]:
        yield Sample(catalog.AGENTS_READY, (), int(self._is_ready()))
        yield Sample(catalog.AGENTS_VIEW, (), int(self._reader.caught_up))
        yield from measured
        yield from view_samples(self._view, time.time_ns() // 1_000_000)


def _html(text: str, *, status: int = 200) -> web.Response:
    return web.Response(text=text, content_type="text/html", status=status, headers=_HEADERS)


def _json(value: Any, *, status: int = 200) -> web.Response:
    text = json.dumps(value, ensure_ascii=False, indent=1)
    return web.Response(text=text, content_type="application/json", status=status, headers=_HEADERS)
