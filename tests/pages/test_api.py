"""The OpenAPI document against the server that serves it."""

from __future__ import annotations

import json
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.access_pages import OLGA, GivenCommands, with_tokens
from tests.example_pages import ORDERS, ExampleLine
from tests.served_pages import ExamplePresent, served

PROGRAM = Path(__file__).resolve().parents[2] / "build" / "pages-api" / "bin" / "schemathesis"


@pytest.fixture
def with_users(line: ExampleLine, tmp_path: Path) -> Iterator[str]:
    """A server on which Olga may give commands."""
    present = ExamplePresent(line.state)
    given = GivenCommands(line, present)
    with served(line.view, present, with_tokens(tmp_path), given) as address:
        yield address


def run_against(folder: Path, url: str, *words: str) -> None:
    settings = folder / "schemathesis.toml"
    settings.write_text(
        f'[parameters]\n"path.name" = "{ORDERS}"\n'
        # A command can be well-formed, and yet make no sense or be refused.
        "[checks.positive_data_acceptance]\n"
        "expected-statuses = [200, 202, 400, 401, 403, 404, 409, 429, 503]\n",
        encoding="utf-8",
    )
    ended = subprocess.run(
        [
            PROGRAM, "--config-file", settings, "run", f"{url}/api/openapi.json",
            "--exclude-path", "/healthz", "--max-examples", "40", "--seed", "1", "--no-color",
            *words,
        ],
        cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stdout[-6_000:] + ended.stderr[-2_000:]
    with urllib.request.urlopen(f"{url}/api/openapi.json", timeout=10) as answer:
        paths = json.load(answer)["paths"]
    operations = sum(len(methods) for path, methods in paths.items() if path != "/healthz")
    assert operations >= 7
    assert f"Tested: {operations}\n" in ended.stdout, ended.stdout[-2_000:]


@pytest.mark.timeout(300)
def test_schemathesis_finds_nothing(url: str, tmp_path: Path) -> None:
    """It sends what the document allows and what it forbids, and compares every answer with it."""
    run_against(tmp_path, url)


@pytest.mark.timeout(300)
def test_schemathesis_finds_nothing_without_a_token_where_users_have_tokens(
    with_users: str, tmp_path: Path
) -> None:
    run_against(tmp_path, with_users)


@pytest.mark.timeout(300)
def test_schemathesis_finds_nothing_with_a_token(with_users: str, tmp_path: Path) -> None:
    run_against(tmp_path, with_users, "--header", f"Authorization: Bearer {OLGA}")


def test_every_documented_path_is_served_and_no_other(url: str) -> None:
    with urllib.request.urlopen(f"{url}/api/openapi.json", timeout=10) as answer:
        document = json.load(answer)
    assert "/api/status" in document["paths"]
    for path in document["paths"]:
        if path == "/healthz":
            continue  # it asks the agents, which do not run here
        address = url + path.replace("{name}", str(ORDERS))
        with urllib.request.urlopen(address, timeout=10) as answer:
            assert answer.status == 200
            assert answer.headers["Content-Type"].startswith("application/json")
