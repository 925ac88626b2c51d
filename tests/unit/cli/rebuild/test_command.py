from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from shardmerge.cli.main import main
from shardmerge.cli.rebuild.command import _report_of, _write_where, lines
from shardmerge.cli.rebuild.running import Ended
from shardmerge.spark_sink.rebuilding.rebuild_record import Stage
from shardmerge.spark_sink.rebuilding.rebuild_rules import Obstacle
from tests.unit.spark_sink.rebuilding.test_rebuild_record import RECORD, TARGET

SWAPPED = replace(RECORD, stage=Stage.SWAPPED, where="id > 3")
FILE = '[[routes]]\ntarget = "merged.t"\n'


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("id > 3", "write --with 'where=CONDITION'"),
        ("origin=x", "write --with"),
        ("where=id >", ""),
    ],
)
def test_only_a_condition_can_be_changed(given: str, says: str) -> None:
    words = ["rebuild", "merged.t", "--pipeline", "none.toml", "--with", given]
    result = CliRunner().invoke(main, words)
    assert result.exit_code == 2
    assert "--with" in result.output and says in result.output


def test_the_condition_of_a_swapped_table_is_written_into_the_file(tmp_path: Path) -> None:
    path = tmp_path / "pipeline.toml"
    path.write_text(FILE)
    assert not _write_where(path, Ended(replace(SWAPPED, stage=Stage.BUILDING)))
    assert not _write_where(path, Ended(replace(SWAPPED, where=None)))
    assert not _write_where(path, Ended(SWAPPED, (Obstacle("SM-6507", "old", "drop it"),)))
    assert not _write_where(path, Ended(None))
    assert path.read_text() == FILE

    assert _write_where(path, Ended(SWAPPED))
    assert path.read_text() == FILE + 'where = "id > 3"\n'
    assert not _write_where(path, Ended(SWAPPED)), "it is there"
    report = _report_of(TARGET, Ended(SWAPPED), file_changed=True)
    assert (report.where, report.file_changed) == ("id > 3", True)
    assert any(str(path) in line and "condition" in line for line in lines(report, path))


def test_a_file_that_cannot_be_changed_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "pipeline.toml"
    path.write_text("[[routes]]\n")
    assert not _write_where(path, Ended(SWAPPED))
    assert 'where = "id > 3"' in capsys.readouterr().err
    assert not _write_where(tmp_path / "none.toml", Ended(SWAPPED))
