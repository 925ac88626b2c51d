"""The command's calls that end before anything is looked at, and one over recorded topics."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from click.testing import CliRunner, Result

from shardmerge.cli.main import main
from shardmerge.schemas.pipeline.settings import Target
from shardmerge.schemas.pipeline.spark_catalog import SparkCatalog
from shardmerge.schemas.pipeline.text import pipeline_text
from tests.unit.cli.views.pictures import recorded


def call(tmp_path: Path, text: str, *words: str) -> Result:
    path = tmp_path / "pipeline.toml"
    path.write_text(text, encoding="utf-8")
    return CliRunner().invoke(main, ["cutover", "merged.tbl", "--pipeline", str(path), *words])


def test_an_iceberg_target_is_refused_with_its_code(tmp_path: Path) -> None:
    catalog = SparkCatalog("lake", (("type", "hadoop"), ("warehouse", "/data/warehouse")))
    lake = Target("", 0, "", "", kind="iceberg", version="1.12.0", catalog=catalog)
    found = call(tmp_path, pipeline_text(replace(recorded().pipeline, target=lake)))
    assert found.exit_code == 2
    assert "SM-6715: a target of the kind iceberg cannot be cut over" in found.stderr


def test_a_server_that_does_not_answer_ends_with_3(tmp_path: Path) -> None:
    pipeline = recorded().pipeline
    away = replace(pipeline, target=replace(pipeline.target, host="127.0.0.1", port=1))
    found = call(tmp_path, pipeline_text(away))
    assert found.exit_code == 3
    assert "SM-3111" in found.stderr


def test_who_stops_the_writes_is_said_once(tmp_path: Path) -> None:
    found = call(tmp_path, pipeline_text(recorded().pipeline), "--read-only", "--stopped")
    assert found.exit_code == 2
    assert "exclude each other" in found.stderr


def test_the_proof_is_left_out_only_on_the_way_back(tmp_path: Path) -> None:
    found = call(tmp_path, pipeline_text(recorded().pipeline), "--unproven")
    assert (found.exit_code, "--unproven is for --undo" in found.stderr) == (2, True)
