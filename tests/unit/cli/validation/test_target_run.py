from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from shardmerge.cli.validation.inputs.server_rows import OtherTable
from shardmerge.cli.validation.inputs.table_facts import TableFacts
from shardmerge.cli.validation.saved_state import StateFile
from shardmerge.cli.validation.target_run import Limits, TargetRun
from shardmerge.schemas.model.errors import ConfigError
from shardmerge.spark_sink.loading.chunk_ranges import KeyRange
from shardmerge.spark_sink.validation.compared_table import Side
from shardmerge.spark_sink.validation.doubts import DifferenceKind
from shardmerge.spark_sink.validation.table_validation import Digests, TableValidation
from tests.unit.spark_sink.validation.facts import S1, S2, shard, target

from .silent_servers import SilentServers

OWN = "CREATE TABLE t (id int PRIMARY KEY, a int)"
LATER = "CREATE TABLE t (id int PRIMARY KEY, a int, b int)"
FACTS = TableFacts(1, True, target(OWN), (shard(S1, OWN),))
ROWS = {n: n for n in range(30)}


class Quiet:
    def progressed(self, validation: TableValidation) -> None:
        pass


def run_of(
    servers: SilentServers,
    facts: Callable[[], TableFacts] = lambda: FACTS,
    state: StateFile | None = None,
    limits: Limits | None = None,
) -> TargetRun:
    return TargetRun(
        facts,
        (),
        servers=servers,
        passing=lambda _: servers,
        limits=limits or Limits(rows_a_range=5, patience_s=0.5),
        state=state or StateFile(None, "p", ()),
        watcher=Quiet(),
    )


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shardmerge.cli.validation.target_run._PAUSE_S", 0.01)
    monkeypatch.setattr("shardmerge.cli.validation.target_run._MOMENT_S", 0.05)


def test_differences_are_found_and_equal_rows_are_not_told() -> None:
    run = run_of(SilentServers(ROWS, {**ROWS, 3: 4}))
    run.run()
    assert [(d.kind, d.key) for d in run.validation.differences] == [
        (DifferenceKind.DIFFERS, ("3",))
    ]
    assert (run.stopped, run.obstacles) == ("", 0)


def test_what_a_look_found_while_the_schemas_changed_is_looked_at_again() -> None:
    servers = SilentServers(ROWS, {**ROWS, 3: 4})
    later = TableFacts(2, True, target(LATER), (shard(S1, LATER),))
    answers = [FACTS, FACTS, later]

    def facts() -> TableFacts:
        if len(answers) == 1:
            servers.merged[3] = 3  # what the schema change made of the row is applied
        return answers.pop(0) if len(answers) > 1 else answers[0]

    run = run_of(servers, facts)
    run.run()
    assert run.validation.table.columns == ("id", "a", "b")
    assert run.validation.differences == []
    assert run.known.version == 2


def test_a_table_that_ddl_changed_is_compared_when_the_topics_say_so() -> None:
    later = TableFacts(2, True, target(LATER), (shard(S1, LATER),))
    answers = [FACTS, FACTS, later]

    def fail() -> None:
        if run.known.version == 1:
            raise OtherTable("Unknown column", code="SM-4412")

    run = run_of(
        SilentServers(ROWS, dict(ROWS), fail),
        lambda: answers.pop(0) if len(answers) > 1 else answers[0],
    )
    run.run()
    assert (run.validation.rows, run.validation.is_compared) == (30, True)


def test_a_range_that_ddl_interrupts_is_counted_once() -> None:
    servers = SilentServers(ROWS, {**ROWS, 3: 4})
    later = TableFacts(2, True, target(LATER), (shard(S1, LATER),))
    answers, whole = [FACTS, FACTS, later], servers.row_digests

    def row_digests(sides: Sequence[Side], of: KeyRange) -> list[Digests]:
        if run.known.version == 1:
            raise OtherTable("Unknown column", code="SM-4412")
        return whole(sides, of)

    servers.row_digests = row_digests  # type: ignore[method-assign]
    run = run_of(servers, lambda: answers.pop(0) if len(answers) > 1 else answers[0])
    run.run()
    assert (run.validation.rows, run.validation.ranges) == (30, 7)
    assert [d.key for d in run.validation.differences] == [("3",)]


def test_a_table_that_stays_another_one_ends_the_comparison() -> None:
    def fail() -> None:
        raise OtherTable("Unknown column 'a'", code="SM-4412")

    run = run_of(SilentServers(ROWS, dict(ROWS), fail))
    run.run()
    assert "Unknown column 'a'" in run.stopped


def test_a_target_that_stays_behind_leaves_rows_in_doubt() -> None:
    run = run_of(SilentServers(ROWS, {}, is_passed=False))
    run.run()
    assert "did not apply within" in run.stopped
    assert run.validation.differences == []
    assert len(run.validation.doubts) == 30


def test_too_many_differences_end_it() -> None:
    run = run_of(SilentServers(ROWS, {}), limits=Limits(most=7, rows_a_range=5))
    run.run()
    assert run.stopped == "more than 7 rows differ or are in doubt"


def test_a_shard_that_cannot_be_compared_is_counted() -> None:
    facts = replace(FACTS, shards=(*FACTS.shards, shard(S2, OWN, obstacle="it is held")))
    run = run_of(SilentServers(ROWS, dict(ROWS)), lambda: facts)
    run.run()
    assert run.obstacles == 1
    nothing = replace(FACTS, shards=(shard(S2, OWN, obstacle="it is held"),))
    run = run_of(SilentServers(ROWS, dict(ROWS)), lambda: nothing)
    run.run()
    assert run.stopped == "no shard can be compared"


def test_a_shard_that_waits_for_a_moment_is_compared() -> None:
    answers = [replace(FACTS, shards=(shard(S1, OWN, obstacle="its rows wait"),)), FACTS]
    run = run_of(
        SilentServers(ROWS, dict(ROWS)), lambda: answers.pop(0) if len(answers) > 1 else answers[0]
    )
    run.run()
    assert (run.obstacles, run.stopped, run.validation.rows) == (0, "", 30)


def test_a_comparison_goes_on_where_it_ended(tmp_path: Path) -> None:
    path, asked = tmp_path / "state", 0

    def fail() -> None:
        nonlocal asked
        asked += 1
        if asked == 4:
            raise KeyboardInterrupt

    servers = SilentServers(ROWS, {**ROWS, 3: 4}, fail)
    with pytest.raises(KeyboardInterrupt):
        run_of(servers, state=StateFile(path, "p", ())).run()
    run = run_of(servers, state=StateFile(path, "p", ()))
    run.run()
    assert asked == 8  # 7 ranges, one of them twice
    assert run.validation.rows == 30
    assert [d.key for d in run.validation.differences] == [("3",)]
    again = run_of(servers, state=StateFile(path, "p", ()))
    again.run()
    assert (asked, [d.key for d in again.validation.differences]) == (8, [("3",)])


def test_the_state_of_another_comparison_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "state"
    run_of(SilentServers(ROWS, dict(ROWS)), state=StateFile(path, "p", ())).run()
    with pytest.raises(ConfigError, match="has the state of another comparison: p"):
        StateFile(path, "q", ())
    path.write_text("{}")
    with pytest.raises(ConfigError, match="not a SavedState"):
        StateFile(path, "p", ())
    StateFile(None, "p", ()).end_run()


def test_the_rate_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0

    def sleep(seconds: float) -> None:
        nonlocal now
        now += seconds

    monkeypatch.setattr("shardmerge.cli.validation.target_run.time.monotonic", lambda: now)
    monkeypatch.setattr("shardmerge.cli.validation.target_run.time.sleep", sleep)
    run = run_of(SilentServers(ROWS, dict(ROWS)), limits=Limits(rows_per_s=10, rows_a_range=5))
    run.run()
    # 60 rows are read on both sides: 10 at once, and the rest at 10 a second.
    assert now - 100 == pytest.approx(5)


PAUSED = replace(FACTS, shards=(*FACTS.shards, shard(S2, OWN, obstacle="it is paused")))
JOINED = replace(FACTS, version=2, shards=(*FACTS.shards, shard(S2, OWN)))


class TwoShards(SilentServers):
    """The first shard has the rows below 15, the second one those from there on."""

    asked = 0

    def _rows(self, side: Side, of: KeyRange) -> dict[int, int]:
        rows = super()._rows(side, of)
        if side.shard is None:
            return rows
        return {key: value for key, value in rows.items() if (key < 15) == (side.shard == S1)}

    def range_digests(self, sides: Sequence[Side], of: KeyRange) -> list[tuple[int, int]]:
        self.asked += 1
        return super().range_digests(sides, of)

    def facts(self) -> TableFacts:
        """The second shard can be compared as soon as the first ranges are."""
        return JOINED if self.asked >= 3 else PAUSED


FIRST = {key: value for key, value in ROWS.items() if key < 15}


def test_a_shard_that_can_be_compared_meanwhile_is_compared_from_the_beginning() -> None:
    """The second shard's rows are missing; a row in doubt shows that the shard has come."""
    servers = TwoShards(ROWS, {**FIRST, 14: 99})
    run = run_of(servers, servers.facts)
    run.run()
    assert run.obstacles == 0
    missing = [d.key for d in run.validation.differences if d.kind is DifferenceKind.MISSING]
    assert sorted(missing) == sorted((str(key),) for key in range(15, 30))
    assert run.validation.rows == 30


def test_a_comparison_that_begins_anew_too_often_says_what_it_has_not_compared(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("shardmerge.cli.validation.target_run._MOST_BEGINNINGS", 1)
    servers = TwoShards(ROWS, {**FIRST, 14: 99})
    run = run_of(servers, servers.facts)
    run.run()
    assert run.stopped == f"schemas changed often meanwhile: not all rows were compared in {S2}"
    assert not run.report(1.0).is_clean


def test_a_saved_comparison_of_fewer_shards_begins_anew(tmp_path: Path) -> None:
    path = tmp_path / "state"
    run_of(TwoShards(ROWS, FIRST), lambda: PAUSED, StateFile(path, "p", ())).run()
    run = run_of(TwoShards(ROWS, FIRST), lambda: JOINED, StateFile(path, "p", ()))
    run.run()
    assert len(run.validation.differences) == 15
