"""A worker's pages, for tests of who may command there, and how."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from aiohttp.test_utils import TestClient, TestServer

from shardmerge.schemas.pipeline.settings import Pipeline
from tests.access_pages import OLGA, GivenCommands
from tests.example_pages import ORDERS, ExampleLine, example, orders
from tests.served_pages import ExampleEnded, ExamplePresent, status_web

HELD = str(orders(7))
COMMAND = f"/target/{ORDERS}/command"
API = f"/api/target/{ORDERS}/commands"
SKIP = {"kind": "skip", "shard": HELD}


@dataclass
class Site:
    """A worker's pages, as a program without a browser sees them."""

    client: TestClient[Any, Any]
    line: ExampleLine
    given: GivenCommands

    @property
    def origin(self) -> str:
        return str(self.client.make_url("/")).rstrip("/")

    async def sign_in(self, token: str = OLGA, **headers: str) -> int:
        form = {"token": token, "back": f"/target/{ORDERS}"}
        sent = {"Origin": self.origin} | headers
        answer = await self.client.post("/login", data=form, headers=sent, allow_redirects=False)
        return answer.status

    async def form(self, path: str = f"{COMMAND}?kind=skip&shard={HELD}", **headers: str) -> Form:
        answer = await self.client.get(path, headers=headers)
        return Form(await answer.text(), answer.status)

    async def send(self, form: dict[str, str], path: str = COMMAND, **headers: str) -> Form:
        sent = {"Origin": self.origin} | {k: v for k, v in headers.items() if v}
        if headers.get("Origin") == "":
            del sent["Origin"]
        answer = await self.client.post(path, data=form, headers=sent, allow_redirects=False)
        return Form(await answer.text(), answer.status, answer.headers.get("Location", ""))


@dataclass
class Form:
    """A page."""

    text: str
    status: int
    location: str = ""

    def value(self, name: str) -> str:
        """The value of a hidden field; "" without it."""
        found = re.search(rf'name="{name}" value="([^"]*)"', self.text)
        return found[1] if found else ""

    def giving(self) -> dict[str, str]:
        """The form that gives what the page shows."""
        return SKIP | {name: self.value(name) for name in ("key", "seen")} | {"step": "give"}


def on(
    of: Pipeline,
    play: Callable[[Site], Awaitable[None]],
    *,
    answers: bool = True,
    ended: ExampleEnded | None = None,
) -> None:
    async def run() -> None:
        line = example()
        present = ExamplePresent(line.state)
        given = GivenCommands(line, present, answers=answers)
        app = status_web(line.view, present, of, given, ended).web_app
        async with TestClient(TestServer(app, host="127.0.0.1")) as client:
            await play(Site(client, line, given))

    asyncio.run(run())
