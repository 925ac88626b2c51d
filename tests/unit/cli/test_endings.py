"""What a command says when a package is missing."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from shardmerge.cli.endings import imported

ROOT = Path(__file__).resolve().parents[3]


def test_a_package_that_is_missing_is_told_with_what_installs_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit) as ended:
        imported("no_such_package.at_all", "spark")
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert "no_such_package" in said
    assert "pip install 'shardmerge[spark]'" in said


def test_every_extra_that_is_named_exists() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    texts = [path.read_text() for path in (ROOT / "cli").rglob("*.py")]
    named = {extra for text in texts for extra in re.findall(r'imported\("[\w.]+", "(\w+)"', text)}
    assert "spark" in named
    assert named <= project["optional-dependencies"].keys()
