"""Finds out who sent a request, and refuses what does not count. Each refusal is logged."""

from __future__ import annotations

import secrets
import time
import weakref
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Protocol

from aiohttp import web

from shardmerge.agents.access import gate
from shardmerge.agents.access.calls import Asker, Call
from shardmerge.agents.access.failures import Failures
from shardmerge.agents.access.sessions import (
    SESSION_S,
    Session,
    cookie_of,
    form_key,
    user_of,
)
from shardmerge.agents.pages.visitor import Visitor
from shardmerge.connectors.event_log import logger
from shardmerge.schemas.model.errors import AccessDenied, ConfigError, ShardMergeError
from shardmerge.schemas.pipeline.settings import Pipeline
from shardmerge.schemas.pipeline.web import OFF, PROXY, TOKEN

from .tokens import tokens_of

log = logger(__name__)

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
_NONCE_BYTES = 24


class Ended(Protocol):
    """See ``EndedReader``."""

    caught_up: bool

    def has(self, nonce: str) -> bool:
        """Whether a session was ended."""
        ...

    async def end(self, nonce: str) -> None:
        """End a session on all workers."""
        ...


class Admission:
    """Who may give commands from the pages of one worker.

    Args:
        pipeline: The pipeline of the worker.
        ended: Knows which sessions were ended.
        now_s: Returns seconds since 1970.
    """

    def __init__(
        self, pipeline: Pipeline, ended: Ended, now_s: Callable[[], float] = time.time
    ) -> None:
        self._ended = ended
        self._web = pipeline.web
        self._pipeline = pipeline.name
        self._now_s = now_s
        self._failures = Failures()
        self._askers: dict[int, Asker] = {}
        """Id of an open request → who sent it."""
        self._is_encrypted = self._web.origin.startswith("https:")
        # With this prefix browsers take the cookie from this host alone, and over HTTPS alone.
        prefix = "__Host-" if self._is_encrypted else ""
        self._cookie = f"{prefix}shardmerge-{self._pipeline}"

    def visitor(self, request: web.Request) -> Visitor:
        """Who sees a page."""
        asker = self.asker(request)
        return Visitor(
            access=self._web.commands,
            user=asker.user,
            may_command=asker.may_command,
            form_key=form_key(asker.session, asker.user) if asker.session else "",
            path=request.rel_url.raw_path,
            sign_out=self._web.sign_out,
        )

    def asker(self, request: web.Request) -> Asker:
        """Who sent the request for a page or a form. A token in a header does not count here."""
        known = self._askers.get(id(request))
        if known is None:
            call = self._call(request)
            headers = {k: v for k, v in call.headers.items() if k != "authorization"}
            known = self._askers[id(request)] = self._asker(replace(call, headers=headers))
            # aiohttp's requests have no hash. The entry goes when the request goes.
            weakref.finalize(request, self._askers.pop, id(request), None)
        return known

    @web.middleware
    async def with_form_cookie(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Give a user behind a proxy the cookie from which the keys of forms are made."""
        answer = await handler(request)
        if self._web.commands != PROXY or answer.prepared or answer.content_type != "text/html":
            return answer
        asker = self.asker(request)
        if asker.may_command and not request.cookies.get(self._cookie):
            self._set_cookie(answer, asker.session)
        return answer

    def check_form(self, request: web.Request, key: str) -> Asker:
        """The user who sent a form.

        Args:
            request: The request.
            key: The form's key; "" without one.

        Raises:
            ShardMergeError: The form does not count.
        """
        asker = self.asker(request)
        try:
            gate.check_form(self._web, self._call(request), asker, key)
        except ShardMergeError as error:
            self.log_denied(request, asker.user, error)
            raise
        return asker

    def check_api(self, request: web.Request) -> Asker:
        """The user who sent a command to ``/api``.

        Raises:
            ShardMergeError: The call does not count.
        """
        call = self._call(request)
        if self._web.commands != PROXY:
            call = replace(call, cookie="")
        user = ""
        try:
            sends_token = self._web.commands == TOKEN and bool(call.header("authorization"))
            if sends_token:
                self._check_failures(call)
            asker = self._asker(call)
            user = asker.user
            if sends_token and asker.denied is not None:
                self._failures.note(call.address, self._now_s())
            gate.check_api(self._web, call, asker)
        except ShardMergeError as error:
            self.log_denied(request, user, error)
            raise
        return asker

    def log_in(self, request: web.Request, token: str) -> str:
        """The text of a new session's cookie.

        Args:
            request: The request with the form.
            token: What the form has as token.

        Raises:
            ShardMergeError: The form does not count, or nobody has the token.
        """
        call = self._call(request)
        try:
            if self._web.commands != TOKEN:
                raise AccessDenied("nobody signs in here", code="SM-6902")
            gate.check_origin(self._web, call)
            self._check_failures(call)
            tokens = tokens_of(self._web)
            user = user_of(token, tokens)
            if not user:
                self._failures.note(call.address, self._now_s())
                raise AccessDenied("nobody has this token", code="SM-6904")
        except ShardMergeError as error:
            log.warning("login_denied", client_address=call.address, error=error)
            raise
        log.info("login_accepted", by=user, client_address=call.address)
        expires_s = int(self._now_s()) + SESSION_S
        session = Session(user, secrets.token_urlsafe(_NONCE_BYTES), expires_s)
        return cookie_of(session, tokens[user], self._pipeline)

    def set_session(self, answer: web.StreamResponse, cookie: str) -> None:
        """Let the browser keep a session, or with "" forget it."""
        if cookie:
            self._set_cookie(answer, cookie)
        else:
            answer.del_cookie(
                self._cookie, path="/", secure=self._is_encrypted, httponly=True, samesite="Strict"
            )

    def log_denied(self, request: web.Request, user: str, error: ShardMergeError) -> None:
        """Log a command that was not given."""
        address = request.remote or ""
        path = request.rel_url.raw_path
        log.warning("command_denied", by=user, client_address=address, path=path, error=error)

    def _set_cookie(self, answer: web.StreamResponse, value: str) -> None:
        answer.set_cookie(
            self._cookie, value,
            path="/", max_age=SESSION_S, httponly=True, samesite="Strict",
            secure=self._is_encrypted,
        )  # fmt: skip

    def _asker(self, call: Call) -> Asker:
        web_table = self._web
        if web_table.commands == OFF:
            return gate.asker_of(web_table, {}, self._pipeline, call, self._now_s())
        try:
            tokens = tokens_of(web_table)
        except ConfigError as error:
            return Asker(denied=error)
        asker = gate.asker_of(web_table, tokens, self._pipeline, call, self._now_s())
        if web_table.commands == TOKEN and asker.session:
            return self._unless_ended(asker)
        if web_table.commands == PROXY and asker.may_command and not asker.session:
            # The page's forms get a key, and ``give_form_cookie`` gives what it is made from.
            return replace(asker, session=secrets.token_urlsafe(_NONCE_BYTES))
        return asker

    def _unless_ended(self, asker: Asker) -> Asker:
        if self._ended.has(asker.session):
            error = AccessDenied(
                f"{asker.user} has ended this session", hint="sign in at /login", code="SM-6903"
            )
            return Asker(denied=error)
        if self._ended.caught_up:
            return asker
        return Asker(
            denied=AccessDenied(
                "this worker has not read yet which sessions were ended",
                hint="wait some seconds, and load the page again; the worker's log says whether "
                "Kafka answers",
                code="SM-6913",
            )
        )

    async def end_session(self, asker: Asker) -> None:
        """End a user's session, also for copies of its cookie.

        Raises:
            StackError: The other workers were not told.
        """
        if asker.session:
            await self._ended.end(asker.session)

    def _check_failures(self, call: Call) -> None:
        if self._failures.are_too_many(call.address, self._now_s()):
            raise AccessDenied(
                f"{call.address} sent too many wrong tokens", hint="wait a minute", code="SM-6905"
            )

    def _call(self, request: web.Request) -> Call:
        headers: dict[str, tuple[str, ...]] = {}
        for name, value in request.headers.items():
            headers[name.lower()] = (*headers.get(name.lower(), ()), value)
        # It is the address of the connection; what headers say about addresses does not count.
        return Call(request.remote or "", headers, request.cookies.get(self._cookie, ""))
