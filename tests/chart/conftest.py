"""What the chart's tests share."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from shardmerge.cli.bundles import without_passwords
from shardmerge.cli.main import main
from shardmerge.schemas.pipeline.text import pipeline_text
from tests.recorded import pipeline


@pytest.fixture(scope="session")
def connectors(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Values with connectors, as the command prints them."""
    tmp_path = tmp_path_factory.mktemp("connectors")
    given = without_passwords(pipeline())
    sources = tuple(replace(s, password="env:SOURCE_PASSWORD") for s in given.sources)
    file = tmp_path / "pipeline.toml"
    file.write_text(pipeline_text(replace(given, sources=sources)))
    printed = CliRunner().invoke(main, ["connect", "render", "--pipeline", str(file)])
    assert printed.exit_code == 0, printed.output
    values = tmp_path / "connectors.yaml"
    values.write_text(printed.stdout)
    return values
