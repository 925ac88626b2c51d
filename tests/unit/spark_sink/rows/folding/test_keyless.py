"""What rows of a table without a primary key come to: what is added, what is removed."""

from __future__ import annotations

from dataclasses import replace

from shardmerge.schemas.model.names import TargetTable
from shardmerge.schemas.model.shard_columns import ShardColumn
from shardmerge.schemas.model.tables import Column
from shardmerge.schemas.model.types import ColumnType
from shardmerge.schemas.records.decisions import Binding
from shardmerge.spark_sink.planning.ranges import Segment, ShardStream
from shardmerge.spark_sink.rows.folding.keyless import KeylessBatch
from shardmerge.spark_sink.rows.folding.row_batches import Batch
from shardmerge.spark_sink.rows.folding.row_fold import RowFold
from tests.unit.spark_sink.row_events import (
    INT,
    SHARD,
    TEXT,
    at,
    fold,
    from_where,
    row,
    rows_of,
    segment,
)


def test_rows_without_a_key_are_summed_up() -> None:
    f = fold(segment(key="", id=INT, v=TEXT))
    one, two, three = ({"id": n, "v": "x"} for n in (1, 2, 3))
    changes: list[tuple[str, object, object]] = [
        ("c", one, None), ("c", one, None), ("c", two, None), ("d", two, None),
        ("d", three, None), ("u", one, three), ("d", three, None),
    ]  # fmt: skip
    for offset, (op, image, before) in enumerate(changes):
        assert f.add(offset, row(op, image, at(100 + offset), before=before))

    (batch,) = f.batches()
    assert isinstance(batch, KeylessBatch)
    assert rows_of(batch.added) == [{"id": "1", "v": "x"}] * 3
    assert rows_of(batch.removed) == [{"id": "3", "v": "x"}]
    assert (batch.removed_counts, batch.types) == ((3,), ("int", "varchar"))
    assert f.rows == 7


def test_a_key_that_comes_or_goes_begins_another_batch() -> None:
    f = fold(segment(key="", id=INT), segment(at(200), id=INT), segment(at(300), key="", id=INT))
    for offset, pos in enumerate((100, 200, 300, 310)):
        assert f.add(offset, row("c", {"id": offset}, at(pos)))

    keyless, keyed, again = f.batches()
    assert isinstance(keyless, KeylessBatch)
    assert isinstance(keyed, Batch)
    assert isinstance(again, KeylessBatch)
    assert rows_of(again.added) == [{"id": "2"}, {"id": "3"}]


def test_rows_without_a_key_and_without_an_order_hold_their_shard() -> None:
    stream = ShardStream(
        SHARD, TargetTable("m", "t"), (segment(key="", id=INT),), None, partitions=2
    )
    f = RowFold(stream, {"id#1": Binding("id#1", "id")})
    assert not f.add(0, row("c", {"id": 1}, at(100)))
    assert f.end is not None
    assert f.end.hold is not None
    assert "no primary key" in f.end.hold.reason


def stepped(*segments: Segment) -> RowFold:
    """Of a partition of several that are ordered."""
    stream = ShardStream(SHARD, TargetTable("m", "t"), segments, None, partitions=2, ordered=True)
    ids = {c.id: c.column.name for s in segments for c in s.columns}
    return RowFold(stream, {id_: Binding(id_, name) for id_, name in ids.items()})


def test_rows_without_a_key_are_summed_up_over_ordered_partitions() -> None:
    folds = [stepped(segment(key="", id=INT)) for _ in range(3)]
    one, two, three = ({"id": n} for n in (1, 2, 3))
    changes: list[list[tuple[str, object, object]]] = [
        [("c", one, None), ("c", one, None), ("d", three, None)],
        [("u", two, one), ("c", three, None), ("d", three, None)],
        [("d", one, None), ("c", two, None), ("d", three, None)],
    ]
    for f, some in zip(folds, changes, strict=True):
        for offset, (op, image, before) in enumerate(some):
            assert f.add(offset, row(op, image, at(100 + offset), before=before))

    (batch,) = folds[0].batches(folds[1:])
    assert isinstance(batch, KeylessBatch)
    assert rows_of(batch.added) == [{"id": "2"}] * 2
    assert rows_of(batch.removed) == [{"id": "3"}]
    assert batch.removed_counts == (2,)


def test_ordered_partitions_are_summed_up_segment_by_segment() -> None:
    segments = segment(key="", id=INT), segment(at(200), key="", id=INT, v=TEXT)
    folds = [stepped(*segments) for _ in range(3)]
    early, late = {"id": 1}, {"id": 1, "v": None}
    assert folds[0].add(0, row("c", late, at(200)))
    assert folds[1].add(0, row("c", early, at(100)))
    assert folds[1].add(1, row("d", late, at(210)))
    assert folds[1].add(2, row("c", late, at(220)))
    assert folds[2].add(0, row("c", early, at(110)))

    first, second = folds[0].batches(folds[1:])
    assert isinstance(first, KeylessBatch)
    assert isinstance(second, KeylessBatch)
    assert (rows_of(first.added), first.removed) == ([{"id": "1"}] * 2, None)
    assert (rows_of(second.added), second.removed) == ([{"id": "1", "v": None}], None)


def test_a_ordered_partition_without_a_row_gives_nothing_to_the_sum() -> None:
    empty, other = (stepped(segment(key="", id=INT)) for _ in range(2))
    assert other.add(0, row("c", {"id": 1}, at(100)))
    for folds in ([empty, other], [other, empty]):
        (batch,) = folds[0].batches(folds[1:])
        assert isinstance(batch, KeylessBatch)
        assert rows_of(batch.added) == [{"id": "1"}]


def test_an_update_without_a_key_needs_the_row_before() -> None:
    f = fold(segment(key="", id=INT))
    assert not f.add(0, row("u", {"id": 1}, at(100)))
    assert f.end is not None
    assert f.end.hold is not None
    assert f.end.hold.hint == "set binlog_row_image=FULL"


def test_an_update_without_a_key_checks_the_row_before_too() -> None:
    f = fold(segment(key="", id=INT))
    assert not f.add(0, row("u", {"id": 1}, at(100), before={"other": 1}))
    assert f.end is not None
    assert f.end.hold is not None
    assert "unknown: other" in f.end.hold.reason


def test_rows_without_a_key_are_added_and_removed_only_where_the_condition_wants_them() -> None:
    f = fold(segment(key="", v=TEXT), where="v <> 'out'")
    changes = [
        ("c", None, "a"), ("c", None, "out"), ("u", "b", "out"), ("u", "out", "c"),
        ("d", None, "out"), ("d", None, "d"),
    ]  # fmt: skip
    for offset, (op, before, v) in enumerate(changes):
        earlier = {"v": before} if before else None
        f.add(offset, row(op, {"v": v}, at(100 + offset), before=earlier))
    [batch] = f.batches()
    assert isinstance(batch, KeylessBatch)
    assert {r["v"] for r in rows_of(batch.removed)} == {"b", "d"}
    assert {r["v"] for r in rows_of(batch.added)} == {"a", "c"}


def test_origin_columns_tell_which_of_equal_rows_without_a_key_is_taken_away() -> None:
    f = fold(from_where(key=""), bindings={"@shard": Binding("@shard", "_from")})
    f.add(0, row("d", {"id": 1, "v": "a"}, at(1)))
    f.add(1, row("c", {"id": 2, "v": "b"}, at(2)))
    (batch,) = f.batches()
    assert isinstance(batch, KeylessBatch)
    assert rows_of(batch.removed) == [{"id": "1", "v": "a", "_from": "s1/app.t"}]
    assert batch.types == ("int", "varchar", "varchar")
    assert rows_of(batch.added) == [{"id": "2", "v": "b", "_from": "s1/app.t"}]


PLACE = ShardColumn("@position", Column("_p", ColumnType("varchar", 400, charset="utf8mb4")))


def placed(partition: int = 0, *, steps: bool = False) -> RowFold:
    """Of a shard whose rows get their place as their key."""
    plain = segment(key="", id=INT)
    whole = replace(plain, columns=(*plain.columns, PLACE), key=("_p",))
    stream = ShardStream(
        SHARD, TargetTable("m", "t"), (whole,), None, partitions=1 + steps, ordered=steps
    )
    bindings = {"id#1": Binding("id#1", "id"), "@position": Binding("@position", "_p")}
    return RowFold(stream, bindings, partition=partition)


def test_rows_without_a_key_get_their_place_as_their_key() -> None:
    f = placed()
    for offset, (op, n) in enumerate((("c", 1), ("c", 1), ("d", 1), ("c", 2), ("d", 3))):
        assert f.add(offset, row(op, {"id": n}, at(100 + offset)))
    assert f.add(9, row("u", {"id": 4}, at(120), before={"id": 5}))
    (batch,) = f.batches()
    assert isinstance(batch, KeylessBatch)
    assert {r["_p"] for r in rows_of(batch.added)} == {f"s1/{at(pos)}" for pos in (101, 103, 120)}
    assert {r["id"] for r in rows_of(batch.removed)} == {"3", "5"}
    assert all("_p" not in r for r in rows_of(batch.removed))


def test_rows_that_a_snapshot_reads_at_one_place_get_keys_of_their_own() -> None:
    folds = [placed(partition, steps=True) for partition in range(2)]
    for f in folds:
        for offset in (7, 8):
            assert f.add(offset, row("r", {"id": 1}, at(50)))
    (batch,) = folds[0].batches(folds[1:])
    assert isinstance(batch, KeylessBatch)
    assert [r["_p"] for r in rows_of(batch.added)] == [
        f"s1/{at(50)} app.t:{place}" for place in ("0:7", "0:8", "1:7", "1:8")
    ]


def test_rows_that_only_look_otherwise_take_each_other_away() -> None:
    elements = ColumnType("enum", elements=("a,b", "c"), charset="utf8mb4")
    f = fold(segment(key="", v=elements))
    assert f.add(0, row("r", {"v": "a,b"}, at(100)))  # of a snapshot
    assert f.add(1, row("r", {"v": "a,b"}, at(100)))
    assert f.add(2, row("d", {"v": "a\\,b"}, at(110)))  # of the binlog

    (batch,) = f.batches()
    assert isinstance(batch, KeylessBatch)
    assert batch.removed is None
    assert rows_of(batch.added) == [{"v": "a,b"}]
    (again,) = f.batches()
    assert again == batch
