"""Signing in with a token, the session's cookie, and signing out on every worker."""

from __future__ import annotations

from pathlib import Path

from shardmerge.agents.access.failures import MOST
from tests.access_pages import OLGA, with_tokens
from tests.example_pages import ORDERS
from tests.served_pages import ExampleEnded
from tests.unit.agents.web.commanded_pages import API, SKIP, Site, on


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
