"""The commands that show a pipeline, over recorded topics: exit codes, JSON shapes, tables."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from rich.console import Console

from shardmerge.agents.handling.memory_rows import MemoryRows
from shardmerge.agents.holds.shapes import ShownConflict
from shardmerge.cli import screen as screen_module
from shardmerge.cli import status as status_module
from shardmerge.cli.bundles import without_passwords
from shardmerge.cli.main import main
from shardmerge.cli.views import commands
from shardmerge.cli.views.decision_shapes import DecisionLine
from shardmerge.cli.views.shapes import (
    Explanation,
    PipelineStatus,
    Shape,
    ShownSchema,
)
from shardmerge.schemas.model.errors import StackError
from shardmerge.schemas.pipeline.text import pipeline_text
from shardmerge.schemas.records.operator_commands import CommandKind
from shardmerge.schemas.records.plain import from_plain
from tests.recorded import Recorded

from .pictures import ONE, TARGET, TWO, conflicting, picture, recorded

Call = Callable[..., Result]


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Recorded], Call]:
    """Calls of the command for a pipeline whose topics are recorded."""

    def of(made: Recorded) -> Call:
        file = tmp_path / "pipeline.toml"
        file.write_text(pipeline_text(without_passwords(made.pipeline)), encoding="utf-8")

        def read_picture(pipeline: Any, progress: Any, servers: bool = False) -> Any:
            return picture(made)

        def read_log(pipeline: Any, target: Any, progress: Any) -> Any:
            return [r for r in made.log() if r.key == str(target).encode()]

        monkeypatch.setattr(commands, "read_picture", read_picture)
        monkeypatch.setattr(status_module, "read_picture", read_picture)
        monkeypatch.setattr(commands, "read_log", read_log)
        monkeypatch.setattr(commands, "read_table", lambda *_: made.rows())
        monkeypatch.setattr(status_module, "read_table", lambda *_: made.rows())
        return lambda *words: CliRunner().invoke(main, [*words, "--pipeline", str(file)])

    return of


def without_times(text: str) -> str:
    return re.sub(r"\d\d:\d\d:\d\d UTC", "", text)


def paused() -> Recorded:
    made = conflicting()
    made.command(CommandKind.PAUSE, "s1/tbl1")
    return made


@pytest.mark.parametrize(
    ("words", "shape", "code", "count"),
    [
        (["status"], PipelineStatus, 1, 1),
        (["explain", str(ONE)], Explanation, 1, 1),
        (["explain", str(TWO)], Explanation, 1, 1),
        (["decisions"], DecisionLine, 0, 4),
        (["decisions", "--last", "1", "--shard", str(ONE)], DecisionLine, 0, 1),
        (["decisions", "--outcome", "refused"], DecisionLine, 0, 0),
        (["schema"], ShownSchema, 0, 1),
        (["schema", str(TWO), "--position", "binlog.000001:120"], ShownSchema, 0, 1),
        (["schema", "--version", "1"], ShownSchema, 0, 1),
        (["conflicts"], ShownConflict, 1, 1),
        (["conflicts", "--target", "merged.other"], ShownConflict, 0, 0),
    ],
)
def test_json_is_of_the_documented_shape(
    call: Callable[[Recorded], Call], words: list[str], shape: type[Any], code: int, count: int
) -> None:
    found = call(paused())(*words, "--json")
    assert found.exit_code == code, found.output
    lines = [json.loads(line) for line in found.stdout.splitlines()]
    assert len(lines) == count
    for line in lines:
        # Strict: no field besides, each of its type; and none is left out.
        assert set(line) == set(shape.__dataclass_fields__)
        from_plain(shape, line)


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (["status"], 0, "  s1/shop.tbl1: flows"),
        (["explain", str(ONE)], 0, "s1/shop.tbl1 of merged.tbl: flows"),
        (["conflicts"], 0, "no shard is held"),
        (["schema"], 0, "CREATE TABLE `merged`.`tbl` ("),
        (["schema", str(ONE)], 0, "CREATE TABLE `shop`.`tbl1` ("),
        (["decisions", "--last", "0"], 0, "merged.tbl version 1: emit, s1/shop.tbl1 at "),
    ],
)
def test_plain_lines_are_told_where_there_is_no_terminal(
    call: Callable[[Recorded], Call], words: list[str], code: int, told: str
) -> None:
    found = call(recorded())(*words)
    assert (found.exit_code, told in found.stdout) == (code, True), found.output
    assert "\x1b" not in found.stdout


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["explain", "s1/shop.tbl9"], "no decision of merged.tbl is about the shard s1/shop.tbl9"),
        (["explain", "s1/other.x"], "the routes lead s1/other.x to none"),
        (["explain", "nothing"], "a shard is source/database.table"),
        (["schema", "--position", "b.1:4"], "name the shard"),
        (["schema", "--target", "merged"], "a target is database.table"),
        (["schema", "--at", "1970-01-01"], "nothing was decided about merged.tbl then"),
        (["schema", str(TWO), "--version", "1"], "is no live shard of merged.tbl"),
        (["schema", str(TWO), "--position", "4"], "is not a position like"),
    ],
)
def test_a_wrong_call_ends_with_2(
    call: Callable[[Recorded], Call], words: list[str], told: str
) -> None:
    found = call(recorded())(*words)
    assert (found.exit_code, told in found.stderr) == (2, True), found.output


@pytest.mark.parametrize(
    "words", [["explain", str(TWO)], ["conflicts"], ["schema", str(TWO)], ["status"]]
)
def test_who_may_not_read_the_agents_table_is_told_the_same_from_the_log(
    call: Callable[[Recorded], Call], monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    calling = call(paused())
    from_table = calling(*words)
    monkeypatch.setattr(commands, "read_table", lambda *_: MemoryRows())
    monkeypatch.setattr(status_module, "read_table", lambda *_: MemoryRows())

    from_log = calling(*words)

    assert from_log.exit_code == from_table.exit_code
    assert without_times(from_log.stdout) == without_times(from_table.stdout)


def test_the_present_is_told_without_folding_the_log(
    call: Callable[[Recorded], Call], monkeypatch: pytest.MonkeyPatch
) -> None:
    calling = call(paused())

    def folds(*_: Any) -> None:
        raise AssertionError("the log was read")

    monkeypatch.setattr(commands, "read_log", folds)

    assert calling("explain", str(TWO)).exit_code == 1
    assert calling("conflicts").exit_code == 1
    assert calling("schema").exit_code == 0


def test_a_shard_that_left_is_explained(call: Callable[[Recorded], Call]) -> None:
    made = recorded()
    made.command(CommandKind.LEAVE, "s1/tbl1")
    found = call(made)("explain", str(ONE))
    assert (found.exit_code, found.stdout) == (0, f"{ONE} of merged.tbl: left\n")


def test_kafka_that_does_not_answer_ends_with_3(
    call: Callable[[Recorded], Call], monkeypatch: pytest.MonkeyPatch
) -> None:
    calling = call(recorded())

    def away(*_: Any, **__: Any) -> None:
        raise StackError("Kafka is away", hint="start it", code="SM-4101")

    monkeypatch.setattr(commands, "read_picture", away)
    monkeypatch.setattr(status_module, "read_picture", away)
    for words in (["status"], ["decisions"], ["conflicts"], ["explain", str(ONE)]):
        found = calling(*words)
        assert (found.exit_code, found.stderr) == (3, "error: SM-4101: Kafka is away\n  start it\n")


def test_a_file_that_is_missing_ends_with_2(tmp_path: Path) -> None:
    found = CliRunner().invoke(main, ["status", "--pipeline", str(tmp_path / "none")])
    assert (found.exit_code, "none" in found.stderr) == (2, True)


def test_tables_are_shown_on_a_terminal(
    call: Callable[[Recorded], Call], monkeypatch: pytest.MonkeyPatch
) -> None:
    screen = Console(record=True, width=160, force_terminal=True)
    monkeypatch.setattr(screen_module, "terminal", lambda: screen)
    calling = call(paused())
    for words in (
        ["status"], ["explain", str(TWO)], ["explain", str(ONE)], ["decisions"], ["conflicts"],
        ["schema"],
    ):  # fmt: skip
        calling(*words)
    text = screen.export_text()
    for told in (
        "p, as of 2023-11-14 22:15:00 UTC", "merged.tbl: version 4", "by anna",
        "shardmerge command skip --pipeline", "way out", "target, version", "definition",
        "CREATE TABLE `merged`.`tbl` (",
    ):  # fmt: skip
        assert told in text


def test_every_shape_is_printed_by_some_command() -> None:
    assert {PipelineStatus, Explanation, DecisionLine, ShownSchema, ShownConflict} == set(
        Shape.__args__
    )


def test_the_target_of_a_shard_can_be_named(call: Callable[[Recorded], Call]) -> None:
    found = call(recorded())("explain", str(ONE), "--target", str(TARGET), "--json")
    assert json.loads(found.stdout)["target"] == "merged.tbl"
