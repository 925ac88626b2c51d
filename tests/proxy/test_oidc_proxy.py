"""The pages behind a real oauth2-proxy that signs users in at an OpenID provider, in a browser.

The proxy's file and the table ``[web]`` are those of ``docs/how-to/use-the-pages.md``, with the
addresses and files of the test.
"""

from __future__ import annotations

import http.client
import json
import re
import secrets
import socket
import ssl
import subprocess
import time
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import urlopen

import pytest
from playwright.sync_api import Browser, Page, expect

from shardmerge.schemas.pipeline.settings import Pipeline
from shardmerge.schemas.pipeline.web import parse_web
from tests.access_pages import GivenCommands
from tests.authority import Authority
from tests.browsers import chromium
from tests.example_pages import ORDERS, example, orders, pipeline
from tests.served_pages import ExamplePresent, served

ROOT = Path(__file__).resolve().parents[2]
BUILT = ROOT / "build" / "proxy"
PAGE = ROOT / "docs" / "how-to" / "use-the-pages.md"
PAGES = "https://pages.example.com"
HOLDS = f"/target/{ORDERS}/holds"
COMMANDS = f"/api/target/{ORDERS}/commands"
SKIP = {"kind": "skip", "shard": str(orders(7))}
GROUPS = {"olga": ["staff", "dba"], "ivan": ["staff"], "eve": []}


def shown(name: str) -> str:
    """A block of the page that the test runs."""
    text = PAGE.read_text(encoding="utf-8")
    found = re.search(rf"<!-- run: {name} -->\n```\w+\n(.*?)```", text, re.DOTALL)
    assert found is not None, f"{PAGE} shows no {name}"
    return found[1]


def changed(text: str, changes: Mapping[str, str]) -> str:
    """The text with the test's addresses; each must be there."""
    for old, new in changes.items():
        assert old in text, f"{old} is not on the page any more"
        text = text.replace(old, new)
    return text


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port: int = listening.getsockname()[1]
        return port


@contextmanager
def program(log: Path, *words: str) -> Iterator[subprocess.Popen[bytes]]:
    with log.open("wb") as out:
        started = subprocess.Popen(words, stdout=out, stderr=subprocess.STDOUT)
        try:
            yield started
        finally:
            started.terminate()
            started.wait(20)


def wait_for(address: str, of: subprocess.Popen[bytes], log: Path) -> None:
    """Wait until a program answers at an address of this machine."""
    deadline = time.monotonic() + 60
    unverified = ssl._create_unverified_context()  # as the browser of the test: see ``Site``
    while True:
        try:
            urlopen(address, timeout=5, context=unverified).close()
        except OSError:
            assert of.poll() is None and time.monotonic() < deadline, log.read_text()
            time.sleep(0.1)
        else:
            return


def behind_the_proxy() -> Pipeline:
    """The example's pipeline with the page's table ``[web]``."""
    table = tomllib.loads(changed(shown("pipeline"), {"10.0.0.5": "127.0.0.1"}))["web"]
    return replace(pipeline(), web=parse_web(table))


@contextmanager
def provider(folder: Path) -> Iterator[str]:
    """An OpenID provider that knows the users of GROUPS; gives its address."""
    port, log = free_port(), folder / "provider.log"
    users: list[str] = []
    for name, groups in GROUPS.items():
        address = f"{name}@example.com"
        claims = {"sub": f"{name}-4711", "email": address, "email_verified": True}
        users += ["--user-claims", json.dumps(claims | ({"groups": groups} if groups else {}))]
    words = [str(BUILT / "provider" / "bin" / "oidc-provider-mock"), "--port", str(port)]
    with program(log, *words, "--require-nonce", "true", *users) as started:
        address = f"http://127.0.0.1:{port}"
        wait_for(f"{address}/.well-known/openid-configuration", started, log)
        yield address


@contextmanager
def oauth2_proxy(folder: Path, issuer: str, worker: str) -> Iterator[int]:
    """The page's oauth2-proxy; gives the port of its HTTPS."""
    port, log = free_port(), folder / "proxy.log"
    identity = Authority(folder / "authority", "test-password").issue("pages")
    (folder / "client-secret").write_text("a-secret-of-the-client")
    (folder / "cookie-secret").write_text(secrets.token_urlsafe(32))
    settings = folder / "oauth2-proxy.cfg"
    changes = {
        "https://login.example.com": issuer,
        "http://10.0.0.7:6066": worker,
        "10.0.0.5:443": f"127.0.0.1:{port}",
        "/etc/oauth2-proxy/pages.pem": str(identity.certificate),
        "/etc/oauth2-proxy/pages.key": str(identity.key),
        "/etc/oauth2-proxy": str(folder),
    }
    settings.write_text(changed(shown("proxy"), changes))
    with program(log, str(BUILT / "bin" / "oauth2-proxy"), "--config", str(settings)) as started:
        wait_for(f"https://127.0.0.1:{port}/ping", started, log)
        yield port


@dataclass
class Site:
    """Worker, proxy, provider, and a browser to which pages.example.com is the proxy."""

    worker: str
    provider: str
    browser: Browser
    given: GivenCommands

    @contextmanager
    def page(self, **options: Any) -> Iterator[Page]:
        """A page of a browser that is not signed in."""
        context = self.browser.new_context(ignore_https_errors=True, **options)
        yield context.new_page()
        context.close()


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    line = example(now_ms=time.time_ns() // 1_000_000)
    present = ExamplePresent(line.state)
    given = GivenCommands(line, present)
    with (
        served(line.view, present, behind_the_proxy(), given) as worker,
        provider(tmp_path) as issuer,
        oauth2_proxy(tmp_path, issuer, worker) as port,
        chromium(f"--host-resolver-rules=MAP pages.example.com:443 127.0.0.1:{port}") as browser,
    ):
        yield Site(worker, issuer, browser, given)


def sign_in(page: Page, site: Site, user: str) -> None:
    """Open the page of holds; the proxy leads to the provider, and that back to the page."""
    page.goto(PAGES + HOLDS)
    assert page.url.startswith(f"{site.provider}/oauth2/authorize")
    page.get_by_role("button", name=f"{user}-4711").click()
    expect(page).to_have_url(PAGES + HOLDS)
    expect(page.locator("body > header")).to_contain_text(f"{user}@example.com")


def test_a_user_signs_in_gives_a_command_and_signs_out(
    site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    with site.page() as page:
        sign_in(page, site, "olga")
        expect(page.locator("#live")).to_have_text("live")
        page.get_by_role("button", name="skip …").click()
        expect(page.locator("main")).to_contain_text("your name: olga@example.com")
        page.get_by_role("button", name="Give this command").click()
        expect(page.locator("main div[role=status]")).to_contain_text("carried out the command")
        expect(page.locator("table")).to_contain_text("olga@example.com")
        assert [said.by for said in site.given.commands] == ["olga@example.com"]
        [told] = [text for text in caplog.messages if text.startswith("command_given ")]
        assert "by=olga@example.com client_address=127.0.0.1" in told
        names = {cookie["name"] for cookie in page.context.cookies(PAGES)}
        assert names == {"__Host-pages-login", "__Host-shardmerge-shop"}
        page.get_by_role("link", name="Sign out").click()
        expect(page).to_have_url(re.compile(re.escape(f"{site.provider}/oauth2/authorize")))
        assert "__Host-pages-login" not in {c["name"] for c in page.context.cookies(PAGES)}
        page.goto(PAGES + HOLDS)
        assert page.url.startswith(site.provider)


def test_the_next_user_of_a_browser_has_only_the_own_rights(site: Site) -> None:
    with site.page() as page:
        sign_in(page, site, "olga")
        expect(page.locator(".ways button")).not_to_have_count(0)
        page.get_by_role("link", name="Sign out").click()
        sign_in(page, site, "ivan")
        expect(page.locator("main button")).to_have_count(0)


@pytest.mark.parametrize("user", ["ivan", "eve"])
def test_a_user_without_the_group_gives_no_command_whatever_the_browser_sends(
    site: Site, user: str
) -> None:
    """Eve has no group at all: the proxy sets no header of its own then."""
    forged = {
        "X-Forwarded-Email": "olga@example.com",
        "X-Forwarded-User": "olga",
        "X-Forwarded-Groups": "dba",
    }
    with site.page(extra_http_headers=forged) as page:
        sign_in(page, site, user)
        expect(page.locator("main button")).to_have_count(0)
        answer = page.evaluate(
            """async ([path, body]) => {
              const headers = { "Content-Type": "application/json" };
              const sent = { method: "POST", headers, body: JSON.stringify(body) };
              const answer = await fetch(path, sent);
              return [answer.status, await answer.text()];
            }""",
            [COMMANDS, SKIP],
        )
        assert answer[0] == 403
        assert "SM-6909" in answer[1]
        assert f"{user}@example.com" in answer[1]
    assert site.given.commands == []


def test_headers_of_nobody_or_of_another_address_do_not_count(site: Site) -> None:
    forged = {"X-Forwarded-Email": "olga@example.com", "X-Forwarded-Groups": "dba"}
    with site.page(extra_http_headers=forged) as page:
        page.goto(PAGES + HOLDS)
        assert page.url.startswith(site.provider)
        answer = page.goto(f"{PAGES}{COMMANDS}")
        assert answer is not None
        assert answer.status == 401
    # All of 127.0.0.0/8 is this machine, and only 127.0.0.1 is the proxy.
    worker = urlsplit(site.worker).netloc
    connection = http.client.HTTPConnection(worker, source_address=("127.0.0.2", 0), timeout=20)
    headers = forged | {"Content-Type": "application/json"}
    connection.request("POST", COMMANDS, json.dumps(SKIP), headers)
    refused = connection.getresponse()
    told = refused.read().decode()
    connection.close()
    assert (refused.status, "SM-6908" in told, "127.0.0.2" in told) == (403, True, True)
    assert site.given.commands == []
