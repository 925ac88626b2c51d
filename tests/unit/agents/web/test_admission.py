"""Who may command: whose forms, cookies, tokens and proxies' headers count."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.access_pages import IVAN, OLGA, behind_proxy, with_tokens
from tests.example_pages import ORDERS, pipeline
from tests.unit.agents.web.commanded_pages import API, COMMAND, HELD, SKIP, Site, on


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
