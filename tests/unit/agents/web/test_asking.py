"""The pages that ask what the agents know, without a server."""

from __future__ import annotations

import asyncio
from pathlib import Path
from urllib.parse import urlencode

import pytest
from aiohttp import web
from aiohttp.base_protocol import BaseProtocol
from aiohttp.streams import StreamReader
from aiohttp.test_utils import make_mocked_request

from shardmerge.agents.pages.render import Frame
from shardmerge.agents.web.asking import AskingPages
from shardmerge.agents.web.turns import Turns
from shardmerge.cli.planning.alternatives import with_policy
from shardmerge.schemas.model.errors import StackError
from tests.example_pages import ITEMS, NOW_MS, ORDERS, example, orders, pipeline
from tests.served_pages import ExamplePresent

FRAME = Frame("shop", caught_up=True, revision=1, now_ms=NOW_MS)


class Unanswered(ExamplePresent):
    def state(self, target):
        raise StackError("Kafka does not answer", hint="start it", code="SM-4101")

    agents_state = state  # type: ignore[assignment]


def pages(present=None, of=None) -> AskingPages:
    line = example()
    known = present or ExamplePresent(line.state)
    path = Path("/etc/shop.toml")
    return AskingPages(of or pipeline(), path, line.view, known, lambda _: FRAME, turns=Turns())


def text(answer: web.Response) -> str:
    assert answer.text is not None
    return answer.text


def holds(name: str, query: str = "", present=None) -> web.Response:
    async def ask() -> web.Response:
        path = f"/target/{name}/holds{query}"
        request = make_mocked_request("GET", path, match_info={"name": name})
        return await pages(present).holds(request)

    return asyncio.run(ask())


def planned(headers=(), of=None, **form: str) -> web.Response:
    async def ask() -> web.Response:
        loop = asyncio.get_running_loop()
        body = StreamReader(BaseProtocol(loop), 2**16, loop=loop)
        body.feed_data(urlencode(form).encode())
        body.feed_eof()
        kind = {"Content-Type": "application/x-www-form-urlencoded", **dict(headers)}
        request = make_mocked_request("POST", "/plan", headers=kind, payload=body)
        return await pages(of=of).planned(request)

    return asyncio.run(ask())


def test_the_page_of_holds_tells_sides_and_commands():
    answer = holds(str(ORDERS))
    assert answer.status == 200
    line = "shardmerge command skip --pipeline /etc/shop.toml --shard s2/app.orders_7"
    assert line in text(answer)
    assert "shardmerge command resume" in text(answer)
    assert "without the column" in text(answer)


def test_an_unknown_target_is_not_found():
    assert holds("no.such").status == 404


def test_kafka_that_does_not_answer_is_told_with_its_code_and_hint():
    answer = holds(str(ORDERS), present=Unanswered(example().state))
    assert answer.status == 503
    assert "SM-4101: Kafka does not answer" in text(answer)
    assert "→ start it" in text(answer)


def test_a_pasted_statement_is_planned_for_the_shards_that_are_named():
    sql = "ALTER TABLE x MODIFY note TEXT"
    answer = planned(target=str(ORDERS), shards="orders_3", sql=sql)
    assert answer.status == 200
    assert "ALTER TABLE `orders_3` MODIFY note TEXT" in text(answer)
    assert "ALTER TABLE `merged`.`orders` MODIFY COLUMN `note` text" in text(answer)
    assert "Nothing would be held or paused. 1 step." in text(answer)


def test_a_plan_that_holds_tells_the_sides_and_the_ways_out():
    answer = planned(target=str(ORDERS), shards="orders_3", sql="ALTER TABLE x MODIFY total DATE")
    assert "1 hold, 1 shard held at the end." in text(answer)
    assert "shardmerge command replace" in text(answer)
    assert "<code>date</code>" in text(answer)


def test_a_plan_that_pauses_is_not_called_good():
    holding = with_policy(pipeline(), "existing_rows", "hold")
    sql = "ALTER TABLE x DROP COLUMN name, ADD COLUMN name VARCHAR(40)"
    answer = planned(of=holding, target=str(ITEMS), shards="items_1", sql=sql)
    assert "Nothing would be held" not in text(answer)
    assert "0 holds, 0 shards held at the end. 1 pause, 1 shard paused at the end." in text(answer)
    assert "its rows wait until an operator resumes it" in text(answer)
    assert "shardmerge command resume" in text(answer)


def test_shards_that_are_paused_already_are_told_and_are_no_finding():
    sql = "ALTER TABLE x MODIFY note TEXT"
    answer = planned(target=str(ORDERS), shards="orders_3", sql=sql)
    assert "Nothing would be held or paused. 1 step." in text(answer)
    assert "Paused already now: " in text(answer)
    assert f"<code>{orders(9)}</code>" in text(answer)


def test_a_plan_changes_nothing():
    made = pages()
    before = made._present.agents_state()

    async def ask() -> None:
        loop = asyncio.get_running_loop()
        body = StreamReader(BaseProtocol(loop), 2**16, loop=loop)
        body.feed_data(urlencode({"target": str(ORDERS), "sql": "DROP TABLE {table}"}).encode())
        body.feed_eof()
        kind = {"Content-Type": "application/x-www-form-urlencoded"}
        await made.planned(make_mocked_request("POST", "/plan", headers=kind, payload=body))

    asyncio.run(ask())
    assert made._present.agents_state() is before


@pytest.mark.parametrize(
    ("form", "what"),
    [
        ({"target": "no.such", "sql": "x"}, "there is no target no.such"),
        ({"sql": "x"}, "there is no target (none chosen)"),
        ({"target": str(ORDERS), "sql": " "}, "no statement was pasted"),
        ({"target": str(ORDERS), "shards": "nobody", "sql": "x"}, "no shard was chosen"),
    ],
)
def test_what_cannot_be_planned_is_told_in_the_form(form, what):
    answer = planned(**form)
    assert answer.status == 400
    assert f"SM-5604: {what}" in text(answer)


def test_what_was_pasted_stays_in_the_form_as_text():
    answer = planned(target=str(ORDERS), shards="nobody", sql="</textarea><script>x</script>")
    assert "&lt;/textarea&gt;&lt;script&gt;" in text(answer)


def test_a_statement_that_cannot_be_read_is_a_hold_of_the_plan():
    answer = planned(target=str(ORDERS), shards="orders_3", sql="ALTER TABLE x WOBBLE y")
    assert answer.status == 200
    assert "1 hold" in text(answer)


def test_a_form_of_another_site_is_refused():
    with pytest.raises(web.HTTPForbidden):
        planned(headers=[("Sec-Fetch-Site", "cross-site")], target=str(ORDERS), sql="x")
