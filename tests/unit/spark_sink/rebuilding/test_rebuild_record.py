from __future__ import annotations

from dataclasses import replace

from shardmerge.schemas.model.names import TargetTable
from shardmerge.schemas.model.origin import NO_ORIGIN, Origin, OriginColumn, OriginPart
from shardmerge.schemas.records.decisions import StatementKind, TargetStatement
from shardmerge.schemas.records.plain import dump, load
from shardmerge.spark_sink.rebuilding.rebuild_record import RebuildRecord, Stage
from shardmerge.spark_sink.rebuilding.route_changes import ChangedOrigin, ChangedWhere

TARGET = TargetTable("merged", "t")
RECORD = RebuildRecord(
    7, TARGET, Stage.BUILDING, 40,
    (TargetStatement("CREATE TABLE ü", StatementKind.EXPANDING, "", ("table",)),),
    "control", "olga", "2026-11-26T04:00:00.000Z",
)  # fmt: skip


def test_a_record_says_where_everything_is() -> None:
    assert RECORD.shadow.table == TargetTable("control_new_7", "t")
    assert (RECORD.shadow.target, RECORD.shadow.version) == (TARGET, 40)
    assert RECORD.old == TargetTable("control_old_7", "t")
    assert RECORD.sink_name("p") == "p~7"


def test_a_record_is_stored_as_text() -> None:
    assert load(RebuildRecord, dump(RECORD)) == RECORD


def test_a_record_says_what_changes_in_the_route() -> None:
    apart = Origin((OriginColumn(OriginPart.SHARD, "_shard"),), in_keys=True)
    assert RECORD.changes == ()
    held = replace(RECORD, origin=apart, origin_before=apart)
    assert held.changes == (), "a table that is made anew because shards are held"
    changed = replace(RECORD, where="a", where_before="b", origin=apart)
    assert changed.changes == (
        ChangedWhere(TARGET, "b", "a"),
        ChangedOrigin(TARGET, NO_ORIGIN, apart),
    )
    assert load(RebuildRecord, dump(changed)) == changed


def test_a_rebuild_is_open_until_the_shadow_has_its_place_or_is_dropped() -> None:
    is_open = {stage: replace(RECORD, stage=stage).is_open for stage in Stage}
    assert is_open == {
        Stage.BUILDING: True, Stage.SWAPPING: True,
        Stage.SWAPPED: False, Stage.ENDED: False, Stage.ABORTED: False,
    }  # fmt: skip
