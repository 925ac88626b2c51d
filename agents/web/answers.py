"""Headers of the web server's answers, and how queries are read. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from aiohttp import web

from shardmerge.agents.answers.plain import ErrorAnswer
from shardmerge.agents.pages.render import Asked
from shardmerge.schemas.records.plain import to_plain

HEADERS = {
    # A page loads nothing from other hosts, and has no script or style in its HTML.
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; script-src 'self'; "
    "connect-src 'self'; img-src 'self' data:; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    # With "no-referrer" browsers would not tell from which origin a form is sent.
    "Referrer-Policy": "same-origin",
    "Cache-Control": "no-store",
}
NO_TARGET = ErrorAnswer("no decision names this target")
_MOST_DIGITS = 9


def html(text: str, *, status: int = 200) -> web.Response:
    """A page."""
    return web.Response(text=text, content_type="text/html", status=status, headers=HEADERS)


def json_answer(value: Any, *, status: int = 200) -> web.Response:
    """A record, or a plain value, as JSON."""
    text = json.dumps(to_plain(value), ensure_ascii=False, indent=1)
    return web.Response(text=text, content_type="application/json", status=status, headers=HEADERS)


def asked_of(query: Mapping[str, str]) -> Asked:
    """What a query asks for. A parameter that is not a number, but should be, is ignored."""
    return Asked(
        search=query.get("search", "").strip(),
        every_column=query.get("columns") == "all",
        page=_whole(query.get("page", ""), 1),
        older=_whole(query.get("older", ""), 0),
    )


def text_of(form: Mapping[str, object], name: str) -> str:
    """A text of a form; "" if it is missing, or a file."""
    value = form.get(name, "")
    return value if isinstance(value, str) else ""


def faulty(query: Mapping[str, str]) -> str:
    """What is wrong with a query of ``/api``, a sentence; "" for nothing."""
    if query.get("columns", "all") != "all":
        return "columns must be all, or be left out"
    page = query.get("page", "1")
    if not page.isascii() or _whole(page, 0) < 1:
        return "page must be a whole number from 1"
    return ""


def _whole(text: str, default: int) -> int:
    return int(text) if text.isdecimal() and len(text) <= _MOST_DIGITS else default
