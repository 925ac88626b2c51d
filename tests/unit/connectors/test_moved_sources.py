"""A pipeline file that gives a source another address."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from shardmerge.connectors.moved_sources import MovedSources, moved_between
from shardmerge.schemas.pipeline.settings import Pipeline
from shardmerge.schemas.pipeline.text import pipeline_text
from tests.recorded import pipeline


def with_first(made: Pipeline, **changes: object) -> Pipeline:
    first, *others = made.sources
    return replace(made, sources=(replace(first, **changes), *others))  # type: ignore[arg-type]


def test_a_source_in_a_higher_epoch_was_moved() -> None:
    made = pipeline()
    assert moved_between(made, with_first(made, host="new", epoch=1)) == ("s1",)
    assert moved_between(made, with_first(made, epoch=1)) == ("s1",)
    assert moved_between(made, made) == ()


def test_other_changes_are_for_whoever_makes_them_and_hide_no_move() -> None:
    made = pipeline()
    moved = with_first(made, host="new", epoch=1)
    assert moved_between(made, with_first(made, host="new", tables="x.y")) == ()
    assert moved_between(made, replace(made, sources=made.sources[:1])) == ()
    assert moved_between(replace(made, sources=made.sources[1:]), moved) == ()
    others = with_first(moved, tables="x.y")
    assert moved_between(made, replace(others, routes=made.routes[:1])) == ("s1",)
    assert moved_between(made, replace(moved, sources=moved.sources[:1])) == ("s1",)


def test_a_file_that_cannot_be_read_now_tells_nothing(tmp_path: Path) -> None:
    file, made = tmp_path / "p.toml", pipeline()
    text = pipeline_text(with_first(made, host="new", epoch=1))
    file.write_text(pipeline_text(made), encoding="utf-8")
    moved = MovedSources(file, made)
    assert moved.look() == ()
    file.write_text(text[: len(text) // 2], encoding="utf-8")
    assert moved.look() == ()
    file.unlink()
    assert moved.look() == ()
    assert moved.pipeline == made
    file.write_text(text, encoding="utf-8")
    assert moved.look() == ("s1",)
    assert moved.pipeline.sources[0].epoch == 1
    assert moved.look() == ()


def test_each_move_is_told_once(tmp_path: Path) -> None:
    file, made = tmp_path / "p.toml", pipeline()
    file.write_text(pipeline_text(made), encoding="utf-8")
    moved = MovedSources(file, made)
    for epoch in (1, 2):
        file.write_text(pipeline_text(with_first(made, epoch=epoch)), encoding="utf-8")
        assert moved.look() == ("s1",)
        assert moved.look() == ()
