"""``shardmerge drift`` without a server: its texts, its JSON, and what it refuses."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

import pytest
from click.testing import CliRunner

from shardmerge.cli.drift import drift as module
from shardmerge.cli.drift.drift import drift
from shardmerge.cli.drift.drift_reader import TargetDrift
from shardmerge.cli.drift.drift_shapes import healing_lines, lines, planned, shown
from shardmerge.schemas.ddl.grammar import ServerContext
from shardmerge.schemas.model.names import TargetTable
from shardmerge.schemas.pipeline.text import pipeline_text
from shardmerge.schemas.records.drift import Difference, DriftKind, with_times
from shardmerge.schemas.target.dialects.mysql_dialect import MYSQL_8
from shardmerge.schemas.target.drift import differences
from shardmerge.schemas.target.drift_healing import Healing, healing
from shardmerge.schemas.target.table_state import TableState
from shardmerge.spark_sink.targets.mysql.ddl.compared_tables import ComparedTable
from tests.recorded import pipeline
from tests.strategies import table

T = TargetTable("m", "t")
SERVER = ServerContext("mysql", (8, 0, 36))


def drifted(decided: str, found: str, since_ms: int = 0, clear_ms: int = 0) -> TargetDrift:
    expected = TableState(table(f"CREATE TABLE t ({decided})")).in_context(SERVER)
    there = TableState(table(f"CREATE TABLE t ({found})")).in_context(SERVER)
    told = differences(expected, there)
    timed = with_times(told, (), now_ms=since_ms, clear_ms=clear_ms)
    healings = healing(told, expected, there, T, MYSQL_8)
    return TargetDrift(T, timed, ComparedTable(expected, there, told), healings)


def test_a_difference_is_told_with_both_sides_its_time_and_what_heals_it() -> None:
    found = drifted("id INT PRIMARY KEY, a INT", "id INT PRIMARY KEY", 1_764_000_060_000,
                    1_764_000_000_000)  # fmt: skip
    assert list(lines(shown(found))) == [
        "m.t: differs in 1 thing from what was decided",
        "  column:a: SM-6804: the table lacks what was decided",
        "    decided: `a` int",
        "    found:   nothing",
        "    since:   between 2025-11-24 16:00:00 UTC and 2025-11-24 16:01:00 UTC",
        "    heal: ALTER TABLE `m`.`t` ADD COLUMN `a` int",
        "      is lost: the values of existing rows: the shards must be read again",
        "    cannot be adopted: rows have values for this column, which the table must hold",
    ]
    assert not found.is_clean


def test_a_time_that_is_not_known_is_not_made_up() -> None:
    unseen = drifted("id INT PRIMARY KEY, a INT", "id INT PRIMARY KEY, a BIGINT")
    assert "    since:   not known; the sink has not seen it yet" in lines(shown(unseen))
    first = drifted("id INT PRIMARY KEY, a INT", "id INT PRIMARY KEY, a BIGINT", 1_764_000_000_000)
    told = "before 2025-11-24 16:00:00 UTC, when the sink saw it at its first look"
    assert f"    since:   {told}" in lines(shown(first))


def test_only_what_does_no_harm_is_clean() -> None:
    assert drifted("id INT PRIMARY KEY", "id INT PRIMARY KEY, n INT").is_clean
    assert not drifted("id INT PRIMARY KEY", "id INT PRIMARY KEY, n INT NOT NULL").is_clean
    assert not TargetDrift(T).is_clean
    same = drifted("id INT PRIMARY KEY", "id INT PRIMARY KEY")
    assert list(lines(shown(same))) == ["m.t: as decided"]


def test_what_is_not_looked_at_says_so() -> None:
    told = shown(TargetDrift(T))
    assert not told.looked_at
    [line] = lines(told)
    assert line.startswith("m.t: not looked at")


def test_what_must_be_made_by_hand_says_why() -> None:
    by_hand = Healing("trigger:x", "", reason="make it again by hand: BEFORE INSERT")
    assert list(healing_lines(planned((by_hand,)), "")) == [
        "heal by hand: make it again by hand: BEFORE INSERT"
    ]


def test_an_unreadable_table_cannot_be_adopted() -> None:
    each = Difference("table", DriftKind.UNREAD, "", "it is no table, but a view")
    state = TableState(None)
    found = TargetDrift(T, (each,), ComparedTable(state, state, (each,)))
    [told] = shown(found).differences
    assert told.unadoptable


@pytest.mark.parametrize("name", ["heal", "adopt"])
def test_help_says_what_a_command_does(name: str) -> None:
    told = CliRunner().invoke(drift, [name, "--help"])
    assert told.exit_code == 0
    assert "--only" in told.output
    assert "Ends with 0" in told.output


def test_the_name_of_the_first_command_may_be_left_out(tmp_path: Path) -> None:
    missing = str(tmp_path / "none.toml")
    runner = CliRunner()
    for call in (["m.t", "--pipeline", missing], ["show", "m.t", "--pipeline", missing]):
        told = runner.invoke(drift, call)
        assert told.exit_code == 2
        assert "none.toml" in told.output
    assert "Commands:" in runner.invoke(drift, ["--help"]).output


VIEW = Difference("table", DriftKind.UNREAD, "", "it is not a table but a view")


class Reader:
    """A target whose only table was replaced by a view."""

    def __init__(self, pipeline: object, path: Path) -> None:
        state = TableState(None)
        self._compared = ComparedTable(state, state, (VIEW,))

    def __enter__(self) -> Reader:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def cut_over(self) -> list[TargetTable]:
        return []

    def targets(self) -> list[TargetTable]:
        return [T]

    def read(self, target: TargetTable) -> TargetDrift:
        return TargetDrift(target, (VIEW,), self._compared)

    def plan(self, drift: TargetDrift, subjects: tuple[str, ...]) -> tuple[Healing, ...]:
        state = TableState(None)
        return healing([d for d in drift.differences if d.subject in subjects], state, state, T,
                       MYSQL_8)  # fmt: skip


def test_healing_what_cannot_be_read_says_what_was_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "pipeline.toml"
    file.write_text(Path("docker/pipeline.toml").read_text(encoding="utf-8"), encoding="utf-8")
    monkeypatch.setenv("MYSQL_PASSWORD", "x")
    monkeypatch.setattr("shardmerge.cli.drift.drift.open_reader", Reader)
    call = ["heal", "m.t", "--pipeline", str(file)]
    told = CliRunner().invoke(drift, [*call, "--yes"])
    assert told.exit_code == 2
    assert "SM-6809" in told.output
    assert "table: it is not a table but a view; remove that by hand" in told.output
    told = CliRunner().invoke(drift, call)
    assert told.exit_code == 1
    assert "heal by hand: it is not a table but a view; remove that by hand" in told.output


class CutOver:
    """A reader of one target that was cut over, and of one that was not."""

    def targets(self) -> list[TargetTable]:
        return [T, TargetTable("m", "u")]

    def cut_over(self) -> list[TargetTable]:
        return [T]

    def read(self, target: TargetTable) -> TargetDrift:
        assert target != T
        return drifted("id INT PRIMARY KEY", "id INT PRIMARY KEY")


@pytest.fixture
def after_a_cut_over(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setattr(module, "open_reader", lambda *_: nullcontext(CutOver()))
    path = tmp_path / "pipeline.toml"
    path.write_text(pipeline_text(pipeline()), encoding="utf-8")
    return path


def test_a_target_that_was_cut_over_is_not_compared(after_a_cut_over: Path) -> None:
    found = CliRunner().invoke(drift, ["show", "--pipeline", str(after_a_cut_over)])
    assert found.exit_code == 0, found.output
    assert "m.t: was cut over, and is not compared" in found.stderr


@pytest.mark.parametrize("words", [["show"], ["heal", "--yes"], ["adopt"]])
def test_a_target_that_was_cut_over_is_neither_healed_nor_adopted(
    after_a_cut_over: Path, words: list[str]
) -> None:
    found = CliRunner().invoke(drift, [*words, "m.t", "--pipeline", str(after_a_cut_over)])
    assert found.exit_code == 2, found.output
    assert "SM-6810" in found.stderr
