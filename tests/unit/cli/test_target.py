"""``shardmerge target``: upkeep is for Iceberg targets only, and says so."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from shardmerge.cli import target as module
from shardmerge.cli.main import main
from shardmerge.cli.views.call_shapes import TableUpkeep
from shardmerge.schemas.model.names import TargetTable
from shardmerge.schemas.pipeline.routing import RoutingRule
from shardmerge.schemas.pipeline.settings import Connect, Kafka, Pipeline, Sink, Source, Target
from shardmerge.schemas.pipeline.spark_catalog import SparkCatalog
from shardmerge.schemas.pipeline.text import pipeline_text
from shardmerge.schemas.records.plain import from_plain

PIPELINE = Pipeline(
    "p",
    Kafka("127.0.0.1:9092"),
    Connect("http://127.0.0.1:8083"),
    (Source("s1", "127.0.0.1", 3306, "root", "", 1),),
    (RoutingRule(".*", "app", "t", "merged", "t"),),
    Target("127.0.0.1", 3308, "root", "x"),
    Sink(),
)


@pytest.mark.parametrize("command", ["compact", "expire"])
def test_a_target_of_another_kind_is_refused(command: str, tmp_path: Path) -> None:
    path = tmp_path / "pipeline.toml"
    path.write_text(pipeline_text(PIPELINE))

    result = CliRunner().invoke(main, ["target", command, "--pipeline", str(path)])

    assert result.exit_code == 1
    assert "the target's kind is mysql" in result.output


def test_a_file_that_is_missing_is_told(tmp_path: Path) -> None:
    result = CliRunner().invoke(main, ["target", "compact", "--pipeline", str(tmp_path / "x")])

    assert result.exit_code == 1
    assert "error:" in result.output


def test_snapshots_of_the_last_hour_stay(tmp_path: Path) -> None:
    arguments = ["target", "expire", "--pipeline", str(tmp_path / "x"), "--older-than", "0.5"]

    assert CliRunner().invoke(main, arguments).exit_code == 2


@dataclass
class Upkeep:
    """What ``iceberg.maintenance`` returns, which imports Spark."""

    table: TargetTable
    counts: dict[str, int]


@pytest.mark.parametrize("command", ["compact", "expire"])
def test_each_table_is_told_as_a_line_of_json(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = [
        Upkeep(TargetTable("merged", "t"), {"rewritten_data_files_count": 7}),
        Upkeep(TargetTable("merged", "u"), {}),
    ]
    work = SimpleNamespace(compact=lambda: done, expire=lambda *_: done, close=lambda: None)
    loaded = SimpleNamespace(Maintenance=lambda *_: work)
    monkeypatch.setattr(module, "imported", lambda *_: loaded)
    path = tmp_path / "pipeline.toml"
    catalog = SparkCatalog("lake", (("type", "hadoop"), ("warehouse", "/tmp/w")))
    lake = Target("", 0, "", "", kind="iceberg", version="1.12.0", catalog=catalog)
    path.write_text(pipeline_text(replace(PIPELINE, target=lake)))
    call = ["target", command, "--pipeline", str(path)]

    plain, as_json = (CliRunner().invoke(main, [*call, *more]) for more in ([], ["--json"]))

    assert plain.output == ("merged.t: rewritten_data_files_count 7\nmerged.u: nothing to do\n")
    assert [from_plain(TableUpkeep, json.loads(line)) for line in as_json.stdout.splitlines()] == [
        TableUpkeep("merged.t", {"rewritten_data_files_count": 7}),
        TableUpkeep("merged.u", {}),
    ]
