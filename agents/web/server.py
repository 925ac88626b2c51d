"""Faust's web server with our pages. Faust's own would show the raw contents of the tables."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

from aiohttp import web
from faust.web.drivers.aiohttp import Web as FaustWeb

from shardmerge.agents.pages import render
from shardmerge.agents.pages.asset_files import assets
from shardmerge.agents.status import openapi, plain
from shardmerge.agents.status.matrix import matrix
from shardmerge.agents.status.view import StatusView, TargetView
from shardmerge.agents.status.view_metrics import view_samples
from shardmerge.connectors.metrics import catalog
from shardmerge.connectors.metrics.endpoint import exposition
from shardmerge.connectors.metrics.family import Sample, Samples
from shardmerge.schemas.pipeline.settings import Pipeline

from .answers import HEADERS, NO_TARGET, asked_of, faulty, html, json_answer
from .asking import AskingPages
from .consumer import ViewReader
from .events import RevisionEvents
from .present import Present


class StatusWeb(FaustWeb):  # type: ignore[misc]
    """Serves the pages, their assets, ``/api``, health and metrics.

    A thread makes the pages, because the agents share this event loop.

    Args:
        pipeline: The pipeline of the worker.
        path: Path of the pipeline file, for the commands on the pages.
        view: What the pages show.
        reader: Feeds the view.
        present: Reads the agents' tables.
        measured: Returns the metrics that are not from the view. Its argument says whether the
            agents consume.
    """

    default_blueprints = ()
    production_blueprints = ()
    debug_blueprints = ()
    optional_blueprints = ()

    def __init__(
        self,
        app: Any,
        *,
        pipeline: Pipeline,
        path: Path,
        view: StatusView,
        reader: ViewReader,
        present: Present,
        measured: Callable[[bool], Awaitable[Samples]],
        **kwargs: Any,
    ) -> None:
        super().__init__(app, **kwargs)
        self._pipeline = pipeline.name
        self._view = view
        self._reader = reader
        self._measured = measured
        self._events = RevisionEvents(lambda: view.revision)
        asking = AskingPages(pipeline, path, view, present, self._frame)
        routes: dict[str, Callable[[web.Request], Any]] = {
            "/": self._index,
            "/target/{name}": self._target,
            "/target/{name}/holds": asking.holds,
            "/plan": asking.plan,
            "/assets/{name}": self._asset,
            "/events": self._events.serve,
            "/api/status": self._api_status,
            "/api/target/{name}": self._api_target,
            "/api/target/{name}/matrix": self._api_matrix,
            "/api/target/{name}/holds": asking.api_holds,
            "/api/openapi.json": self._openapi,
            "/healthz": self._healthz,
            "/metrics": self._metrics,
        }
        for route, handler in routes.items():
            self.web_app.router.add_get(route, handler)
        self.web_app.router.add_post("/plan", asking.planned)
        # aiohttp waits for open answers before it stops.
        self.web_app.on_shutdown.append(self._events.end)

    def _frame(self) -> render.Frame:
        now_ms = time.time_ns() // 1_000_000
        return render.Frame(self._pipeline, self._reader.caught_up, self._view.revision, now_ms)

    async def _index(self, _: web.Request) -> web.Response:
        targets, ignored = self._view.targets(), self._view.ignored()[: plain.RECENT]
        return html(await asyncio.to_thread(render.overview_page, self._frame(), targets, ignored))

    async def _target(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        target = self._view.target(name)
        if target is None:
            return html(render.missing_page(self._frame(), name), status=404)
        asked = asked_of(request.query)
        return html(await asyncio.to_thread(render.target_page, self._frame(), target, asked))

    async def _asset(self, request: web.Request) -> web.Response:
        asset = assets().get(request.match_info["name"])
        if asset is None:
            raise web.HTTPNotFound
        # The address has the version of the content, so a new content has a new address.
        headers = {**HEADERS, "Cache-Control": "public, max-age=31536000, immutable"}
        return web.Response(
            body=asset.content, content_type=asset.content_type, charset="utf-8", headers=headers
        )

    async def _api_status(self, _: web.Request) -> web.Response:
        found = plain.status_answer(self._view, self._pipeline, self._reader.caught_up)
        return json_answer(found)

    async def _api_target(self, request: web.Request) -> web.Response:
        return await self._target_answer(request, plain.target_answer)

    async def _api_matrix(self, request: web.Request) -> web.Response:
        if fault := faulty(request.query):
            return json_answer(plain.ErrorAnswer(fault), status=400)
        asked = asked_of(request.query)

        def answer(target: TargetView) -> Any:
            found = matrix(target, asked.search, every_column=asked.every_column, page=asked.page)
            return plain.matrix_answer(found)

        return await self._target_answer(request, answer)

    async def _target_answer(
        self, request: web.Request, answer: Callable[[TargetView], Any]
    ) -> web.Response:
        target = self._view.target(request.match_info["name"])
        if target is None:
            return json_answer(NO_TARGET, status=404)
        return json_answer(await asyncio.to_thread(answer, target))

    async def _openapi(self, _: web.Request) -> web.Response:
        return json_answer(openapi.document(version("shardmerge")))

    async def _healthz(self, _: web.Request) -> web.Response:
        """200 when the agents consume, 503 while they start, recover or rebalance."""
        ready = self._is_ready()
        assigned = sorted(
            f"{tp.topic}/{tp.partition}"
            for tp in (self.app.consumer.assignment() if ready else ())
            if tp.topic not in self.app.tables.changelog_topics
        )
        answer = plain.HealthAnswer(ready, tuple(assigned), self._reader.caught_up)
        return json_answer(answer, status=200 if ready else 503)

    def _is_ready(self) -> bool:
        completed = self.app.tables.recovery.completed.is_set()
        return completed and not self.app.rebalancing

    async def _metrics(self, request: web.Request) -> web.Response:
        """The metrics, for Prometheus."""
        measured = await self._measured(self._is_ready())
        answer = exposition(partial(self._samples, measured), request.headers.get("Accept", ""))
        headers = {**HEADERS, "Content-Type": answer.content_type}
        return web.Response(body=answer.body, headers=headers)

    def _samples(self, measured: Samples) -> Iterator[Sample]:
        yield Sample(catalog.AGENTS_READY, (), int(self._is_ready()))
        yield Sample(catalog.AGENTS_VIEW, (), int(self._reader.caught_up))
        yield from measured
        yield from view_samples(self._view, time.time_ns() // 1_000_000)
