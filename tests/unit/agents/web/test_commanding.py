"""Commands from the pages and from ``/api``: who may give them, and which forms count."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from aiohttp.test_utils import TestClient, TestServer

from shardmerge.agents.access.failures import MOST
from shardmerge.schemas.pipeline.settings import Pipeline
from shardmerge.schemas.records.operator_commands import CommandKind
from tests.access_pages import IVAN, OLGA, GivenCommands, behind_proxy, with_tokens
from tests.example_pages import ORDERS, ExampleLine, example, orders, pipeline
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


@pytest.fixture
def told(caplog: pytest.LogCaptureFixture) -> Iterator[Callable[[], list[tuple[str, Any]]]]:
    """The log's events with their fields."""
    caplog.set_level(logging.INFO)
    yield lambda: [
        (r.event, r.fields)  # type: ignore[attr-defined]
        for r in caplog.records
        if hasattr(r, "event")
    ]
    assert OLGA not in caplog.text


def test_by_default_no_page_has_a_button_and_no_command_counts(told) -> None:
    async def play(site: Site) -> None:
        for path in ("/", f"/target/{ORDERS}", f"/target/{ORDERS}/holds"):
            text = (await site.form(path)).text
            assert "/command?" not in text
            assert 'action="/target' not in text.replace(f'action="/target/{ORDERS}#matrix"', "")
            assert "Sign in" not in text
        shown = await site.form()
        assert shown.status == 403
        assert "<button>" not in shown.text
        for answer in (await site.send(SKIP | {"step": "give"}), await site.send({}, "/login")):
            assert answer.status == 403
            assert "SM-6902" in answer.text
        called = await site.client.post(API, json=SKIP, headers={"Authorization": f"Bearer {OLGA}"})
        assert called.status == 403
        assert site.given.commands == []

    on(pipeline(), play)
    assert [event for event, _ in told()] == ["command_denied", "login_denied", "command_denied"]


def test_a_user_who_signed_in_gives_a_command_that_was_shown_first(tmp_path: Path, told) -> None:
    async def play(site: Site) -> None:
        assert await site.sign_in() == 303
        held = await site.form(f"/target/{ORDERS}/holds")
        assert '<input type="hidden" name="kind" value="skip">' in held.text
        shown = await site.form()
        assert shown.status == 200
        assert "What the agents would answer now" in shown.text
        assert site.given.commands == []
        done = await site.send(shown.giving())
        assert (done.status, done.location.partition("?")[0]) == (303, f"/target/{ORDERS}/commands")
        [said] = site.given.commands
        assert (said.kind, said.shard, said.by) == (CommandKind.SKIP, orders(7), "olga")
        after = await site.form(done.location)
        assert "The agents carried out the command skip" in after.text
        assert '<td role="cell" data-label="Who">olga</td>' in after.text

    on(with_tokens(tmp_path), play)
    events = told()
    assert [event for event, _ in events] == ["login_accepted", "command_given"]
    fields = events[1][1]
    assert (fields["by"], fields["client_address"]) == ("olga", "127.0.0.1")
    assert fields["operation"] == f"skip {HELD}"


def test_a_command_that_is_not_answered_yet_is_shown_as_such(tmp_path: Path) -> None:
    async def play(site: Site) -> None:
        await site.sign_in()
        done = await site.send((await site.form()).giving())
        assert "have not answered it yet" in (await site.form(done.location)).text

    on(with_tokens(tmp_path), play, answers=False)


def test_a_wrong_token_signs_nobody_in_and_is_logged_without_it(tmp_path: Path, told) -> None:
    async def play(site: Site) -> None:
        assert await site.sign_in("a-wrong-token-0123456789") == 401
        assert not list(site.client.session.cookie_jar)
        assert (await site.form()).status == 401
        assert (await site.send(SKIP | {"step": "give"})).status == 401

    on(with_tokens(tmp_path), play)
    [first, second] = told()
    assert (first[0], first[1]["code"], second[0]) == ("login_denied", "SM-6904", "command_denied")
    assert "wrong-token" not in str(told())


def test_after_many_wrong_tokens_not_even_the_right_one_counts(tmp_path: Path) -> None:
    async def play(site: Site) -> None:
        for n in range(MOST):
            assert await site.sign_in(f"a-wrong-token-0123456789-{n}") == 401
        assert await site.sign_in() == 429
        bearer = {"Authorization": f"Bearer {OLGA}"}
        assert (await site.client.post(API, json=SKIP, headers=bearer)).status == 429

    on(with_tokens(tmp_path), play)


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({"Origin": "https://evil.example"}, "SM-6906"),
        ({"Origin": "null"}, "SM-6906"),
        ({"Origin": ""}, "SM-6906"),
        ({"Sec-Fetch-Site": "cross-site"}, "SM-6906"),
        ({"Sec-Fetch-Site": "same-site"}, "SM-6906"),
        ({"Host": "evil.example", "Origin": "http://evil.example"}, "SM-69"),
    ],
)
def test_a_form_of_another_origin_gives_no_command(
    tmp_path: Path, headers: dict[str, str], code: str
) -> None:
    async def play(site: Site) -> None:
        await site.sign_in()
        answer = await site.send((await site.form()).giving(), **headers)
        assert answer.status in (401, 403)
        assert code in answer.text
        assert site.given.commands == []
        assert await site.sign_in(**({"Origin": "null"} | headers)) == 403

    on(with_tokens(tmp_path), play)


@pytest.mark.parametrize("key", ["", "0" * 64, "of ivan", "é"])
def test_a_form_without_the_key_of_its_session_gives_no_command(tmp_path: Path, key: str) -> None:
    async def play(site: Site) -> None:
        await site.sign_in(IVAN)
        of_ivan = (await site.form()).value("key")
        await site.sign_in(OLGA)
        shown = await site.form()
        assert shown.value("key") != of_ivan
        sent = shown.giving() | {"key": of_ivan if key == "of ivan" else key}
        answer = await site.send(sent)
        assert answer.status == 403
        assert "SM-6907" in answer.text
        assert site.given.commands == []

    on(with_tokens(tmp_path), play)


def test_what_changed_meanwhile_is_shown_again_and_not_given(tmp_path: Path) -> None:
    async def play(site: Site) -> None:
        await site.sign_in()
        shown = await site.form()
        site.line.run(orders(3), "ALTER TABLE orders_3 MODIFY note TEXT")
        site.line.run(orders(7), "ALTER TABLE orders_7 ADD COLUMN more INT")
        present = site.given._present
        present.take(site.line.state)
        again = await site.send(shown.giving())
        assert again.status == 409
        assert "SM-6910" in again.text
        assert again.value("seen") not in ("", shown.value("seen"))
        assert site.given.commands == []
        assert (await site.send(again.giving())).status == 303

    on(with_tokens(tmp_path), play)


def test_a_command_that_would_be_refused_has_no_button_and_is_not_given(tmp_path: Path) -> None:
    async def play(site: Site) -> None:
        await site.sign_in()
        flowing = "s2/app.orders_1"
        shown = await site.form(f"{COMMAND}?kind=skip&shard={flowing}")
        assert "The agents would refuse this command" in shown.text
        assert 'value="give"' not in shown.text
        sent = shown.giving() | {"shard": flowing, "key": shown.value("key")}
        answer = await site.send(sent)
        assert answer.status == 409
        assert "SM-6911" in answer.text
        assert site.given.commands == []

    on(with_tokens(tmp_path), play)


@pytest.mark.parametrize(
    ("form", "code"),
    [
        ({"kind": "wobble", "shard": HELD}, "SM-5601: there is no command wobble"),
        ({"kind": "adopt"}, "SM-5601: there is no command adopt"),
        ({"kind": "skip"}, "SM-5601: skip needs a shard"),
        ({"kind": "skip", "shard": "x"}, "SM-5601: a shard is source/database.table"),
        ({"kind": "disable", "shard": HELD}, "SM-5601: disable takes no shard"),
    ],
)
def test_a_form_that_is_no_command_is_told(tmp_path: Path, form: dict[str, str], code: str) -> None:
    async def play(site: Site) -> None:
        await site.sign_in()
        key = (await site.form(COMMAND)).value("key")
        for step in ("show", "give"):
            answer = await site.send(form | {"key": key, "step": step})
            assert answer.status == 400
            assert code in answer.text

    on(with_tokens(tmp_path), play)


def test_a_written_schema_is_shown_and_given(tmp_path: Path) -> None:
    async def play(site: Site) -> None:
        await site.sign_in()
        empty = await site.form(f"{COMMAND}?kind=replace&shard={HELD}")
        assert "Write the ALTER TABLE" in empty.text
        assert "What the agents would answer" not in empty.text
        sql = "ALTER TABLE orders_7\r\nADD COLUMN level INT"
        ask = {"kind": "replace", "shard": HELD, "argument": sql, "key": empty.value("key")}
        shown = await site.send(ask)
        assert shown.status == 200
        assert "takes out" not in shown.text
        done = await site.send(shown.giving() | ask | {"step": "give", "seen": shown.value("seen")})
        assert done.status == 303
        [said] = site.given.commands
        assert said.argument == sql.replace("\r\n", "\n")

    on(with_tokens(tmp_path), play)


def test_signing_out_needs_the_key_and_ends_the_session(tmp_path: Path) -> None:
    async def play(site: Site) -> None:
        await site.sign_in()
        key = (await site.form()).value("key")
        assert (await site.send({}, "/logout")).status == 403
        assert (await site.form()).status == 200
        assert (await site.send({"key": key}, "/logout")).status == 303
        assert (await site.form()).status == 401

    on(with_tokens(tmp_path), play)


def cookies(site: Site) -> str:
    """A copy of what the browser keeps."""
    jar = site.client.session.cookie_jar.filter_cookies(site.client.make_url("/"))
    return "; ".join(f"{name}={each.value}" for name, each in jar.items())


def test_a_copied_cookie_counts_on_no_worker_after_its_user_signed_out(tmp_path: Path) -> None:
    shared = ExampleEnded()
    copied = ""

    async def sign_out(site: Site) -> None:
        nonlocal copied
        await site.sign_in()
        copied = cookies(site)
        assert (await site.form(Cookie=copied)).status == 200
        key = (await site.form()).value("key")
        assert (await site.send({"key": key}, "/logout")).status == 303
        await site.sign_in()
        assert (await site.form()).status == 200, "a new session counts"
        site.client.session.cookie_jar.clear()
        answer = await site.send(SKIP | {"step": "give"}, Cookie=copied)
        assert (answer.status, "has ended this session" in answer.text) == (401, True)

    async def copy(site: Site) -> None:
        assert (await site.form(Cookie=copied)).status == 401

    on(with_tokens(tmp_path), sign_out, ended=shared)
    on(with_tokens(tmp_path), copy, ended=shared)


def test_a_worker_that_has_not_read_the_ended_sessions_accepts_none(tmp_path: Path) -> None:
    ended = ExampleEnded(caught_up=False)

    async def play(site: Site) -> None:
        assert await site.sign_in() == 303
        answer = await site.send(SKIP | {"step": "give"})
        assert (answer.status, "SM-6913" in answer.text) == (503, True)
        ended.caught_up = True
        assert (await site.form()).status == 200

    on(with_tokens(tmp_path), play, ended=ended)


def test_who_signs_out_is_told_when_other_workers_do_not_know_it(tmp_path: Path, told) -> None:
    async def play(site: Site) -> None:
        await site.sign_in()
        copied = cookies(site)
        key = (await site.form()).value("key")
        answer = await site.send({"key": key}, "/logout")
        assert (answer.status, "SM-6914" in answer.text) == (503, True)
        assert (await site.form(Cookie=copied)).status == 401

    on(with_tokens(tmp_path), play, ended=ExampleEnded(fails=True))
    assert "login_not_ended" in [event for event, _ in told()]


def test_each_login_has_a_session_of_its_own_that_scripts_cannot_read(tmp_path: Path) -> None:
    async def play(site: Site) -> None:
        cookies = []
        for _ in range(2):
            form = {"token": OLGA}
            headers = {"Origin": site.origin, "Cookie": "shardmerge-shop=chosen.by.somebody.else"}
            answer = await site.client.post(
                "/login", data=form, headers=headers, allow_redirects=False
            )
            cookies.append(answer.headers["Set-Cookie"])
        assert cookies[0] != cookies[1]
        for text in cookies:
            assert text.startswith("shardmerge-shop=")
            assert "HttpOnly" in text
            assert "SameSite=Strict" in text
            assert "Secure" not in text
            assert OLGA not in text
            assert "chosen" not in text

    on(with_tokens(tmp_path), play)


def test_with_https_the_cookie_is_bound_to_the_host_and_to_https(tmp_path: Path) -> None:
    async def play(site: Site) -> None:
        headers = {"Origin": "https://pages.example.com"}
        answer = await site.client.post(
            "/login", data={"token": OLGA}, headers=headers, allow_redirects=False
        )
        text = answer.headers["Set-Cookie"]
        assert text.startswith("__Host-shardmerge-shop=")
        assert "Secure" in text
        assert "Path=/" in text
        assert await site.sign_in() == 403  # the worker's own address is not that of the pages

    on(with_tokens(tmp_path, origin="https://pages.example.com"), play)


def test_the_login_leads_to_no_other_site(tmp_path: Path) -> None:
    async def play(site: Site) -> None:
        for back in ("https://evil.example", "//evil.example", "/\\evil.example", "/x\r\nA: b"):
            answer = await site.send({"token": OLGA, "back": back}, "/login")
            assert (answer.status, answer.location) == (303, "/")
        answer = await site.send({"token": OLGA, "back": f"/target/{ORDERS}/holds"}, "/login")
        assert answer.location == f"/target/{ORDERS}/holds"

    on(with_tokens(tmp_path), play)


# --- behind a proxy ---

PROXIED = {"X-Forwarded-User": "olga@example.com"}
ORIGIN = "https://pages.example.com"


def test_a_user_whom_the_proxy_names_gives_a_command(told) -> None:
    async def play(site: Site) -> None:
        first = await site.client.get(COMMAND, headers=PROXIED)
        text = first.headers["Set-Cookie"]
        assert text.startswith("__Host-shardmerge-shop=")
        assert "HttpOnly" in text
        # The test's client speaks HTTP, and would not send a cookie for HTTPS.
        headers = PROXIED | {"Cookie": text.partition(";")[0], "Origin": ORIGIN}
        shown = await site.form(**headers)
        done = await site.send(shown.giving(), **headers)
        assert done.status == 303
        assert site.given.commands[0].by == "olga@example.com"
        assert (await site.send(shown.giving(), **(PROXIED | {"Origin": ORIGIN}))).status == 403

    on(behind_proxy(ORIGIN), play)
    assert told()[0][1]["by"] == "olga@example.com"


@pytest.mark.parametrize(
    ("proxy", "groups", "headers", "code"),
    [
        ("10.0.0.5", "", PROXIED, "SM-6908"),
        ("127.0.0.1", "", {}, "SM-6908"),
        ("127.0.0.1", "", {"X-Forwarded-User": "  "}, "SM-6908"),
        ("127.0.0.1", "", {"X-Forwarded-User": "o\u202elga"}, "SM-6908"),
        ("127.0.0.1", "dba", PROXIED, "SM-6909"),
        ("127.0.0.1", "dba", PROXIED | {"X-Groups": "users, dbas"}, "SM-6909"),
    ],
)
def test_a_header_counts_only_from_the_proxy_and_with_a_group(
    proxy: str, groups: str, headers: dict[str, str], code: str
) -> None:
    async def play(site: Site) -> None:
        page = await site.client.get(f"/target/{ORDERS}/holds", headers=headers)
        assert page.status == 200
        assert "Set-Cookie" not in page.headers
        assert "/command" not in (await page.text()).replace(f"{ORDERS}/commands", "")
        answer = await site.send(SKIP | {"step": "give"}, **headers, Origin=ORIGIN)
        assert (answer.status, code in answer.text) == (403, True)
        called = await site.client.post(API, json=SKIP, headers=headers)
        assert (called.status, code in await called.text()) == (403, True)
        assert site.given.commands == []

    on(behind_proxy(ORIGIN, proxy=proxy, groups=groups), play)


def test_a_user_of_the_group_may_command() -> None:
    async def play(site: Site) -> None:
        headers = PROXIED | {"X-Groups": "users, dba"}
        answer = await site.client.post(API, json=SKIP, headers=headers)
        assert answer.status == 202
        foreign = headers | {"Origin": "https://evil.example"}
        assert (await site.client.post(API, json=SKIP, headers=foreign)).status == 403

    on(behind_proxy(ORIGIN, proxy="127.0.0.0/8", groups="dba"), play)


def test_a_header_that_came_twice_names_nobody() -> None:
    async def play(site: Site) -> None:
        headers = [("X-Forwarded-User", "olga"), ("X-Forwarded-User", "root")]
        answer = await site.client.post(API, json=SKIP, headers=headers)
        assert answer.status == 403
        assert site.given.commands == []

    on(behind_proxy(ORIGIN), play)


# --- the API ---


def test_the_api_gives_a_command_and_shows_its_answer(tmp_path: Path) -> None:
    async def play(site: Site) -> None:
        bearer = {"Authorization": f"Bearer {IVAN}"}
        asked = await site.client.post(API, json=SKIP | {"only_ask": True}, headers=bearer)
        assert asked.status == 200
        told = await asked.json()
        assert (told["id"], told["answer"]["outcome"]) == ("", "no-op")
        assert site.given.commands == []
        answer = await site.client.post(API, json=SKIP, headers=bearer)
        assert answer.status == 202
        given = await answer.json()
        listed = await (await site.client.get(API)).json()
        newest = listed["commands"][0]
        assert (newest["id"], newest["by"], newest["shard"]) == (given["id"], "ivan", HELD)
        assert newest["answer"]["outcome"] == "no-op"
        assert (await site.client.post(API, json=SKIP, headers=bearer)).status == 409

    on(with_tokens(tmp_path), play)


@pytest.mark.parametrize(
    ("sent", "headers", "status"),
    [
        ({"json": SKIP}, {}, 401),
        ({"json": SKIP}, {"Authorization": "Bearer a-wrong-token-0123456789"}, 401),
        ({"json": SKIP}, {"Authorization": f"Basic {OLGA}"}, 401),
        ({"data": SKIP}, {"Authorization": f"Bearer {OLGA}"}, 415),
        ({"json": []}, {"Authorization": f"Bearer {OLGA}"}, 400),
        ({"json": {"shard": HELD}}, {"Authorization": f"Bearer {OLGA}"}, 400),
        ({"json": SKIP | {"by": "root"}}, {"Authorization": f"Bearer {OLGA}"}, 400),
        ({"json": SKIP | {"argument": "\ud800"}}, {"Authorization": f"Bearer {OLGA}"}, 400),
    ],
)
def test_a_call_of_the_api_that_does_not_count_is_answered_with_its_reason(
    tmp_path: Path, sent: dict[str, Any], headers: dict[str, str], status: int
) -> None:
    async def play(site: Site) -> None:
        answer = await site.client.post(API, headers=headers, **sent)
        assert answer.status == status
        assert (await answer.json())["error"].startswith("SM-")
        assert ("WWW-Authenticate" in answer.headers) == (status == 401)
        assert site.given.commands == []

    on(with_tokens(tmp_path), play)


def test_a_sessions_cookie_does_not_count_in_the_api(tmp_path: Path) -> None:
    async def play(site: Site) -> None:
        await site.sign_in()
        answer = await site.client.post(API, json=SKIP, headers={"Origin": site.origin})
        assert answer.status == 401

    on(with_tokens(tmp_path), play)


def test_a_name_in_a_record_is_text_on_the_page(tmp_path: Path) -> None:
    async def play(site: Site) -> None:
        await site.sign_in()
        await site.send((await site.form()).giving())
        [said] = site.given.commands
        evil = replace(said, by="<script>alert(1)</script>", argument="</pre><b>")
        site.line.view.apply(evil)
        text = (await site.form(f"/target/{ORDERS}/commands")).text
        assert "<script>alert(1)" not in text
        assert "&lt;script&gt;alert(1)" in text
        assert "</pre><b>" not in text

    on(with_tokens(tmp_path), play)


def test_a_command_about_a_target_that_is_not_there_is_not_found(tmp_path: Path) -> None:
    async def play(site: Site) -> None:
        await site.sign_in()
        for path in ("/target/no.such/command", "/target/no.such/commands"):
            assert (await site.form(path)).status == 404
        assert (await site.send(SKIP, "/target/no.such/command")).status == 404
        bearer = {"Authorization": f"Bearer {OLGA}"}
        answer = await site.client.post("/api/target/no.such/commands", json=SKIP, headers=bearer)
        assert answer.status == 404

    on(with_tokens(tmp_path), play)
