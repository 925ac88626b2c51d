"""``shardmerge sink-archive``: what it says; what is in the archive is tested beside its code."""

from __future__ import annotations

import json
import sys
import tarfile
from pathlib import Path

import pytest
from click.testing import CliRunner

from shardmerge.cli.main import main
from shardmerge.cli.views.call_shapes import WrittenArchive
from shardmerge.schemas.records.plain import from_plain
from shardmerge.spark_sink.process import environment_archive


@pytest.fixture(autouse=True)
def few_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment_archive, "_of_packages", lambda names: iter(()))


def test_the_archive_is_written_and_described_as_json(tmp_path: Path) -> None:
    file = tmp_path / "environment.tar.gz"
    words = ["sink-archive", "--output", str(file), "--python", "/opt/python3", "--json"]
    found = CliRunner().invoke(main, words)
    assert found.exit_code == 0, found.output
    written = from_plain(WrittenArchive, json.loads(found.stdout))
    assert (written.file, written.python) == (str(file), "/opt/python3")
    assert [name for name in written.packages if name.startswith("pymysql==")]
    with tarfile.open(file) as packed:
        assert packed.getmember("bin/python").linkname == "/opt/python3"


def test_it_says_which_python_the_workers_need(tmp_path: Path) -> None:
    found = CliRunner().invoke(main, ["sink-archive", "--output", str(tmp_path / "e.tar.gz")])
    assert found.exit_code == 0, found.output
    assert f"need Python 3.{sys.version_info[1]} at /" in found.stdout


def test_a_file_that_exists_is_a_wrong_call(tmp_path: Path) -> None:
    file = tmp_path / "environment.tar.gz"
    file.touch()
    found = CliRunner().invoke(main, ["sink-archive", "--output", str(file)])
    assert found.exit_code == 2
    assert "SM-5802" in found.stderr
