from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from shardmerge.cli.main import main
from shardmerge.cli.rebuild.beginning import Changes
from shardmerge.cli.rebuild.command import _changes, _report_of, _write_route, lines
from shardmerge.cli.rebuild.running import Ended
from shardmerge.schemas.model.errors import ConfigError
from shardmerge.schemas.model.origin import NO_ORIGIN, Origin, OriginColumn, OriginPart
from shardmerge.spark_sink.rebuilding.rebuild_record import Stage
from shardmerge.spark_sink.rebuilding.rebuild_rules import Obstacle
from tests.unit.cli.planning.pipelines import PIPELINE
from tests.unit.spark_sink.rebuilding.test_rebuild_record import RECORD, TARGET

SWAPPED = replace(RECORD, stage=Stage.SWAPPED, where="id > 3")
FILE = '[[routes]]\ntarget = "merged.t"\n'


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("id > 3", "write --with 'where=CONDITION'"),
        ("types=wide", "write --with"),
        ("where=id >", ""),
    ],
)
def test_only_conditions_and_origin_columns_can_be_changed(given: str, says: str) -> None:
    words = ["rebuild", "merged.t", "--pipeline", "none.toml", "--with", given]
    result = CliRunner().invoke(main, words)
    assert result.exit_code == 2
    assert "--with" in result.output and says in result.output


def test_the_condition_of_a_swapped_table_is_written_into_the_file(tmp_path: Path) -> None:
    path = tmp_path / "pipeline.toml"
    path.write_text(FILE)
    assert not _write_route(path, Ended(replace(SWAPPED, stage=Stage.BUILDING)))
    assert not _write_route(path, Ended(replace(SWAPPED, where=None)))
    assert not _write_route(path, Ended(SWAPPED, (Obstacle("SM-6507", "old", "drop it"),)))
    assert not _write_route(path, Ended(None))
    assert path.read_text() == FILE

    assert _write_route(path, Ended(SWAPPED))
    assert path.read_text() == FILE + 'where = "id > 3"\n'
    assert not _write_route(path, Ended(SWAPPED)), "it is there"
    report = _report_of(TARGET, Ended(SWAPPED), str(SWAPPED.old), file_changed=True)
    assert (report.where, report.file_changed) == ("id > 3", True)
    assert any(f"is written into {path}" in line for line in lines(report, path))


def test_a_file_that_cannot_be_changed_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "pipeline.toml"
    path.write_text("[[routes]]\n")
    assert not _write_route(path, Ended(SWAPPED))
    assert 'where = "id > 3"' in capsys.readouterr().err
    assert not _write_route(tmp_path / "none.toml", Ended(SWAPPED))


APART = Origin((OriginColumn(OriginPart.SHARD, "_shard"),), in_keys=True)
GIVEN = '{ shard = "_shard", in_keys = true }'


def test_given_origin_columns_are_those_of_the_route_in_a_file_that_has_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NOT_SET_ANYWHERE", "x")
    path = tmp_path / "pipeline.toml"
    path.write_text(PIPELINE)
    assert _changes(path, TARGET, {}) == Changes()
    assert _changes(path, TARGET, {"where": "", "origin": GIVEN}) == Changes("", APART)
    assert _changes(path, TARGET, {"origin": ""}) == Changes(None, NO_ORIGIN)
    assert path.read_text() == PIPELINE
    for wrong in ('{ shrd = "_s" }', "5", "{ in_keys = true }"):
        with pytest.raises(ConfigError):
            _changes(path, TARGET, {"origin": wrong})
    path.write_text(f'{PIPELINE}[[routes]]\ndatabase = "b"\ntable = "x"\ntarget = "merged.t"\n')
    with pytest.raises(ConfigError) as raised:
        _changes(path, TARGET, {"origin": GIVEN})
    assert raised.value.code == "SM-6528"


def test_changed_origin_columns_are_written_and_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "pipeline.toml"
    path.write_text(FILE)
    swapped = replace(RECORD, stage=Stage.SWAPPED, origin=APART)
    assert _write_route(path, Ended(swapped))
    assert path.read_text() == f'{FILE}origin = {{shard = "_shard", in_keys = true}}\n'
    report = _report_of(TARGET, Ended(swapped), "old", file_changed=True)
    assert report.origin == "_shard (shard), in keys"
    assert any("restart the agents" in line for line in lines(report, path))
    held = replace(swapped, origin_before=APART)
    assert _report_of(TARGET, Ended(held), "old", file_changed=False).origin is None
    path.write_text("[[routes]]\n")
    assert not _write_route(path, Ended(swapped))
    assert 'origin = {shard = "_shard"' in capsys.readouterr().err
