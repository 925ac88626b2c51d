"""Faust's web server with our pages. Faust's own would show the raw contents of the tables."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

from aiohttp import web
from faust.web.drivers.aiohttp import Web as FaustWeb

from shardmerge.agents.answers import openapi, plain
from shardmerge.agents.answers.change_answers import changes_answer
from shardmerge.agents.answers.matrix_answers import matrix_answer
from shardmerge.agents.pages import render
from shardmerge.agents.pages.asset_files import assets
from shardmerge.agents.status.connector_log import ConnectorLog
from shardmerge.agents.status.matrix import matrix
from shardmerge.agents.status.view import StatusView, TargetView
from shardmerge.agents.status.view_metrics import view_samples
from shardmerge.connectors.clock import now_ms
from shardmerge.connectors.metrics import catalog
from shardmerge.connectors.metrics.endpoint import exposition
from shardmerge.connectors.metrics.family import Sample, Samples
from shardmerge.schemas.pipeline.settings import Pipeline

from .admission import Admission, Ended
from .answers import HEADERS, NO_TARGET, asked_of, faulty, html, json_answer
from .asking import AskingPages
from .commanding import CommandPages, Send
from .consumer import ViewReader
from .events import RevisionEvents
from .login import LoginPages
from .present import Present
from .turns import Turns


class StatusWeb(FaustWeb):  # type: ignore[misc]
    """Serves the pages, their assets, ``/api``, health and metrics.

    A thread makes the pages, because the agents share this event loop.

    Args:
        pipeline: The pipeline of the worker.
        path: Path of the pipeline file, for the commands on the pages.
        view: What the pages show.
        reader: Feeds the view.
        connectors: What is known of the pipeline's connectors.
        present: Reads the agents' tables.
        measured: Returns the metrics that are not from the view. Its argument says whether the
            agents consume.
        send: Writes a command to the commands topic.
        ended: Knows which sessions were ended.
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
        connectors: ConnectorLog,
        present: Present,
        measured: Callable[[bool], Awaitable[Samples]],
        send: Send,
        ended: Ended,
        **kwargs: Any,
    ) -> None:
        super().__init__(app, **kwargs)
        self._pipeline = pipeline.name
        self._access = pipeline.web.commands
        self._view = view
        self._reader = reader
        self._connectors = connectors
        self._measured = measured
        self._events = RevisionEvents(self._revision)
        self._admission = admission = Admission(pipeline, ended)
        self._answers = Turns()
        turns = Turns()
        asking = AskingPages(pipeline, path, view, present, self._frame, turns=turns)
        commanding = CommandPages(
            pipeline,
            view,
            present=present,
            admission=admission,
            send=send,
            frame=self._frame,
            turns=turns,
        )
        login = LoginPages(admission, self._frame)
        routes: dict[str, Callable[[web.Request], Any]] = {
            "/": self._index,
            "/target/{name}": self._target,
            "/target/{name}/holds": asking.holds,
            "/target/{name}/command": commanding.form,
            "/target/{name}/commands": commanding.commands,
            "/login": login.form,
            "/plan": asking.plan,
            "/assets/{name}": self._asset,
            "/events": self._events.serve,
            "/api/status": self._api_status,
            "/api/target/{name}": self._api_target,
            "/api/target/{name}/matrix": self._api_matrix,
            "/api/target/{name}/changes": self._api_changes,
            "/api/target/{name}/holds": asking.api_holds,
            "/api/target/{name}/commands": commanding.api_commands,
            "/api/openapi.json": self._openapi,
            "/healthz": self._healthz,
            "/metrics": self._metrics,
        }
        for route, handler in routes.items():
            self.web_app.router.add_get(route, handler)
        posts: dict[str, Callable[[web.Request], Any]] = {
            "/plan": asking.planned,
            "/target/{name}/command": commanding.sent,
            "/login": login.log_in,
            "/logout": login.log_out,
            "/api/target/{name}/commands": commanding.api_command,
        }
        for route, handler in posts.items():
            self.web_app.router.add_post(route, handler)
        self.web_app.middlewares.append(admission.with_form_cookie)
        # aiohttp waits for open answers before it stops.
        self.web_app.on_shutdown.append(self._events.end)

    def _revision(self) -> int:
        return self._view.revision + self._connectors.revision

    def _frame(self, request: web.Request) -> render.Frame:
        return render.Frame(
            self._pipeline,
            self._reader.caught_up,
            self._revision(),
            now_ms(),
            self._admission.visitor(request),
        )

    async def _index(self, request: web.Request) -> web.Response:
        targets, ignored = self._view.targets(), self._view.ignored()[: plain.RECENT]
        frame, sinks = self._frame(request), self._view.sinks()
        shown = (frame, targets, ignored, sinks, self._connectors.view)
        return html(await asyncio.to_thread(render.overview_page, *shown))

    async def _target(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        target = self._view.target(name)
        if target is None:
            return html(render.missing_page(self._frame(request), name), status=404)
        asked = asked_of(request.query)
        frame = self._frame(request)
        return html(
            await asyncio.to_thread(render.target_page, frame, target, asked, self._connectors.view)
        )

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
        make = partial(
            plain.status_answer,
            self._view.targets(),
            self._view.ignored(),
            now_ms(),
            pipeline=self._pipeline,
            caught_up=self._reader.caught_up,
            connectors=self._connectors.view,
        )
        return await self._answers.ask(lambda: json_answer(make()))

    async def _api_target(self, request: web.Request) -> web.Response:
        at_ms, connectors = now_ms(), self._connectors.view
        return await self._target_answer(
            request, lambda of: plain.target_answer(of, at_ms, connectors=connectors)
        )

    async def _api_matrix(self, request: web.Request) -> web.Response:
        if fault := faulty(request.query):
            return json_answer(plain.ErrorAnswer(fault), status=400)
        asked = asked_of(request.query)

        def answer(target: TargetView) -> Any:
            found = matrix(target, asked.search, every_column=asked.every_column, page=asked.page)
            return matrix_answer(found)

        return await self._target_answer(request, answer)

    async def _api_changes(self, request: web.Request) -> web.Response:
        if fault := faulty(request.query):
            return json_answer(plain.ErrorAnswer(fault), status=400)
        asked = asked_of(request.query)
        return await self._target_answer(
            request, lambda of: changes_answer(of, asked.search, asked.page)
        )

    async def _target_answer(
        self, request: web.Request, answer: Callable[[TargetView], Any]
    ) -> web.Response:
        target = self._view.target(request.match_info["name"])
        if target is None:
            return json_answer(NO_TARGET, status=404)
        return await self._answers.ask(lambda: json_answer(answer(target)))

    async def _openapi(self, _: web.Request) -> web.Response:
        return json_answer(openapi.document(version("shardmerge"), self._access))

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
        yield from view_samples(self._view, now_ms())
