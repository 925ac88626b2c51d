"""The OpenAPI document against the server that serves it."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.access_pages import OLGA, GivenCommands, with_tokens
from tests.example_pages import ORDERS, ExampleLine
from tests.pages.api_runs import run_against
from tests.served_pages import ExamplePresent, served

HEALTH = "/healthz"
"""It asks the agents, which do not run here."""


@pytest.fixture
def with_users(line: ExampleLine, tmp_path: Path) -> Iterator[str]:
    """A server on which Olga may give commands."""
    present = ExamplePresent(line.state)
    given = GivenCommands(line, present)
    with served(line.view, present, with_tokens(tmp_path), given) as address:
        yield address


@pytest.mark.timeout(300)
def test_schemathesis_finds_nothing(url: str, tmp_path: Path) -> None:
    """It sends what the document allows and what it forbids, and compares every answer with it."""
    run_against(tmp_path, url, str(ORDERS), HEALTH)


@pytest.mark.timeout(300)
def test_schemathesis_finds_nothing_without_a_token_where_users_have_tokens(
    with_users: str, tmp_path: Path
) -> None:
    run_against(tmp_path, with_users, str(ORDERS), HEALTH)


@pytest.mark.timeout(300)
def test_schemathesis_finds_nothing_with_a_token(with_users: str, tmp_path: Path) -> None:
    run_against(
        tmp_path, with_users, str(ORDERS), HEALTH, "--header", f"Authorization: Bearer {OLGA}"
    )


def test_every_documented_path_is_served_and_no_other(url: str) -> None:
    with urllib.request.urlopen(f"{url}/api/openapi.json", timeout=10) as answer:
        document = json.load(answer)
    assert "/api/status" in document["paths"]
    for path in document["paths"]:
        if path == HEALTH:
            continue
        address = url + path.replace("{name}", str(ORDERS))
        with urllib.request.urlopen(address, timeout=10) as answer:
            assert answer.status == 200
            assert answer.headers["Content-Type"].startswith("application/json")
