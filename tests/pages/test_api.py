"""The OpenAPI document against the server that serves it."""

from __future__ import annotations

import json
import subprocess
import urllib.request
from pathlib import Path

import pytest

from tests.example_pages import ORDERS

PROGRAM = Path(__file__).resolve().parents[2] / "build" / "pages-api" / "bin" / "schemathesis"


@pytest.mark.timeout(300)
def test_schemathesis_finds_nothing(url: str, tmp_path: Path) -> None:
    """It sends what the document allows and what it forbids, and compares every answer with it."""
    settings = tmp_path / "schemathesis.toml"
    settings.write_text(
        f'[parameters]\n"path.name" = "{ORDERS}"\n'
        "[checks.positive_data_acceptance]\nexpected-statuses = [200, 404, 503]\n",
        encoding="utf-8",
    )
    ended = subprocess.run(
        [
            PROGRAM, "--config-file", settings, "run", f"{url}/api/openapi.json",
            "--exclude-path", "/healthz", "--max-examples", "40", "--seed", "1", "--no-color",
        ],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stdout[-6_000:] + ended.stderr[-2_000:]
    assert "Tested: 4" in ended.stdout


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
