"""``shardmerge export``: what the bundle holds is told, and an unfinished one does not stay."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, BinaryIO

import pytest
from click.testing import CliRunner, Result

from shardmerge.agents.replay.bundle import Manifest, Part
from shardmerge.cli import export as module
from shardmerge.cli.bundles import without_passwords
from shardmerge.cli.main import main
from shardmerge.cli.views.call_shapes import Exported, ExportedPart
from shardmerge.schemas.model.errors import StackError
from shardmerge.schemas.pipeline.text import pipeline_text
from shardmerge.schemas.records.plain import from_plain
from tests.recorded import pipeline

MANIFEST = Manifest(
    "shardmerge bundle", 1, "0.1.0", "2026-01-01T00:00:00+00:00", "p",
    (Part("p.ddl", 0, 2, 9, 9, 5, "x"), Part("p.schema-log", 0, 0, 4, 4, 4, "y")), ("p.signals",),
)  # fmt: skip


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> None:
    def write(_: Any, names: Any, file: BinaryIO, *, required: list[str]) -> Manifest:
        assert required == ["p.schema-log"]
        file.write(b"1234")
        return MANIFEST

    monkeypatch.setattr(module, "write_from_kafka", write)


def export(tmp_path: Path, *words: str) -> Result:
    file = tmp_path / "pipeline.toml"
    file.write_text(pipeline_text(without_passwords(pipeline())), encoding="utf-8")
    output = str(tmp_path / "p.zip")
    return CliRunner().invoke(main, ["export", "--pipeline", str(file), "--output", output, *words])


@pytest.mark.usefixtures("written")
def test_what_the_bundle_holds_is_told_as_text(tmp_path: Path) -> None:
    found = export(tmp_path)
    assert (found.exit_code, found.stdout.splitlines()) == (0, [
        "p.ddl: 5 records, offsets 2 to 9", "p.schema-log: 4 records, offsets 0 to 4",
        f"{tmp_path / 'p.zip'}: 4 bytes",
    ])  # fmt: skip
    assert found.stderr == "p.signals: does not exist, so the bundle lacks it\n"
    assert export(tmp_path).exit_code == 2, "it exists"


@pytest.mark.usefixtures("written")
def test_what_the_bundle_holds_is_told_as_json(tmp_path: Path) -> None:
    found = from_plain(Exported, json.loads(export(tmp_path, "--json").stdout))
    assert found == Exported(
        str(tmp_path / "p.zip"), 4,
        (ExportedPart("p.ddl", 0, 2, 9, 5), ExportedPart("p.schema-log", 0, 0, 4, 4)),
        ("p.signals",),
    )  # fmt: skip


def test_an_export_that_failed_leaves_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: Any, **__: Any) -> Manifest:
        raise StackError("Kafka is away", code="SM-4101")

    monkeypatch.setattr(module, "write_from_kafka", fails)
    found = export(tmp_path, "--json")
    assert (found.exit_code, "Kafka is away" in found.stderr) == (2, True)
    assert [each.name for each in tmp_path.iterdir()] == ["pipeline.toml"]
