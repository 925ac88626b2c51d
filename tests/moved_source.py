"""``shardmerge source move`` on a pipeline file of a test's own."""

from __future__ import annotations

import json
from pathlib import Path

from click.testing import CliRunner

from shardmerge.cli.main import main
from shardmerge.cli.moving.move_shapes import MovedSource
from shardmerge.schemas.pipeline.file import parse_pipeline
from shardmerge.schemas.pipeline.settings import Pipeline
from shardmerge.schemas.pipeline.text import pipeline_text
from shardmerge.schemas.records.plain import from_plain


def moved(folder: Path, pipeline: Pipeline, port: int, *options: str) -> MovedSource:
    """Move the first source of a pipeline to another port of this machine.

    Args:
        folder: For the pipeline file, which is written before the first call.
        pipeline: What the file says then.
        port: Of the new server.
        options: Of the command, further ones.
    """
    file = folder / "moved.toml"
    if not file.exists():
        file.write_text(pipeline_text(pipeline), encoding="utf-8")
    words = ["source", "move", pipeline.sources[0].name, "--pipeline", str(file), "--json"]
    where = ["--host", "127.0.0.1", "--port", str(port), *options]
    found = CliRunner().invoke(main, [*words, *where])
    assert found.exit_code in (0, 1), found.output
    told = from_plain(MovedSource, json.loads(found.stdout))
    if told.outcome == "moved":
        source = parse_pipeline(file.read_text(encoding="utf-8"), {}).sources[0]
        assert (source.port, source.epoch) == (port, told.epoch)
    return told
