"""Gives commands from the pages and from ``/api``.

A command is given in two steps: the agents' rules are asked what they would answer, then somebody
confirms this answer. The rules are asked again before the command is written. So what was confirmed
is what happens, unless another record comes between this moment and the agents.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from typing import Any

from aiohttp import web

from shardmerge.agents.access.calls import Asker
from shardmerge.agents.answers.command_answers import (
    CommandCall,
    GivenAnswer,
    call_of,
    commands_answer,
)
from shardmerge.agents.answers.plain import ErrorAnswer
from shardmerge.agents.holds.answers import Answers, fingerprint
from shardmerge.agents.pages import render
from shardmerge.agents.pages.command_pages import (
    MOST_COMMANDS,
    CommandAsked,
    command_page,
    commands_page,
)
from shardmerge.agents.pages.render import Frame
from shardmerge.agents.status.view import StatusView, TargetView
from shardmerge.connectors.clock import now_ms
from shardmerge.connectors.event_log import logger
from shardmerge.schemas.codes.registry import coded
from shardmerge.schemas.model.errors import AccessDenied, ConfigError, ShardMergeError
from shardmerge.schemas.pipeline.given_commands import given_command
from shardmerge.schemas.pipeline.settings import Pipeline
from shardmerge.schemas.records.decisions import Decision, Outcome
from shardmerge.schemas.records.operator_commands import OperatorCommand
from shardmerge.schemas.records.schema_changes import ChangeId

from .admission import Admission
from .answers import NO_TARGET, html, json_answer, text_of
from .present import Present
from .refusals import status_of
from .turns import Turns

log = logger(__name__)

Send = Callable[[OperatorCommand], ChangeId]
"""Writes a command to the commands topic; returns its id. The call blocks."""
_LONGEST_LOGGED = 500


class CommandPages:
    """Serves ``/target/<name>/command`` and ``/target/<name>/commands``, as pages and as JSON.

    Args:
        pipeline: The pipeline of the worker.
        view: Has the targets and the commands that were given.
        present: Reads the agents' tables.
        admission: Knows who may give commands.
        send: Writes a command.
        frame: Makes the frame of a page.
        turns: Runs what takes long.
    """

    def __init__(
        self,
        pipeline: Pipeline,
        view: StatusView,
        *,
        present: Present,
        admission: Admission,
        send: Send,
        frame: Callable[[web.Request], Frame],
        turns: Turns,
    ) -> None:
        self._pipeline = pipeline
        self._view = view
        self._present = present
        self._admission = admission
        self._send = send
        self._frame = frame
        self._turns = turns

    async def commands(self, request: web.Request) -> web.Response:
        """The page with the commands that were given."""
        target = self._target(request)
        if target is None:
            return self._missing(request)
        text = request.query.get("given", "")
        given = int(text) if text.isascii() and text.isdecimal() and len(text) < 20 else None
        found = self._view.commands(target.target)
        frame = self._frame(request)
        return html(await asyncio.to_thread(commands_page, frame, str(target.target), found, given))

    async def form(self, request: web.Request) -> web.Response:
        """The form; with a command in the query also what the agents would answer. Gives none."""
        target = self._target(request)
        if target is None:
            return self._missing(request)
        asked = _asked_of(request.query)
        asker = self._admission.asker(request)
        if asker.denied is not None:
            # The rules are asked only for those who could give the command.
            return self._page(request, target, asked, status=status_of(asker.denied))
        return await self._shown(request, target, asked, asker)

    async def sent(self, request: web.Request) -> web.Response:
        """Takes a form: shows what the agents would answer, or gives the command."""
        target = self._target(request)
        if target is None:
            return self._missing(request)
        form = await request.post()
        asked = _asked_of({name: text_of(form, name) for name in form})
        try:
            asker = self._admission.check_form(request, text_of(form, "key"))
        except ShardMergeError as error:
            return self._page(request, target, asked, error=error, status=status_of(error))
        if text_of(form, "step") != "give":
            return await self._shown(request, target, asked, asker)
        seen = text_of(form, "seen")
        try:
            said = self._confirmed(request, target, asked, asker)
            given, _ = await self._turns.ask(lambda: self._given(request, said, seen))
        except AccessDenied as error:
            if error.code == "SM-6910":
                return await self._shown(request, target, asked, asker, error)
            return self._page(request, target, asked, error=error, status=status_of(error))
        except ShardMergeError as error:
            return self._page(request, target, asked, error=error, status=status_of(error))
        back = f"{render.path_of(str(target.target))}/commands?given={given.offset}"
        return web.Response(status=303, headers={"Location": back, "Cache-Control": "no-store"})

    async def api_commands(self, request: web.Request) -> web.Response:
        """The commands that were given, as JSON."""
        target = self._target(request)
        if target is None:
            return json_answer(NO_TARGET, status=404)
        found = self._view.commands(target.target)[:MOST_COMMANDS]
        answer = commands_answer(str(target.target), found)
        return await asyncio.to_thread(json_answer, answer)

    async def api_command(self, request: web.Request) -> web.Response:
        """Gives a command, or with ``only_ask`` tells what the agents would answer."""
        try:
            asker = self._admission.check_api(request)
        except ShardMergeError as error:
            return _error(error)
        if request.content_type != "application/json":
            return _error(_unread("Content-Type must be application/json"), status=415)
        target = self._target(request)
        if target is None:
            return json_answer(NO_TARGET, status=404)
        try:
            call = await self._call(request, asker)
            asked = CommandAsked(call.kind, call.shard, call.argument)
            said = self._confirmed(request, target, asked, asker)
            if call.only_ask:
                answer = await self._turns.ask(lambda: self._answer(said))
                return json_answer(GivenAnswer("", answer))
            given, answer = await self._turns.ask(lambda: self._given(request, said))
        except ShardMergeError as error:
            return _error(error)
        return json_answer(GivenAnswer(str(given), answer), status=202)

    async def _call(self, request: web.Request, asker: Asker) -> CommandCall:
        """The command in the body of a call; what is none is logged as denied."""
        try:
            return call_of(_json(await request.read()))
        except ConfigError as error:
            self._admission.log_denied(request, asker.user, error)
            raise

    def _target(self, request: web.Request) -> TargetView | None:
        return self._view.target(request.match_info["name"])

    def _missing(self, request: web.Request) -> web.Response:
        page = render.missing_page(self._frame(request), request.match_info["name"])
        return html(page, status=404)

    async def _shown(
        self,
        request: web.Request,
        target: TargetView,
        asked: CommandAsked,
        asker: Asker,
        changed: ShardMergeError | None = None,
    ) -> web.Response:
        """The form with what the agents would answer.

        Args:
            request: The request.
            target: The target.
            asked: The contents of the form.
            asker: Who asks.
            changed: Why what was confirmed was not given; None if nothing was confirmed.
        """
        if not asked.kind or asked.lacks:
            return self._page(request, target, asked)
        try:
            said = self._said(target, asked, asker)
            answer = await self._turns.ask(lambda: self._answer(said))
        except ShardMergeError as error:
            return self._page(request, target, asked, error=error, status=status_of(error))
        status = 200 if changed is None else status_of(changed)
        return self._page(request, target, asked, answer, error=changed, status=status)

    def _page(
        self,
        request: web.Request,
        target: TargetView,
        asked: CommandAsked,
        answer: Decision | None = None,
        *,
        error: ShardMergeError | None = None,
        status: int = 200,
    ) -> web.Response:
        shards = [str(shard.shard) for shard in target.live]
        seen = fingerprint(answer) if answer is not None else ""
        page = command_page(
            self._frame(request),
            str(target.target),
            shards,
            asked,
            answer=answer,
            seen=seen,
            error=error,
        )
        return html(page, status=status)

    def _confirmed(
        self, request: web.Request, target: TargetView, asked: CommandAsked, asker: Asker
    ) -> OperatorCommand:
        """The command that somebody gives; what is none is logged as denied."""
        try:
            return self._said(target, asked, asker)
        except ConfigError as error:
            self._admission.log_denied(request, asker.user, error)
            raise

    def _said(self, target: TargetView, asked: CommandAsked, asker: Asker) -> OperatorCommand:
        return given_command(
            self._pipeline,
            asked.kind,
            asked.argument,
            asked.shard,
            str(target.target),
            by=asker.user,
            ts_ms=now_ms(),
        )

    def _answer(self, said: OperatorCommand) -> Decision:
        state = self._present.state(said.target)
        answer = Answers(self._pipeline, state).answer_to(said) if state is not None else None
        if answer is None:
            raise ConfigError(
                f"the agents do not know the target {said.target} yet", code="SM-5604"
            )
        return answer

    def _given(
        self, request: web.Request, said: OperatorCommand, seen: str | None = None
    ) -> tuple[ChangeId, Decision]:
        """Write a command if the agents would carry it out, and would answer what was seen."""
        told = _printable(str(said))
        address = request.remote or ""
        try:
            answer = self._answer(said)
            if answer.outcome is Outcome.REFUSED:
                why = coded(answer.code, answer.reason)
                raise AccessDenied(
                    f"the agents would refuse the command: {why}", hint=answer.hint, code="SM-6911"
                )
            if seen is not None and seen != fingerprint(answer):
                raise AccessDenied(
                    "the agents would now answer otherwise than the page had shown",
                    hint="read the answer again, and confirm it if it is still what you want",
                    code="SM-6910",
                )
            given = self._send(said)
        except ShardMergeError as error:
            log.warning(
                "command_denied",
                by=said.by,
                client_address=address,
                target=said.target,
                operation=told,
                error=error,
            )
            raise
        log.info(
            "command_given",
            by=said.by,
            client_address=address,
            target=said.target,
            operation=told,
            command=given,
        )
        return given, answer


def _asked_of(values: Mapping[str, str]) -> CommandAsked:
    # Browsers send CR LF for each line end of a text.
    argument = values.get("argument", "").replace("\r\n", "\n")
    return CommandAsked(values.get("kind", ""), values.get("shard", "").strip(), argument.strip())


def _json(body: bytes) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as error:
        raise _unread(f"the body is no JSON: {error}") from None


def _unread(what: str) -> ConfigError:
    return ConfigError(what, hint="see /api/openapi.json", code="SM-6912")


def _printable(text: str) -> str:
    """A text for a line of a log: without characters that change how a terminal shows it."""
    return "".join(c if c.isprintable() else " " for c in text[:_LONGEST_LOGGED])


def _error(error: ShardMergeError, status: int = 0) -> web.Response:
    answer = json_answer(ErrorAnswer(str(error)), status=status or status_of(error))
    if answer.status == 401:
        answer.headers["WWW-Authenticate"] = "Bearer"
    return answer
