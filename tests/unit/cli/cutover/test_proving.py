"""Which rows a comparison of a cut-over reads, and what it proves."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from types import SimpleNamespace
from typing import Any, cast

import pytest

from shardmerge.cli.cutover import proving as module
from shardmerge.cli.cutover.proving import Proving
from shardmerge.cli.cutover.record import CutoverRecord
from shardmerge.cli.validation.target_run import Limits, TargetRun
from shardmerge.connectors.binlog.binlog_changes import BinlogEnd, Change, ChangedRow, LoggedText
from shardmerge.connectors.formats.stored_record import Extent
from shardmerge.connectors.sources.row_changes import BinlogUnreadable
from shardmerge.schemas.records.plain import dump, load
from shardmerge.spark_sink.barrier.partitions import Partition
from shardmerge.spark_sink.validation.compared_table import compared_table
from shardmerge.spark_sink.validation.doubts import Difference, DifferenceKind, Key
from shardmerge.spark_sink.validation.proofs import NO_PROOF, Place, Proof
from shardmerge.spark_sink.validation.record_keys import NamesNoKey
from shardmerge.spark_sink.validation.table_validation import TableValidation
from tests.recorded import Recorded
from tests.unit.spark_sink.validation.facts import RULE, S1, TARGET, shard, target

OWN = "CREATE TABLE t (id int PRIMARY KEY, a int)"
TABLE = compared_table(target(OWN), [shard(S1, OWN)])
TOPIC = "s1.app.t_1"
PLACE = (TOPIC, 0)


@dataclass
class World:
    """A line with one partition.

    Attributes:
        applied: What the sink has stored, a later offset at each look.
        changed: How many rows changed, each time that it is asked.
        compared: The keys of each comparison; None for all rows.
    """

    applied: list[int] = field(default_factory=lambda: [5])
    changed: list[int] = field(default_factory=lambda: [3])
    begin: int = 0
    version: int = 2
    table: Any = TABLE
    counts: Sequence[int] = (7, 7)
    ends: Sequence[BinlogEnd] = (BinlogEnd("server", "binlog.000001", 4),)
    changes: Sequence[Change] = ()
    passed_commits: int = 0
    differs: bool = False
    names_no_key: bool = False
    compared: list[Sequence[Key] | None] = field(default_factory=list)
    since: list[Mapping[Place, int]] = field(default_factory=list)

    def extents(self, topics: Sequence[str]) -> list[Extent]:
        assert list(topics) == [TOPIC]
        return [Extent(TOPIC, 0, self.begin, 9, 9)]

    def offsets(self) -> dict[Partition, int]:
        return {Partition(*PLACE): self.applied.pop(0) if self.applied[1:] else self.applied[0]}

    def keys(self, _: object, __: object, since: Mapping[Place, int], ___: object) -> list[Key]:
        if self.names_no_key:
            raise NamesNoKey("s1/app.t_1 was truncated meanwhile")
        self.since.append(since)
        number = self.changed.pop(0) if self.changed[1:] else self.changed[0]
        return [(str(n),) for n in range(number)]

    def compare(self, *_: object, before: Any, **__: object) -> tuple[Any, float]:
        validation = TableValidation(self.table, cast(Any, None), cast(Any, None), scanned=True)
        known = SimpleNamespace(version=self.version)
        run = SimpleNamespace(validation=validation, known=known, obstacles=0, stopped="", code="")
        run.report = partial(TargetRun.report, cast(Any, run))
        keys = before(run)
        self.compared.append(keys)
        validation.rows = 7_000 if keys is None else len(keys)
        if self.differs:
            validation.differences.append(Difference(DifferenceKind.EXTRA, ("1",)))
        return run, 0.1

    def end(self) -> BinlogEnd:
        if not self.ends:
            raise BinlogUnreadable("its server writes no binlog (log_bin is off)")
        return self.ends[0]

    def columns(self, _: object) -> list[str]:
        return ["id", "a"]

    def since_end(self, place: BinlogEnd, _: object) -> Sequence[Change]:
        self.end()
        return self.changes

    def pass_commits(self) -> None:
        self.passed_commits += 1

    def row_counts(self, _: object) -> Sequence[int]:
        return self.counts

    def close(self) -> None:
        pass


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    made = World()

    @contextmanager
    def reader(_: object) -> Iterator[World]:
        yield made

    monkeypatch.setattr(module, "topic_reader", reader)
    monkeypatch.setattr(module, "control_offsets", lambda _: made.offsets)
    monkeypatch.setattr(module, "changed_keys", made.keys)
    monkeypatch.setattr(module, "compare_target", made.compare)
    monkeypatch.setattr(module, "ServerRows", lambda _: made)
    binlog = SimpleNamespace(end=made.end, columns=made.columns, since=made.since_end)
    monkeypatch.setattr(module, "RowChanges", lambda _: binlog)
    return made


def proving(world: World, *, bounded: bool = False) -> Proving:
    pipeline = replace(Recorded(2, "optimistic").pipeline, routes=(RULE,))
    return Proving(
        pipeline, TARGET, cast(Any, None), Limits(),
        pass_commits=world.pass_commits, bounded=bounded,
    )  # fmt: skip


def proof(world: World) -> Proof:
    return proving(world).compare(NO_PROOF)[1].proof


def test_a_proof_has_the_offsets_from_before_the_comparison(world: World) -> None:
    world.applied = [5, 8]
    report, proved = proving(world).compare(NO_PROOF)
    assert (report.rows, proved.changed_only, world.compared) == (7_000, False, [None])
    assert proved.proof.places == {PLACE: 5}


def test_a_comparison_behind_a_proof_reads_the_changed_rows_and_proves_more(world: World) -> None:
    first = proof(world)
    world.applied = [8]
    report, proved = proving(world).compare(first)
    assert (report.rows, proved.changed_only, world.since) == (3, True, [{PLACE: 5}])
    assert proved.proof.places == {PLACE: 8}


def test_under_traffic_rounds_follow_until_few_rows_are_left(world: World) -> None:
    world.changed = [5_000, 2_000, 900, 1]
    report, proved = proving(world).under_traffic(NO_PROOF)
    assert [None if keys is None else len(keys) for keys in world.compared] == [
        None, 5_000, 2_000, 900,
    ]  # fmt: skip
    assert (report.rows, proved.changed_only) == (900, True)


def test_rounds_end_when_as_many_rows_change_as_are_compared(world: World) -> None:
    world.changed = [5_000, 5_001, 1]
    proving(world).under_traffic(NO_PROOF)
    assert len(world.compared) == 3


def test_a_difference_proves_nothing_and_ends_the_rounds(world: World) -> None:
    world.differs = True
    report, proved = proving(world).under_traffic(NO_PROOF)
    assert (len(world.compared), proved.proof, report.is_clean) == (1, NO_PROOF, False)


def test_what_makes_the_proof_void_compares_all_rows_and_is_told(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    first = proof(world)
    for change in ({"begin": 6}, {"version": 3}, {"names_no_key": True}):
        with pytest.MonkeyPatch.context() as patch:
            for name, value in change.items():
                patch.setattr(world, name, value)
            assert not proving(world).compare(first)[1].changed_only
    assert world.compared[1:] == [None, None, None]
    told = capsys.readouterr().err
    assert told.count("merged.t: all rows are compared: ") == 3
    assert "s1/app.t_1 was truncated meanwhile" in told


def test_rows_are_counted_at_the_end_where_one_can_replace_another(world: World) -> None:
    world.table = replace(TABLE, other_keys=True)
    first = proof(world)
    assert proving(world).compare(first, still=True)[1].changed_only
    world.counts = (6, 7)
    assert proving(world).compare(first)[1].changed_only, "under traffic the numbers say nothing"
    assert not proving(world).compare(first, still=True)[1].changed_only


def test_a_table_whose_comparison_proves_nothing_has_no_proof(world: World) -> None:
    bare = "CREATE TABLE t (a int)"
    world.table = compared_table(target(bare), [shard(S1, bare)])
    report, proved = proving(world).under_traffic(NO_PROOF)
    assert (report.is_clean, proved.proof, len(world.compared)) == (True, NO_PROOF, 1)


def test_rows_that_the_targets_binlog_names_are_compared_too(world: World) -> None:
    first = proof(world)
    assert (first.target_end, world.passed_commits) == (world.ends[0], 1)
    world.changes = [
        LoggedText("merged", "BEGIN"), ChangedRow((2, "known")), ChangedRow((70, "by hand")),
    ]  # fmt: skip
    _, proved = proving(world).compare(first, still=True)
    assert world.compared[-1] == [("0",), ("1",), ("2",), ("70",)]
    assert (proved.changed_only, proved.proof.target_end) == (True, world.ends[0])


def test_a_statement_on_the_target_that_names_no_rows_compares_all(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    first = proof(world)
    world.changes = [LoggedText("merged", "TRUNCATE t")]
    assert not proving(world).compare(first, still=True)[1].changed_only
    assert "'TRUNCATE t'" in capsys.readouterr().err


@pytest.mark.parametrize("before", [True, False])
def test_without_a_binlog_of_the_target_all_rows_are_compared_at_the_end(
    world: World, before: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    """It may have been off when the earlier comparison ended, or be off now."""
    had, world.ends = world.ends, world.ends if before else ()
    first = proof(world)
    world.ends = () if before else had
    _, proved = proving(world).compare(first)
    # Under traffic all rows are compared only if that helps at the end.
    assert (proved.changed_only, proved.proof.target_end) == (
        (True, None) if before else (False, had[0])
    )
    assert not proving(world).compare(first, still=True)[1].changed_only
    told = capsys.readouterr().err
    assert ("log_bin is off" if before else "when it was last compared") in told
    assert "--bounded" in told
    assert proving(world, bounded=True).compare(first, still=True)[1].changed_only


def test_without_a_binlog_no_round_under_traffic_repeats_the_comparison(world: World) -> None:
    world.ends, world.changed = (), [5_000, 2_000]
    proving(world).under_traffic(NO_PROOF)
    assert world.compared == [None]
    proving(world, bounded=True).under_traffic(NO_PROOF)
    assert [None if keys is None else len(keys) for keys in world.compared[1:]] == [
        None, 5_000, 2_000, 2_000,
    ]  # fmt: skip


def test_a_stored_record_has_the_end_and_an_earlier_versions_record_has_none(world: World) -> None:
    stored = dump(CutoverRecord(by="olga", proof=proof(world)))
    assert load(CutoverRecord, stored).proof.target_end == world.ends[0]
    old = json.loads(stored)
    del old["proof"]["target_end"]
    assert load(CutoverRecord, json.dumps(old).encode()).proof.target_end is None
