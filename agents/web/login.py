"""Signing in with a token, and signing out."""

from __future__ import annotations

import re
from collections.abc import Callable

from aiohttp import web

from shardmerge.agents.pages.command_pages import login_page
from shardmerge.agents.pages.render import Frame
from shardmerge.connectors.event_log import logger
from shardmerge.schemas.model.errors import ShardMergeError

from .admission import Admission
from .answers import html, text_of
from .refusals import status_of

log = logger(__name__)

_BACK = re.compile(r"/(target/[\w.~$%-]+(/holds|/commands|/command)?|plan)?", re.ASCII)
_LONGEST = 2_000


class LoginPages:
    """Serves ``/login`` and ``/logout``.

    Args:
        admission: Knows the tokens.
        frame: Makes the frame of a page.
    """

    def __init__(self, admission: Admission, frame: Callable[[web.Request], Frame]) -> None:
        self._admission = admission
        self._frame = frame

    async def form(self, request: web.Request) -> web.Response:
        """The form."""
        back = back_to(request.query.get("back", ""))
        return html(login_page(self._frame(request), back))

    async def log_in(self, request: web.Request) -> web.Response:
        """Takes the form. A right token begins a new session."""
        form = await request.post()
        back = back_to(text_of(form, "back"))
        try:
            cookie = self._admission.log_in(request, text_of(form, "token")[:_LONGEST].strip())
        except ShardMergeError as error:
            page = login_page(self._frame(request), back, error)
            return html(page, status=status_of(error))
        answer = web.Response(status=303, headers={"Location": back, "Cache-Control": "no-store"})
        self._admission.set_session(answer, cookie)
        return answer

    async def log_out(self, request: web.Request) -> web.Response:
        """Ends the session, also for whoever has copied its cookie."""
        form = await request.post()
        try:
            asker = self._admission.check_form(request, text_of(form, "key"))
        except ShardMergeError as error:
            page = login_page(self._frame(request), "/", error)
            return html(page, status=status_of(error))
        answer = web.Response(status=303, headers={"Location": "/", "Cache-Control": "no-store"})
        try:
            await self._admission.end_session(asker)
        except ShardMergeError as error:
            log.warning("login_not_ended", by=asker.user, error=error)
            page = login_page(self._frame(request), "/", error)
            answer = html(page, status=503)
        else:
            log.info("login_ended", by=asker.user, client_address=request.remote or "")
        self._admission.set_session(answer, "")
        return answer


def back_to(path: str) -> str:
    """The path if it is one of these pages, else the overview: never another site."""
    return path if _BACK.fullmatch(path) else "/"
