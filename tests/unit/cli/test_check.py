"""``shardmerge check`` of a file alone, as text and as JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from shardmerge.cli import check as module
from shardmerge.cli.bundles import without_passwords
from shardmerge.cli.checks.findings import Finding
from shardmerge.cli.main import main
from shardmerge.cli.views.call_shapes import Checked, CheckFinding
from shardmerge.schemas.pipeline.text import pipeline_text
from shardmerge.schemas.records.plain import from_plain
from tests.recorded import pipeline


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "pipeline.toml"
    path.write_text(pipeline_text(without_passwords(pipeline())), encoding="utf-8")
    return path


def checked(*words: str) -> tuple[int, Checked]:
    found = CliRunner().invoke(main, ["check", *words, "--json"])
    return found.exit_code, from_plain(Checked, json.loads(found.stdout))


def test_a_file_alone_is_right(file: Path) -> None:
    assert checked("--pipeline", str(file), "--offline") == (0, Checked("p", ()))


def test_a_file_that_cannot_be_read_is_a_finding(tmp_path: Path) -> None:
    broken = tmp_path / "broken.toml"
    broken.write_text("[pipeline]")
    code, found = checked("--pipeline", str(broken))
    assert (code, found.pipeline) == (1, "")
    assert [(f.where, f.fault) for f in found.findings] == [("pipeline file", True)]


def test_faults_come_before_what_should_be_known(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        module, "server_findings", lambda _: [Finding("source s1", "old", fault=False)]
    )
    monkeypatch.setattr(module, "_topic_findings", lambda _: [])
    monkeypatch.setattr(module, "_connect", lambda _: [Finding("Kafka Connect", "is away")])
    assert checked("--pipeline", str(file)) == (
        1,
        Checked(
            "p",
            (
                CheckFinding("Kafka Connect", "is away", fault=True),
                CheckFinding("source s1", "old", fault=False),
            ),
        ),
    )
    told = CliRunner().invoke(main, ["check", "--pipeline", str(file)])
    assert told.stdout.splitlines()[1:] == [
        "FAULT  Kafka Connect: is away",
        "warn   source s1: old",
    ]
