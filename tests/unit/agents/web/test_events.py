"""Server-sent events, with an answer that is kept in memory."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request

from shardmerge.agents.web import events
from shardmerge.agents.web.events import RevisionEvents


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    found: list[bytes] = []

    async def prepare(_: web.StreamResponse, __: web.BaseRequest) -> None:
        return None

    async def write(_: web.StreamResponse, data: bytes) -> None:
        found.append(data)

    monkeypatch.setattr(web.StreamResponse, "prepare", prepare)
    monkeypatch.setattr(web.StreamResponse, "write", write)
    return found


async def until(condition: Callable[[], bool]) -> None:
    for _ in range(500):
        if condition():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it did not come")


def test_a_page_is_told_the_revision_at_once_and_after_each_change(written):
    revision = 3

    async def play() -> None:
        nonlocal revision
        told = RevisionEvents(lambda: revision, pause_s=0.01)
        task = asyncio.create_task(told.serve(make_mocked_request("GET", "/events")))
        await until(lambda: len(written) == 1)
        revision = 5
        await until(lambda: len(written) == 2)
        await told.end()
        await asyncio.wait_for(task, 10)

    asyncio.run(play())
    assert written == [b"event: revision\ndata: 3\n\n", b"event: revision\ndata: 5\n\n"]


def test_a_connection_without_news_gets_a_comment(written, monkeypatch):
    monkeypatch.setattr(events, "SILENCE_S", 0.02)

    async def play() -> None:
        told = RevisionEvents(lambda: 1, pause_s=0.01)
        task = asyncio.create_task(told.serve(make_mocked_request("GET", "/events")))
        await until(lambda: b": nothing new\n\n" in written)
        await told.end()
        await asyncio.wait_for(task, 10)

    asyncio.run(play())
    assert written.count(b"event: revision\ndata: 1\n\n") == 1


def test_only_so_many_pages_are_told(written, monkeypatch):
    monkeypatch.setattr(events, "MAX_STREAMS", 1)

    async def play() -> int:
        told = RevisionEvents(lambda: 1, pause_s=0.01)
        task = asyncio.create_task(told.serve(make_mocked_request("GET", "/events")))
        await until(lambda: bool(written))
        refused = await told.serve(make_mocked_request("GET", "/events"))
        await told.end()
        await asyncio.wait_for(task, 10)
        return refused.status

    assert asyncio.run(play()) == 503


def test_a_page_that_is_closed_makes_room(monkeypatch):
    async def gone(*_: object) -> None:
        raise ConnectionResetError

    monkeypatch.setattr(web.StreamResponse, "prepare", gone)
    monkeypatch.setattr(events, "MAX_STREAMS", 1)

    async def play() -> list[int]:
        told = RevisionEvents(lambda: 1)
        request = make_mocked_request("GET", "/events")
        return [(await told.serve(request)).status for _ in range(3)]

    assert asyncio.run(play()) == [200, 200, 200]
