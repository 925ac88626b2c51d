from __future__ import annotations

from dataclasses import replace

from shardmerge.schemas.model.names import TargetTable
from shardmerge.spark_sink.barrier.closing import Closing, Marks
from shardmerge.spark_sink.barrier.decisions import StatementKey
from shardmerge.spark_sink.barrier.partitions import Partition
from shardmerge.spark_sink.rebuilding.rebuild_record import Stage
from shardmerge.spark_sink.rebuilding.route_changes import ChangedWhere
from shardmerge.spark_sink.targets.iceberg.texts.decided import Decided
from shardmerge.spark_sink.targets.iceberg.texts.layout import Field, Layout
from shardmerge.spark_sink.targets.iceberg.texts.stored import StoredState
from shardmerge.spark_sink.targets.iceberg.texts.stored_rebuilds import (
    changes_of,
    control_of_shadow,
    events_behind,
    executed_in,
    first_state,
    kept,
    marks_of,
    rebuilds_of,
    rebuilds_text,
    shadow_columns,
    shadow_properties,
    statements_behind,
    swapped_state,
    tag_of,
)
from tests.unit.spark_sink.rebuilding.test_rebuild_record import RECORD, TARGET

A, B, C = (Partition("rows", number) for number in range(3))
OTHER = TargetTable("merged", "other")


def test_records_are_kept_by_number_in_one_text() -> None:
    later = replace(RECORD, number=8, target=OTHER)
    records = kept(kept([], later), RECORD)
    assert rebuilds_of(rebuilds_text(records)) == [RECORD, later]
    swapped = replace(RECORD, stage=Stage.SWAPPED)
    assert rebuilds_of(rebuilds_text(kept(records, swapped))) == [swapped, later]
    assert rebuilds_of(None) == [] == rebuilds_of("[]")


def test_the_sink_is_told_what_is_closed_and_which_swap_was_the_last() -> None:
    before = replace(RECORD, number=3, stage=Stage.ENDED, where="a > 1")
    closing = replace(RECORD, number=5, stage=Stage.SWAPPING, where="a > 2")
    again = replace(RECORD, number=4, target=OTHER, stage=Stage.SWAPPED, where="", where_before="b")
    aborted = replace(RECORD, number=6, stage=Stage.ABORTED)
    records = [aborted, closing, again, before]
    assert marks_of(records) == Marks({TARGET: Closing.SWAPPING}, 4)
    assert marks_of([aborted]) == Marks({}, 0)
    assert changes_of(records) == (ChangedWhere(TARGET, "", "a > 1"), ChangedWhere(OTHER, "b", ""))


def test_everything_of_a_shadow_is_in_a_namespace_of_its_own() -> None:
    shadow = RECORD.shadow.table
    assert control_of_shadow(shadow) == TargetTable(shadow.database, "sink_of_t")
    assert tag_of(RECORD) == "shardmerge_old_7"


def test_a_shadow_s_columns_have_the_ids_that_the_target_s_have() -> None:
    target = Layout((Field(1, "id", "int"), Field(7, "V", "string"), Field(9, "by_hand", "int")), 9)
    decided = Layout((Field(1, "v", "string"), Field(2, "id", "int"), Field(3, "n", "int")), 3)
    found = shadow_columns(decided, target, None)
    named = [(field.name, field.id) for field in found.layout.fields]
    assert named == [("v", 7), ("id", 1), ("n", 10)]
    assert (found.layout.last_id, found.after) == (10, 0)


def test_what_was_adopted_stays_so_under_the_ids_of_the_shadow() -> None:
    key, note, moved = Field(2, "ID", "int", True), Field(4, "note", "string"), Field(5, "v", "int")
    known = Decided(Layout((key, note, moved), 5, (2, 5)), 30, {"rows": "x"}, frozenset({4}))
    wanted = Layout((Field(1, "note", "string"), Field(2, "id", "int", True), moved), 5)
    # Somebody has dropped ``note`` since, and made it anew.
    there = Layout((key, moved, Field(9, "note", "string")), 9)
    found = shadow_columns(wanted, there, known)
    assert [(field.name, field.id) for field in found.layout.fields] == [
        ("note", 9), ("id", 2), ("v", 5),
    ]  # fmt: skip
    # Iceberg takes no nullable column as an identifier field.
    assert found.layout.identifiers == (2,)
    assert found == Decided(found.layout, others=frozenset({9}))


def test_a_shadow_has_the_target_s_settings_and_not_its_state() -> None:
    target = {
        "shardmerge.p.state": "{}", "write.format.default": "orc", "gc.enabled": "false",
        "comment": "old", "write.metadata.path": "/m",
    }  # fmt: skip
    assert shadow_properties(target, "/w/t/data") == {
        "write.format.default": "orc", "write.data.path": "/w/t/data",
    }  # fmt: skip


def test_a_shadow_s_sink_begins_where_the_target_stands() -> None:
    done = frozenset({"40.0", "40.-1", "41.-1"})
    target = StoredState(3, {A: 50}, 7, done, {"2.0": "no"}, closed=Closing.SWAPPING)
    layout = Layout((Field(7, "id", "int"),), 9)
    assert first_state(target, 40, Decided(layout)) == StoredState(
        0, {A: 50}, 0, frozenset({"40.-1"}), decided=Decided(layout)
    )


def test_what_a_shadow_lacks_is_counted() -> None:
    target = StoredState(3, {A: 50, B: 9}, done=frozenset({"1.0", "41.0", "41.-1", "42.0"}))
    shadow = StoredState(1, {A: 47, C: 5}, done=frozenset({"1.0", "41.0"}))
    assert events_behind(target, shadow) == 3 + 9
    assert events_behind(shadow, target) == 5
    assert statements_behind(target, shadow, 40) == 2
    assert executed_in(shadow) == {StatementKey(1, 0), StatementKey(41, 0)}


def test_the_shadow_s_state_is_the_target_s_from_its_version_on() -> None:
    old, new = Layout((Field(1, "a", "int"),), 1), Layout((Field(1, "a", "long"),), 1)
    target = StoredState(
        3, {A: 50, B: 9}, 7, frozenset({"1.0", "2.0", "41.0"}), {"42.0": "no"},
        {"42.0": "SM-3106"}, Decided(old, 4), Closing.SWAPPING,
    )  # fmt: skip
    shadow = StoredState(
        5, {A: 60, C: 1}, 4, frozenset({"1.0", "41.0", "43.0"}), {"44.0": "why"},
        {"44.0": "SM-6806"}, Decided(new),
    )  # fmt: skip
    assert swapped_state(target, shadow, 40, 6, 17) == StoredState(
        6, {A: 60, B: 9, C: 1}, 11, frozenset({"1.0", "2.0", "41.0", "43.0"}), {"44.0": "why"},
        {"44.0": "SM-6806"}, Decided(new, 17),
    )  # fmt: skip
