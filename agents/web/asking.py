"""The pages that need the agents' tables: ways out of holds, and plans of pasted statements."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from aiohttp import web

from shardmerge.agents.answers.plain import ErrorAnswer, holds_answer
from shardmerge.agents.holds.answers import Answers
from shardmerge.agents.holds.reports import HoldReport, hold_reports
from shardmerge.agents.pages import render
from shardmerge.agents.pages.render import Frame, PlanAsked
from shardmerge.agents.preview.pasted import pasted_steps
from shardmerge.agents.preview.plan import numbered, planned
from shardmerge.agents.preview.report import Asked, shown_plan
from shardmerge.agents.preview.shapes import ShownPlan
from shardmerge.agents.preview.simulated_agents import SimulatedAgents
from shardmerge.agents.status.view import StatusView, TargetView
from shardmerge.schemas.model.errors import ConfigError, ShardMergeError
from shardmerge.schemas.pipeline.settings import Pipeline

from .answers import NO_TARGET, html, json_answer, text_of
from .present import Present
from .turns import Turns

_FOREIGN = ("cross-site", "same-site")


class AskingPages:
    """Serves ``/target/<name>/holds`` and ``/plan``.

    A thread reads the agents' tables and asks their rules, for one page at a time.

    Args:
        pipeline: The pipeline of the worker.
        path: Path of the pipeline file, for the commands on the pages.
        view: Has the targets.
        present: Reads the agents' tables.
        frame: Makes the frame of a page.
        turns: Runs what takes long.
    """

    def __init__(
        self,
        pipeline: Pipeline,
        path: Path,
        view: StatusView,
        present: Present,
        frame: Callable[[web.Request], Frame],
        *,
        turns: Turns,
    ) -> None:
        self._pipeline = pipeline
        self._path = path
        self._view = view
        self._present = present
        self._frame = frame
        self._turns = turns

    async def holds(self, request: web.Request) -> web.Response:
        """The page with both sides and the ways out, for a target's held and paused shards."""
        name = request.match_info["name"]
        target = self._view.target(name)
        if target is None:
            return html(render.missing_page(self._frame(request), name), status=404)
        chosen = request.query.get("shard", "")
        try:
            reports = await self._turns.ask(lambda: self._reports(target, chosen))
        except ShardMergeError as error:
            return html(render.holds_page(self._frame(request), name, (), error), status=503)
        return html(render.holds_page(self._frame(request), name, reports))

    async def api_holds(self, request: web.Request) -> web.Response:
        """The same as JSON."""
        name = request.match_info["name"]
        target = self._view.target(name)
        if target is None:
            return json_answer(NO_TARGET, status=404)
        chosen = request.query.get("shard", "")
        try:
            return await self._turns.ask(
                lambda: json_answer(holds_answer(name, self._reports(target, chosen)))
            )
        except ShardMergeError as error:
            return json_answer(ErrorAnswer(str(error)), status=503)

    async def plan(self, request: web.Request) -> web.Response:
        """The empty form."""
        return html(render.plan_page(self._frame(request), self._targets()))

    async def planned(self, request: web.Request) -> web.Response:
        """The plan of the statement that was pasted into the form."""
        if request.headers.get("Sec-Fetch-Site", "") in _FOREIGN:
            # A plan changes nothing, but it takes the agents' time.
            raise web.HTTPForbidden(text="send the form from the page /plan of this worker")
        asked = _plan_asked(await request.post())
        targets = self._targets()
        try:
            plan = await self._turns.ask(lambda: self._planned(asked))
        except ShardMergeError as error:
            status = 400 if isinstance(error, ConfigError) else 503
            page = render.plan_page(self._frame(request), targets, asked, error=error)
            return html(page, status=status)
        return html(render.plan_page(self._frame(request), targets, asked, plan))

    def _targets(self) -> list[str]:
        return [str(target.target) for target in self._view.targets()]

    def _reports(self, target: TargetView, chosen: str) -> list[HoldReport]:
        state = self._present.state(target.target)
        if state is None:
            return []
        decided_ms = {d.version: d.ts_ms for d in target.decisions if d.ts_ms}
        decided_ms |= {s.version: s.ts_ms for s in target.shards if s.ts_ms}
        shard = next((s.shard for s in target.shards if str(s.shard) == chosen), None)
        answers = Answers(self._pipeline, state)
        return list(hold_reports(answers, decided_ms, self._path, shard))

    def _planned(self, asked: PlanAsked) -> ShownPlan:
        before = self._present.agents_state()
        states = {str(name): state for name, state in before.targets.items()}
        state = states.get(asked.target)
        if state is None:
            raise ConfigError(
                f"there is no target {asked.target or '(none chosen)'}",
                hint=f"targets: {', '.join(sorted(states)) or 'none'}",
                code="SM-5604",
            )
        wanted = asked.shards.strip().casefold()
        shards = [name for name in sorted(state.shards) if wanted in str(name).casefold()]
        steps = pasted_steps(asked.sql, shards)
        agents = SimulatedAgents(self._pipeline)
        plan = planned(agents, before, numbered(steps))
        return shown_plan(Asked(agents, self._path, "the agents' tables"), plan)


def _plan_asked(form: Mapping[str, object]) -> PlanAsked:
    return PlanAsked(text_of(form, "target"), text_of(form, "shards"), text_of(form, "sql"))
