from __future__ import annotations

import pytest

from shardmerge.agents.access.calls import Asker, Call
from shardmerge.agents.access.gate import asker_of, check_api, check_form, check_origin
from shardmerge.agents.access.sessions import Session, cookie_of, form_key
from shardmerge.schemas.model.errors import AccessDenied
from shardmerge.schemas.pipeline.web import Web

NOW_S = 1_800_000_000
TOKENS = {"olga": "o" * 20}
TOKEN = Web("token", tokens=(("olga", "env:OLGA"),))
PROXY = Web("proxy", "https://p.example", proxies=("10.0.0.5", "10.1.0.0/24", "2001:db8::/64"))
GROUPS = Web("proxy", "https://p.example", proxies=("10.0.0.5",), groups_header="X-Groups",
             groups=("dba", "sre"))  # fmt: skip


def call(address: str = "127.0.0.1", cookie: str = "", **headers: str) -> Call:
    return Call(address, {k.replace("_", "-"): (v,) for k, v in headers.items()}, cookie)


def code_of(web: Web, asked: Call) -> str:
    denied = asker_of(web, TOKENS, "shop", asked, NOW_S).denied
    return denied.code if denied else ""


def test_without_the_table_nobody_may_command():
    assert code_of(Web(), call(authorization=f"Bearer {'o' * 20}")) == "SM-6902"


@pytest.mark.parametrize(
    ("sent", "code"),
    [
        (f"Bearer {'o' * 20}", ""),
        (f"bearer  {'o' * 20} ", ""),
        (f"Basic {'o' * 20}", "SM-6904"),
        ("o" * 20, "SM-6904"),
        ("Bearer", "SM-6904"),
        ("Bearer x", "SM-6904"),
        ("", "SM-6903"),
    ],
)
def test_a_token_of_a_header(sent, code):
    assert code_of(TOKEN, call(authorization=sent)) == code


def test_a_session_tells_its_user_and_what_form_keys_are_made_from():
    cookie = cookie_of(Session("olga", "n", NOW_S + 9), TOKENS["olga"], "shop")
    assert asker_of(TOKEN, TOKENS, "shop", call(cookie=cookie), NOW_S) == Asker("olga", "n")
    # A wrong token is not made right by a session.
    assert code_of(TOKEN, call(cookie=cookie, authorization="Bearer x")) == "SM-6904"


@pytest.mark.parametrize(
    ("address", "user", "code"),
    [
        ("10.0.0.5", "olga", ""),
        ("10.1.0.77", "olga", ""),
        ("::ffff:10.0.0.5", "olga", ""),
        ("2001:db8::7", "olga", ""),
        ("10.0.0.6", "olga", "SM-6908"),
        ("10.0.1.5", "olga", "SM-6908"),
        ("::1", "olga", "SM-6908"),
        ("", "olga", "SM-6908"),
        ("unix", "olga", "SM-6908"),
        ("10.0.0.5", "", "SM-6908"),
        ("10.0.0.5", "a\nb", "SM-6908"),
        ("10.0.0.5", "x" * 201, "SM-6908"),
    ],
)
def test_the_users_header_counts_from_a_proxy_only(address, user, code):
    asked = call(address, x_forwarded_user=user, x_forwarded_for="10.0.0.5")
    assert code_of(PROXY, asked) == code


def test_a_header_that_came_twice_has_no_value():
    asked = Call("10.0.0.5", {"x-forwarded-user": ("olga", "root")})
    assert code_of(PROXY, asked) == "SM-6908"


@pytest.mark.parametrize(
    ("groups", "code"),
    [("dba", ""), ("users, sre ", ""), ("", "SM-6909"), ("dbas", "SM-6909"), ("DBA", "SM-6909")],
)
def test_one_of_the_groups_is_enough(groups, code):
    assert code_of(GROUPS, call("10.0.0.5", x_forwarded_user="olga", x_groups=groups)) == code


def refusal(check, *words) -> str:
    try:
        check(*words)
    except AccessDenied as error:
        return error.code
    return ""


@pytest.mark.parametrize(
    ("web", "headers", "code"),
    [
        (TOKEN, {"host": "127.0.0.1:6066", "origin": "http://127.0.0.1:6066"}, ""),
        (TOKEN, {"host": "localhost:6066", "origin": "http://localhost:6066"}, ""),
        (TOKEN, {"host": "[::1]:6066", "origin": "http://[::1]:6066"}, ""),
        (TOKEN, {"host": "127.0.0.1:6066", "sec_fetch_site": "same-origin"}, ""),
        (TOKEN, {"host": "127.0.0.1:6066", "origin": "http://localhost:6066"}, "SM-6906"),
        (TOKEN, {"host": "127.0.0.1:6066", "origin": "http://127.0.0.1:6067"}, "SM-6906"),
        (TOKEN, {"host": "evil.example:6066", "origin": "http://evil.example:6066"}, "SM-6906"),
        (TOKEN, {"host": "10.0.0.9:6066", "origin": "http://10.0.0.9:6066"}, "SM-6906"),
        (TOKEN, {"host": "[", "origin": "http://["}, "SM-6906"),
        (TOKEN, {"host": "", "origin": ""}, "SM-6906"),
        (TOKEN, {"host": "127.0.0.1:6066", "origin": "null"}, "SM-6906"),
        (TOKEN, {"host": "127.0.0.1:6066"}, "SM-6906"),
        (TOKEN, {"host": "127.0.0.1", "origin": "http://127.0.0.1", "sec_fetch_site": "none"},
         "SM-6906"),
        (PROXY, {"host": "10.0.0.9", "origin": "https://p.example"}, ""),
        (PROXY, {"host": "p.example", "origin": "http://p.example"}, "SM-6906"),
        (PROXY, {"host": "10.0.0.9", "origin": "http://10.0.0.9"}, "SM-6906"),
    ],
)  # fmt: skip
def test_a_form_counts_only_from_these_pages(web, headers, code):
    assert refusal(check_origin, web, call(**headers)) == code


HOME = {"host": "localhost", "origin": "http://localhost"}


@pytest.mark.parametrize(
    ("asker", "key", "code"),
    [
        (Asker("olga", "n"), form_key("n", "olga"), ""),
        (Asker("olga", "n"), form_key("n", "ivan"), "SM-6907"),
        (Asker("olga", "n"), form_key("m", "olga"), "SM-6907"),
        (Asker("olga", "n"), "", "SM-6907"),
        (Asker("olga", ""), form_key("", "olga"), "SM-6907"),
        (Asker(denied=AccessDenied("x", code="SM-6903")), form_key("", ""), "SM-6903"),
    ],
)
def test_a_form_needs_the_key_of_the_askers_session(asker, key, code):
    assert refusal(check_form, TOKEN, call(**HOME), asker, key) == code
    if not code:
        foreign = call(**HOME | {"origin": "http://evil"})
        assert refusal(check_form, TOKEN, foreign, asker, key) == "SM-6906"


@pytest.mark.parametrize(
    ("web", "headers", "code"),
    [
        (TOKEN, {"authorization": "Bearer x"}, ""),
        (TOKEN, {}, "SM-6903"),
        (PROXY, {}, ""),
        (PROXY, {"sec_fetch_site": "none"}, ""),
        (PROXY, {"origin": "https://p.example", "sec_fetch_site": "same-origin"}, ""),
        (PROXY, {"origin": "https://evil.example"}, "SM-6906"),
        (PROXY, {"sec_fetch_site": "cross-site"}, "SM-6906"),
    ],
)
def test_a_call_of_the_api_has_a_token_or_comes_from_no_other_site(web, headers, code):
    assert refusal(check_api, web, call(**headers), Asker("olga", "n")) == code
    denied = Asker(denied=AccessDenied("x", code="SM-6909"))
    assert refusal(check_api, web, call(**headers), denied) == "SM-6909"
