"""The pipeline file of a test."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.cli.planning.pipelines import PIPELINE


@pytest.fixture
def pipeline(tmp_path: Path) -> Path:
    path = tmp_path / "pipeline.toml"
    path.write_text(PIPELINE, encoding="utf-8")
    return path
