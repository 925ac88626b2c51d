"""``shardmerge target``: upkeep is for Iceberg targets only, and says so."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from shardmerge.cli.main import main
from shardmerge.schemas.pipeline.routing import RoutingRule
from shardmerge.schemas.pipeline.settings import Connect, Kafka, Pipeline, Sink, Source, Target
from shardmerge.schemas.pipeline.text import pipeline_text

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
