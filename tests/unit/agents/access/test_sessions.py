from __future__ import annotations

import pytest

from shardmerge.agents.access.sessions import (
    SESSION_S,
    Session,
    cookie_of,
    form_key,
    session_of,
    user_of,
)

NOW_S = 1_800_000_000
TOKENS = {"olga": "o" * 20, "ivan@example.com": "i" * 20}
OLGA = Session("olga", "n0nce", NOW_S + 60)


def test_a_token_names_its_user():
    assert [user_of(token, TOKENS) for token in TOKENS.values()] == list(TOKENS)
    assert user_of("", TOKENS) == ""
    assert user_of("o" * 19, TOKENS) == ""
    assert user_of("\udc80", TOKENS) == ""
    assert user_of("", {}) == ""


@pytest.mark.parametrize("user", TOKENS)
def test_a_session_comes_back_from_its_cookie(user):
    session = Session(user, "n0nce-_", NOW_S + SESSION_S)
    cookie = cookie_of(session, TOKENS[user], "shop")
    assert session_of(cookie, TOKENS, "shop", NOW_S) == session
    assert all(c.isalnum() or c in ".-_" for c in cookie)


@pytest.mark.parametrize(
    "cookie",
    [
        "",
        ".",
        "...",
        "a.1.b",
        "\xe9.1.n.x",
        "_w.1800000060.n0nce.00",
        cookie_of(OLGA, "x" * 20, "shop"),
        cookie_of(OLGA, TOKENS["olga"], "other"),
        cookie_of(Session("nobody", "n", NOW_S + 60), TOKENS["olga"], "shop"),
        cookie_of(Session("olga", "n.m", NOW_S + 60), TOKENS["olga"], "shop"),
        cookie_of(Session("olga", "n", NOW_S), TOKENS["olga"], "shop"),
        cookie_of(Session("olga", "n", NOW_S + SESSION_S + 1), TOKENS["olga"], "shop"),
        cookie_of(OLGA, TOKENS["olga"], "shop").replace(str(NOW_S + 60), str(NOW_S + 61)),
        cookie_of(OLGA, TOKENS["olga"], "shop").replace("n0nce", "n0ncf"),
        cookie_of(OLGA, TOKENS["olga"], "shop")[:-1],
        "b2xnYQ." + "9" * 5_000 + ".n.x",
    ],
)
def test_no_other_text_is_a_session(cookie):
    assert session_of(cookie, TOKENS, "shop", NOW_S) is None


def test_a_session_ends_when_the_token_is_changed():
    cookie = cookie_of(OLGA, TOKENS["olga"], "shop")
    assert session_of(cookie, TOKENS | {"olga": "p" * 20}, "shop", NOW_S) is None
    assert session_of(cookie, {}, "shop", NOW_S) is None


def test_the_key_of_a_form_differs_by_session_and_user():
    keys = {form_key(s, u) for s in ("a", "b") for u in ("olga", "ivan")}
    assert len(keys) == 4
