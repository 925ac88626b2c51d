"""The answers of ``/api``, without a server."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request

from shardmerge.agents.preview.simulated_agents import AgentsState
from shardmerge.agents.status.connector_log import ConnectorLog
from shardmerge.agents.web import answers, asking, server
from shardmerge.connectors.formats.connector_status import ConnectorState
from tests.example_pages import ORDERS, example
from tests.served_pages import ExamplePresent, status_web


def asked(path: str) -> web.Response:
    async def ask() -> web.Response:
        app = status_web(example().view, ExamplePresent(AgentsState())).web_app
        request = make_mocked_request("GET", path)
        match = await app.router.resolve(request)
        request._match_info = match
        answer = await match.handler(request)
        assert isinstance(answer, web.Response)
        return answer

    return asyncio.run(ask())


def told(path: str) -> Any:
    answer = asked(path)
    assert answer.status == 200
    return json.loads(answer.text or "")


@pytest.mark.parametrize("rest", ["status", *(f"target/{ORDERS}{r}" for r in (
    "", "/matrix", "/changes", "/holds"))])  # fmt: skip
def test_json_is_made_beside_the_agents_event_loop(
    rest: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    makers: list[int] = []
    real = answers.json_answer

    def noted(value: Any, *, status: int = 200) -> web.Response:
        makers.append(threading.get_ident())
        return real(value, status=status)

    for module in (server, asking):
        monkeypatch.setattr(module, "json_answer", noted)
    told(f"/api/{rest}")
    assert len(makers) == 1
    assert threading.get_ident() not in makers


def test_the_changes_are_searched_and_come_in_pages() -> None:
    path = f"/api/target/{ORDERS}/changes"
    found = told(f"{path}?search=orders_7&page=9")
    assert (found["page"], found["pages"], found["change_count"]) == (1, 1, 6)
    names = {n for c in found["changes"] for g in c["shards"] for n in g["shards"]}
    assert names == {"s2/app.orders_7"}
    assert asked(f"{path}?page=0").status == 400


def test_an_open_page_is_stale_when_a_connector_has_another_state() -> None:
    seen = ConnectorLog()
    view = example().view
    found = status_web(view, ExamplePresent(AgentsState()), connectors=seen)
    before = found._revision()
    seen.take([ConnectorState("s1", "shop.s1", "PAUSED")], 1)
    assert found._revision() == before + 1
