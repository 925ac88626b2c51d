"""Iceberg tables under crashes and other writers: a commit is all or nothing, and once."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from shardmerge.schemas.model.errors import TargetError
from shardmerge.schemas.target.row_statements import clearing
from shardmerge.spark_sink.barrier.partitions import Partition
from shardmerge.spark_sink.planning.ranges import RangeResult, TaskFailure
from shardmerge.spark_sink.process.failpoints import SETTING
from shardmerge.spark_sink.targets.iceberg.batches import IcebergBatches
from shardmerge.spark_sink.targets.iceberg.ddl import journal
from shardmerge.spark_sink.targets.iceberg.staging import stage
from shardmerge.spark_sink.targets.iceberg.tables import IcebergTable, Moved, Uncertain
from shardmerge.spark_sink.targets.interface import JournalEntry
from tests.breadth import with_further
from tests.running import with_tests
from tests.target_statements import NO_REASON

from .contract import ROOT, Contract, IcebergKind, Writer

# py4j leaves sockets to the collector.
pytestmark = [
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
DONE = JournalEntry("done")


@pytest.mark.parametrize(
    "place",
    with_further("committed", "rows-written", "statement-begun", "statement-executed"),
)
def test_a_writer_killed_at_any_place_loses_and_repeats_nothing(
    place: str, contract: Contract, warehouse: Path
) -> None:
    first = contract.start()
    first.execute(1, contract.create())
    contract.topic.produce([contract.insert(id=n, v="a", n=n) for n in range(10)])
    first.apply()
    contract.topic.produce(
        [
            contract.insert(id=10, v="b", n=0),
            contract.delete(id=3, v="a", n=3),
            contract.topic.event("u", {"id": 4, "v": "c", "n": 4}),
        ]
    )
    before = contract.rows()

    bootstrap = contract.topic.stack.bootstrap_servers
    script = [sys.executable, "-m", "tests.integration.spark.killed_writer"]
    killed = subprocess.run(
        [*script, str(warehouse), bootstrap, contract.name], cwd=ROOT,
        env={**with_tests(), SETTING: f"{place}:1"},
        check=False, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert killed.returncode == -signal.SIGKILL, killed.stderr[-2_000:]
    assert "applying" in killed.stdout

    if place == "rows-written":
        assert contract.rows() == before
    writer = contract.start()
    [result] = writer.run(writer.task())
    assert isinstance(result, RangeResult)
    assert writer.execute(2, contract.add("w int")) == DONE
    expected = {n: (n, "a", n) for n in range(10)} | {4: (4, "c", 4), 10: (10, "b", 0)}
    del expected[3]
    assert contract.rows() == [(*expected[n], None) for n in sorted(expected)]
    # Not one event was counted twice: what was committed was not applied again.
    assert writer.target.state.rows() == {contract.target: 13}
    assert set(writer.journal.load()) == {(contract.target, 1, 0), (contract.target, 2, 0)}
    assert writer.epoch == 3


def test_a_commit_that_comes_between_is_not_carried_over(
    contract: Contract, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = contract.start()
    writer.execute(1, contract.create())
    contract.topic.produce([contract.insert(id=1, v="a", n=1)])
    stage = IcebergBatches._stage

    def staging(*arguments: Any, **named: Any) -> None:
        stage(*arguments, **named)
        values = f"lake.{contract.target.sql} VALUES (5, 'other', 5)"
        contract.kind.execute(f"INSERT INTO {values}")

    with monkeypatch.context() as patch:
        patch.setattr(IcebergBatches, "_stage", staging)
        [failure] = writer.run(writer.task())
    assert isinstance(failure, TaskFailure) and not failure.final
    assert contract.rows() == [(5, "other", 5)]
    assert writer.target.state.offsets() == {}
    writer.apply()
    assert contract.rows() == [(1, "a", 1), (5, "other", 5)]


def test_a_writer_that_is_replaced_while_it_merges_publishes_nothing(
    contract: Contract, monkeypatch: pytest.MonkeyPatch
) -> None:
    older = contract.start()
    older.execute(1, contract.create())
    contract.topic.produce([contract.insert(id=1, v="a", n=1)])
    stage = IcebergBatches._stage
    newer: list[Writer] = []

    def staging(*arguments: Any, **named: Any) -> None:
        stage(*arguments, **named)
        newer.append(contract.start())

    with monkeypatch.context() as patch:
        patch.setattr(IcebergBatches, "_stage", staging)
        [failure] = older.run(older.task())
    assert isinstance(failure, TaskFailure) and "another writer took over" in failure.message
    assert contract.rows() == []
    newer[0].apply()
    assert contract.rows() == [(1, "a", 1)]


@pytest.mark.parametrize("took_effect", [True, False])
def test_a_commit_without_an_answer_is_looked_up(
    contract: Contract, monkeypatch: pytest.MonkeyPatch, *, took_effect: bool
) -> None:
    writer = contract.start()
    writer.execute(1, contract.create())
    contract.topic.produce([contract.insert(id=1, v="a", n=1)])
    commit, unanswered = IcebergTable.commit, [True, True]

    def committing(table: IcebergTable, properties: Any, **what: Any) -> None:
        lost = unanswered and unanswered.pop()
        if took_effect or not lost:
            commit(table, properties, **what)
        if lost:
            raise Uncertain

    with monkeypatch.context() as patch:
        patch.setattr(IcebergTable, "commit", committing)
        assert writer.apply().rows == 1
        unanswered[:] = [True]
        assert writer.execute(2, contract.add("w int")) == DONE
    assert contract.rows() == [(1, "a", 1, None)]
    assert writer.target.state.rows() == {contract.target: 1}


def test_a_reading_that_is_stale_cannot_be_committed(contract: Contract, kind: IcebergKind) -> None:
    writer = contract.start()
    writer.execute(1, contract.create())
    catalog = kind.iceberg()
    stale, fresh = catalog.load(contract.target), catalog.load(contract.target)
    fresh.commit({"a": "1"})

    with pytest.raises(Moved):
        stale.commit({"a": "2"})
    assert catalog.load(contract.target).property("a") == "1"


def test_a_commit_between_rows_and_their_statement_is_seen(
    contract: Contract, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = contract.start()
    writer.execute(1, contract.create())
    contract.topic.produce([contract.insert(id=1, v="a", n=1)])
    writer.apply()
    others = [5, 6]

    def staging(session: Any, *arguments: Any) -> None:
        stage(session, *arguments)
        if others:
            row = f"({others.pop()}, 'other', 5)"
            contract.kind.execute(f"INSERT INTO lake.{contract.target.sql} VALUES {row}")

    with monkeypatch.context() as patch:
        patch.setattr(journal, "stage", staging)
        writer.journal.change_rows(contract.target, clearing(contract.target, NO_REASON))
    assert others == [] and contract.rows() == []


def test_a_writer_that_is_replaced_while_it_changes_rows_changes_none(
    contract: Contract, kind: IcebergKind, monkeypatch: pytest.MonkeyPatch
) -> None:
    older = contract.start()
    older.execute(1, contract.create())
    contract.topic.produce([contract.insert(id=1, v="a", n=1)])
    older.apply()

    def staging(session: Any, *arguments: Any) -> None:
        stage(session, *arguments)
        contract.start()

    with monkeypatch.context() as patch:
        patch.setattr(journal, "stage", staging)
        with pytest.raises(TargetError, match="another writer took over") as raised:
            older.journal.change_rows(contract.target, clearing(contract.target, NO_REASON))
    assert not raised.value.retryable and not raised.value.statement
    assert contract.rows() == [(1, "a", 1)]


def test_batches_and_statements_stage_side_by_side(
    contract: Contract, kind: IcebergKind, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = contract.start()
    writer.execute(1, contract.create())
    contract.topic.produce([contract.insert(id=1, v="a", n=1)])
    writer.apply()
    in_session = []

    def staging(session: Any, *arguments: Any) -> None:
        kind.session.conf.set("spark.wap.id", "of a batch")
        stage(session, *arguments)
        in_session.append(kind.session.conf.get("spark.wap.id"))
        kind.session.conf.unset("spark.wap.id")

    with monkeypatch.context() as patch:
        patch.setattr(journal, "stage", staging)
        writer.journal.change_rows(contract.target, clearing(contract.target, NO_REASON))
    assert in_session == ["of a batch"] and contract.rows() == []


def test_moves_and_changes_of_rows_without_an_answer_are_looked_up(
    contract: Contract, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = contract.start()
    writer.execute(1, contract.create())
    contract.topic.produce([contract.insert(id=1, v="a", n=1)])
    writer.apply()
    end, commit, unanswered = contract.topic.end_offset(), IcebergTable.commit, [True]

    def committing(table: IcebergTable, properties: Any, **what: Any) -> None:
        commit(table, properties, **what)
        if unanswered:
            unanswered.clear()
            raise Uncertain

    with monkeypatch.context() as patch:
        patch.setattr(IcebergTable, "commit", committing)
        writer.move((0, end, 0))
        unanswered.append(True)
        writer.journal.change_rows(contract.target, clearing(contract.target, NO_REASON))
    assert contract.rows() == []
    assert writer.target.state.offsets() == {Partition(contract.topic.topic, 0): 0}
    assert writer.target.state.rows() == {contract.target: 1}
