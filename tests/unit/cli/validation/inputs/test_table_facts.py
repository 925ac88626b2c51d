from __future__ import annotations

import pytest

from shardmerge.cli.validation.inputs.table_facts import Readings, facts_of, targets_of
from shardmerge.connectors.debezium.signals import signal_id
from shardmerge.schemas.model.errors import ConfigError
from shardmerge.schemas.model.names import TargetTable
from shardmerge.schemas.records.decisions import FixupKind, StatementKind
from shardmerge.schemas.records.progress import ShardProgress, SinkProgress, StatementProgress
from tests.recorded import Recorded
from tests.unit.cli.views.pictures import ONE, TARGET, TWO, conflicting, picture, recorded, reported


def executed(made: Recorded, version: int, *open_: StatementProgress) -> Recorded:
    shards = (ShardProgress(ONE, 0), ShardProgress(TWO, 0))
    return reported(made, SinkProgress(TARGET, version, 0, open=open_, shards=shards))


def test_live_shards_that_wait_for_nothing_are_compared() -> None:
    found = facts_of(picture(executed(recorded(), 2)), TARGET, Readings())
    assert found.version == 2
    assert found.executed
    assert [(s.shard, s.obstacle) for s in found.shards] == [(ONE, ""), (TWO, "")]
    assert [c.column.name for c in found.target.columns] == ["id", "a"]
    assert found.target.key == ("id",)
    assert found.target.kept == ""


def test_a_column_counts_when_its_statement_is_executed() -> None:
    made = recorded(("s1", "ALTER TABLE tbl1 ADD b INT"))
    before = facts_of(picture(executed(made, 2)), TARGET, Readings())
    assert not before.executed
    assert [c.column.name for c in before.target.columns] == ["id", "a"]
    assert before.shards[0].obstacle == "its rows wait for version 3"
    assert before.shards[1].obstacle == ""
    after = facts_of(picture(executed(made, 3)), TARGET, Readings())
    assert [c.column.name for c in after.target.columns] == ["id", "a", "b"]
    assert after.shards[0].obstacle == ""


def test_a_debt_does_not_hinder() -> None:
    made = recorded(("s1", "ALTER TABLE tbl1 DROP a"), ("s2", "ALTER TABLE tbl2 DROP a"))
    debt = StatementProgress(4, 0, "", StatementKind.CONTRACTING, "debt")
    found = facts_of(picture(executed(made, 4, debt)), TARGET, Readings())
    assert found.executed
    assert [c.column.name for c in found.target.columns] == ["id"]


def test_what_hinders_a_shard_is_told() -> None:
    held = facts_of(picture(executed(conflicting(), 3)), TARGET, Readings())
    assert held.shards[0].obstacle == ""
    assert held.shards[1].obstacle
    again = facts_of(picture(executed(recorded(), 2)), TARGET, Readings({("s2", "shop.tbl2")}))
    assert [s.obstacle for s in again.shards] == ["", "its table is being read again"]


def test_a_reading_that_is_decided_and_not_yet_asked_for_hinders() -> None:
    made = recorded(("s1", "ALTER TABLE tbl1 MODIFY a TINYINT"))
    shown = picture(executed(made, 3))
    (fixup,) = shown.of_target(TARGET)[3].decision.fixups
    assert fixup.kind is FixupKind.SNAPSHOT
    found = facts_of(shown, TARGET, Readings())
    assert [s.obstacle for s in found.shards] == ["its table is being read again", ""]
    asked = {signal_id(str(shown.of_target(TARGET)[3].decision.id), ONE)}
    assert facts_of(shown, TARGET, Readings((), asked)).shards[0].obstacle == ""


def test_rows_of_a_dropped_shard_may_be_kept() -> None:
    found = facts_of(picture(executed(recorded(("s2", "DROP TABLE tbl2")), 3)), TARGET, Readings())
    assert [s.shard for s in found.shards] == [ONE]
    assert found.target.kept == f"rows of {TWO}, which is no longer live, may be kept"


def test_a_target_that_is_not_there_is_refused() -> None:
    found = picture(recorded())
    assert targets_of(found, None) == [TARGET] == targets_of(found, TARGET)
    with pytest.raises(ConfigError, match="no target is called"):
        targets_of(found, TargetTable("a", "b"))
