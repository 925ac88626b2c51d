"""Runs schemathesis against a server of the pages."""

from __future__ import annotations

import json
import subprocess
import urllib.request
from pathlib import Path

PROGRAM = Path(__file__).resolve().parents[2] / "build" / "pages-api" / "bin" / "schemathesis"


def run_against(folder: Path, url: str, target: str, left_out: str, *words: str) -> None:
    """Send what the OpenAPI document allows and what it forbids, and compare every answer with it.

    Args:
        folder: For the settings; where schemathesis runs.
        url: Of the server.
        target: A target that the server shows.
        left_out: A path that is not called; "" to call all.
        words: More words of the call.
    """
    settings = folder / "schemathesis.toml"
    settings.write_text(
        f'[parameters]\n"path.name" = "{target}"\n'
        # A command can be well-formed, and yet make no sense or be refused.
        "[checks.positive_data_acceptance]\n"
        "expected-statuses = [200, 202, 400, 401, 403, 404, 409, 429, 503]\n",
        encoding="utf-8",
    )
    without = ["--exclude-path", left_out] if left_out else []
    ended = subprocess.run(
        [
            PROGRAM, "--config-file", settings, "run", f"{url}/api/openapi.json", *without,
            "--max-examples", "40", "--seed", "1", "--no-color", *words,
        ],
        cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stdout[-6_000:] + ended.stderr[-2_000:]
    with urllib.request.urlopen(f"{url}/api/openapi.json", timeout=10) as answer:
        paths = json.load(answer)["paths"]
    operations = sum(len(methods) for path, methods in paths.items() if path != left_out)
    assert operations >= 7
    assert f"Tested: {operations}\n" in ended.stdout, ended.stdout[-2_000:]
