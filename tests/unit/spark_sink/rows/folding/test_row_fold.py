"""What a partition's rows come to: last change per key, gates, rows that cannot be applied."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from shardmerge.schemas.model.names import TargetTable
from shardmerge.schemas.model.position import BEGINNING, SourcePosition
from shardmerge.schemas.model.shard_columns import ShardColumn
from shardmerge.schemas.model.tables import Column
from shardmerge.schemas.model.types import ColumnType
from shardmerge.schemas.records.decisions import Binding
from shardmerge.spark_sink.planning.ranges import Segment, ShardStream
from shardmerge.spark_sink.rows.folding.row_blocks import RefusedRow
from shardmerge.spark_sink.rows.folding.row_fold import RowFold
from shardmerge.spark_sink.rows.folding.segment_plan import Refusal
from tests.unit.spark_sink.row_events import (
    INT,
    SHARD,
    TEXT,
    at,
    fold,
    from_where,
    only,
    row,
    rows_of,
    segment,
)


def test_the_last_change_of_a_key_wins_and_rows_are_sorted_by_key() -> None:
    f = fold(segment(id=INT, v=TEXT))
    for offset, (op, key, v) in enumerate(
        [("c", 10, "a"), ("c", 2, "b"), ("u", 10, "c"), ("c", 3, "d"), ("d", 3, "d"), ("d", 9, "")]
    ):
        assert f.add(offset, row(op, {"id": key, "v": v}, at(100 + offset)))

    batch = only(f.batches())
    (block,) = batch.upserts
    assert rows_of(block) == [{"id": "2", "v": "b"}, {"id": "10", "v": "c"}]
    assert rows_of(batch.deletes) == [{"id": "3"}, {"id": "9"}]
    assert f.rows == 6
    assert f.end is None


def test_a_primary_key_update_is_a_delete_and_a_create_at_one_place() -> None:
    f = fold(segment(id=INT))
    f.add(0, row("d", {"id": 1}, at(100)))
    f.add(1, row("c", {"id": 2}, at(100)))

    batch = only(f.batches())
    assert rows_of(batch.deletes) == [{"id": "1"}]
    assert rows_of(batch.upserts[0]) == [{"id": "2"}]


def test_a_tombstone_is_passed_over() -> None:
    f = fold(segment(id=INT))

    assert f.add(0, None)
    assert f.batches() == []


@pytest.mark.parametrize("keeps", [True, False])
def test_a_truncation_ends_the_fold_unless_the_rows_stay(keeps: bool) -> None:
    one = segment(id=INT)
    stream = ShardStream(SHARD, TargetTable("m", "t"), (one,), None, keeps_truncated=keeps)
    f = RowFold(stream, {"id#1": Binding("id#1", "id")})
    records = [("c", {"id": 1}, at(1)), ("t", None, at(2)), ("c", {"id": 2}, at(3))]

    assert f.add_all([10, 11, 12], [row(*record) for record in records]) == keeps
    ids = [found["id"] for found in rows_of(only(f.batches()).upserts[0])]
    assert ids == (["1", "2"] if keeps else ["1"])
    if not keeps:
        assert f.end is not None
        assert (f.end.offset, f.end.position, f.end.hold) == (11, at(2), None)
        assert f.end.truncated


def test_origin_columns_tell_the_rows_shard() -> None:
    f = fold(from_where(), bindings={"@shard": Binding("@shard", "_from")})
    f.add(0, row("c", {"id": 1, "v": "a"}, at(1)))
    f.add(1, row("d", {"id": 2, "v": "b"}, at(2)))
    batch = only(f.batches())
    assert f.end is None
    assert batch.key == ("id", "_from")
    assert rows_of(batch.upserts[0]) == [{"id": "1", "v": "a", "_from": "s1/app.t"}]
    assert rows_of(batch.deletes) == [{"id": "2", "_from": "s1/app.t"}]


def test_a_row_belongs_to_the_last_segment_that_starts_at_or_before_it() -> None:
    f = fold(segment(id=INT), segment(at(200), id=INT, v=TEXT), segment(at(50, file=2), id=INT))
    places = [at(199, 9), at(200), at(10**9), at(49, 9, file=2), at(50, file=2), at(1, file=10)]
    for offset, place in enumerate(places):
        image = {"id": offset, "v": "x"} if offset in (1, 2, 3) else {"id": offset}
        assert f.add(offset, row("c", image, place)), f.end

    blocks = only(f.batches()).upserts
    assert [[r["id"] for r in rows_of(b)] for b in blocks] == [["0"], ["1", "2", "3"], ["4", "5"]]


def test_a_row_of_an_earlier_segment_is_found_after_rows_of_a_later_one() -> None:
    f = fold(segment(id=INT), segment(at(200), id=INT, v=TEXT))

    assert f.add(0, row("c", {"id": 1, "v": "x"}, at(300)))
    assert f.add(1, row("r", {"id": 2}, at(100)))
    assert f.add(2, row("c", {"id": 3, "v": "x"}, at(200)))


@pytest.mark.parametrize("place", [at(200), at(200, 1), at(5, file=2)])
def test_the_fold_ends_before_a_row_at_or_beyond_the_stop(place: SourcePosition) -> None:
    f = fold(segment(id=INT), stop=at(200))
    assert f.add(7, row("c", {"id": 1}, at(199, 5)))

    assert not f.add(9, row("c", {"id": 2}, place))
    assert not f.add(10, row("c", {"id": 3}, at(100)))
    assert f.end is not None
    assert (f.end.offset, f.end.position, f.end.hold) == (9, place, None)
    assert f.rows == 1


def test_values_go_by_identity_whatever_the_column_is_called() -> None:
    f = fold(
        segment(id=INT, old=("old#1", TEXT)),
        segment(at(200), id=INT, new=("old#1", TEXT), old=("old#2", TEXT)),
        bindings={"old#1": Binding("old#1", "new"), "old#2": Binding("old#2", "old")},
    )
    f.add(0, row("c", {"id": 1, "old": "first"}, at(100)))
    f.add(1, row("c", {"id": 2, "new": "second", "old": "third"}, at(200)))

    early, late = only(f.batches()).upserts
    assert rows_of(early) == [{"id": "1", "new": "first"}]
    assert rows_of(late) == [{"id": "2", "new": "second", "old": "third"}]


def test_values_of_unbound_dropped_and_generated_columns_are_left_out() -> None:
    f = fold(
        segment(id=INT, late=TEXT, gone=TEXT, made=INT),
        unbound="late#1",
        bindings={
            "gone#1": Binding("gone#1", ""),
            "made#1": Binding("made#1", "made", writable=False),
        },
    )
    f.add(0, row("c", {"id": 1, "late": "x", "gone": "y", "made": 5}, at(100)))

    assert rows_of(only(f.batches()).upserts[0]) == [{"id": "1"}]


def test_a_renamed_key_column_stays_one_key() -> None:
    f = fold(segment(id=INT), segment(at(200), key="nr", nr=("id#1", INT)))
    f.add(0, row("c", {"id": 1}, at(100)))
    f.add(1, row("d", {"id": 2}, at(110)))
    f.add(2, row("d", {"nr": 1}, at(200)))

    batch = only(f.batches())
    assert batch.upserts == ()
    assert rows_of(batch.deletes) == [{"id": "1"}, {"id": "2"}]


def test_another_primary_key_begins_another_batch() -> None:
    f = fold(segment(id=INT, v=INT), segment(at(200), key="v", id=INT, v=INT))
    f.add(0, row("c", {"id": 1, "v": 5}, at(100)))
    f.add(1, row("d", {"id": 1, "v": 5}, at(200)))

    first, second = f.batches()
    assert (first.key, second.key) == (("id",), ("v",))
    assert rows_of(second.deletes) == [{"v": "5"}]


def test_a_composite_key_keeps_the_order_of_the_key() -> None:
    f = fold(segment(key="b a", a=INT, b=TEXT))
    f.add(0, row("c", {"a": 1, "b": "z"}, at(100)))
    f.add(1, row("c", {"a": 2, "b": "y"}, at(101)))

    batch = only(f.batches())
    assert batch.key == ("b", "a")
    assert [r["b"] for r in rows_of(batch.upserts[0])] == ["y", "z"]


def test_rows_with_a_doubled_backtick_may_be_followed_by_any_other() -> None:
    columns: dict[str, Any] = {"id": INT, "a`b": INT}
    f = fold(segment(**columns))
    for number in range(2):
        assert f.add(number, row("c", {"id": number, "a``b": 2}, at(100 + number)))
    assert not f.add(2, row("t", None, at(102)))
    assert f.end is not None
    assert f.end.truncated


def test_a_backtick_in_a_name_may_be_doubled_in_some_images() -> None:
    columns: dict[str, Any] = {"i`d": INT}
    f = fold(*(segment(start, key="i`d", **columns) for start in (BEGINNING, at(200))))
    names = ["i`d", "i``d", "i`d", "i``d", "i``d"]
    for offset, name in enumerate(names):
        assert f.add(offset, row("c", {name: offset % 4}, at(100 + 50 * offset))), f.end

    rows = [r for block in only(f.batches()).upserts for r in rows_of(block)]
    assert sorted(str(r["i`d"]) for r in rows) == ["0", "1", "2", "3"]


HELD = [
    ("an image with another column", {"id": 1, "w": "x"}, "c", "t", "unknown: w; missing: v"),
    ("an image that lacks a column", {"id": 1}, "c", "t", "missing: v"),
    ("a delete that lacks a column", {"id": 1}, "d", "t", "missing: v"),
    ("a row without an image", None, "c", "t", "without a row image"),
    ("a row of another table", {"id": 1, "v": "x"}, "c", "t_", "belongs to s1/app.t_"),
    ("an unknown operation", {"id": 1, "v": "x"}, "z", "t", "not known"),
]


@pytest.mark.parametrize(
    ("image", "op", "table", "reason"), [h[1:] for h in HELD], ids=[h[0] for h in HELD]
)
def test_a_row_that_contradicts_the_tracked_schema_is_held(
    image: object, op: str, table: str, reason: str
) -> None:
    f = fold(segment(id=INT, v=TEXT))
    f.add(3, row("c", {"id": 1, "v": "x"}, at(100)))

    assert not f.add(4, row(op, image, at(110), table))
    assert f.end is not None
    assert f.end.hold is not None
    assert reason in f.end.hold.reason
    assert f.end.hold.hint
    assert (f.end.hold.offset, f.end.hold.position) == (4, at(110))
    assert f.rows == 1


def test_a_record_that_cannot_be_decoded_is_held_at_its_offset() -> None:
    f = fold(segment(id=INT))

    assert not f.add(8, b"\xff")
    assert f.end is not None
    assert f.end.hold is not None
    assert f.end.hold.offset == 8


def test_rows_of_a_segment_that_is_passed_over_are_not_looked_at() -> None:
    over = replace(segment(at(100), id=INT), passed_over=True)
    f = fold(segment(id=INT), over, segment(at(200), id=INT))

    for offset, image in enumerate(({"id": 1}, {"other": 2}, {"id": 3})):
        assert f.add(offset, row("c", image, at(50 + 100 * offset)))

    blocks = only(f.batches()).upserts
    assert [row for block in blocks for row in rows_of(block)] == [{"id": "1"}, {"id": "3"}]
    assert (f.rows, f.end) == (2, None)


@pytest.mark.parametrize(
    ("stream", "reason"),
    [
        (segment(id=INT, live=False), "dropped"),
        (segment(at(500), id=INT), "before the first known schema"),
        (segment(id=INT, v=ColumnType("vector")), "column v"),
    ],
)
def test_a_segment_that_cannot_take_rows_holds_the_first_one(stream: Segment, reason: str) -> None:
    f = fold(stream)

    assert not f.add(0, row("c", {c.column.name: 1 for c in stream.columns}, at(100)))
    assert f.end is not None
    assert f.end.hold is not None
    assert reason in f.end.hold.reason


def test_a_key_column_that_the_target_lacks_holds_the_row() -> None:
    f = fold(segment(id=INT), unbound="id#1")

    assert not f.add(0, row("c", {"id": 1}, at(100)))
    assert f.end is not None
    assert f.end.hold is not None
    assert "not in the target" in f.end.hold.reason


def test_a_value_that_does_not_fit_is_refused_at_the_lowest_such_offset() -> None:
    f = fold(segment(id=INT, v=INT))
    f.add(0, row("c", {"id": 9, "v": 5}, at(100)))
    f.add(1, row("c", {"id": 8, "v": "bad"}, at(110)))
    f.add(2, row("c", {"id": 7, "v": "bad"}, at(120)))

    with pytest.raises(RefusedRow) as refused:
        f.batches()
    assert refused.value.offset == 1
    assert "column v" in refused.value.refusal.reason


def test_a_key_of_another_type_is_refused_and_not_compared() -> None:
    f = fold(segment(id=INT))
    f.add(0, row("c", {"id": 9}, at(100)))
    f.add(1, row("c", {"id": "9"}, at(110)))

    with pytest.raises(RefusedRow) as refused:
        f.batches()
    assert refused.value.offset == 1


def test_a_refused_row_is_held_when_it_comes_again() -> None:
    f = fold(segment(id=INT), refusals={1: Refusal("too long", "shorten it")})
    f.add(0, row("c", {"id": 1}, at(100)))

    assert not f.add(1, row("c", {"id": 2}, at(110)))
    assert f.end is not None
    assert f.end.hold is not None
    assert (f.end.hold.reason, f.end.hold.position) == ("too long", at(110))


def test_a_column_that_rows_behind_a_hold_lack_is_filled_in() -> None:
    added = (ShardColumn("n#1", Column("n", INT, nullable=False)),)
    f = fold(replace(segment(id=INT), added=added), bindings={"n#1": Binding("n#1", "n")})
    assert f.add(0, row("c", {"id": 1}, at(100)))
    assert f.add(1, row("d", {"id": 2}, at(110)))
    batch = only(f.batches())
    (block,) = batch.upserts
    assert rows_of(block) == [{"id": "1", "n": "0"}]
    assert rows_of(batch.deletes) == [{"id": "2"}]


def test_a_column_may_have_any_name() -> None:
    columns: dict[str, Any] = {'say "hi"': TEXT, "back\\slash": TEXT, "ä\u2028": TEXT}
    f = fold(segment(id=INT, **columns))
    image = {"id": 1, **dict.fromkeys(columns, "x")}

    assert f.add_all(range(3), [row("c", {**image, "id": n}, at(100 + n)) for n in range(3)])
    assert rows_of(only(f.batches()).upserts[0])[2] == {"id": "2", **dict.fromkeys(columns, "x")}


def test_rows_that_the_condition_does_not_want_are_deleted_or_never_written() -> None:
    f = fold(segment(id=INT, v=TEXT), where="v = 'in' or v is null")
    for offset, (op, key, v) in enumerate(
        [("c", 1, "in"), ("c", 2, "out"), ("u", 1, "out"), ("u", 3, "in"), ("c", 4, None),
         ("d", 5, "in")]
    ):  # fmt: skip
        f.add(offset, row(op, {"id": key, "v": v}, at(100 + offset)))

    assert f.counts() == (2, 3)
    batch = only(f.batches())
    assert rows_of(batch.upserts[0]) == [{"id": "3", "v": "in"}, {"id": "4", "v": None}]
    assert rows_of(batch.deletes) == [{"id": "1"}, {"id": "2"}, {"id": "5"}]
    assert f.rows == 6


@pytest.mark.parametrize(
    ("where", "reason"),
    [("gone = 1", "names gone, which the shard does not have"), ("v = 1", "stands where")],
)
def test_a_condition_that_cannot_be_asked_holds_the_shard(where: str, reason: str) -> None:
    f = fold(segment(id=INT, v=TEXT), where=where)
    assert not f.add(0, row("c", {"id": 1, "v": "x"}, at(100)))
    assert f.end is not None and f.end.hold is not None
    assert reason in f.end.hold.reason
    assert f.end.hold.hint


@pytest.mark.parametrize("live", [True, False])
def test_of_a_shared_topic_no_row_of_unknown_origin_is_passed_by(live: bool) -> None:
    """Nor compared with gates: its position is in nobody knows whose binlog."""
    known = replace(segment(id=INT), passed_over=not live)
    stream = ShardStream(
        SHARD, TargetTable("m", "t"), (known,), at(500), partitions=2, is_part=True
    )
    bad = json.dumps({"op": "c", "after": {}, "source": {"file": "binlog.000009", "pos": 1}})
    for value in (bad.encode(), row("c", {"id": 2}, at(900), table="u"), b"{"):
        folded = RowFold(stream, {"id#1": Binding("id#1", "id")})
        assert folded.add_all([3, 4], [row("c", {"id": 1}, at(10)), value]) is False
        assert folded.end is not None and folded.end.hold is not None
        assert (folded.end.offset, folded.end.position) == (4, at(10))
        assert folded.end.hold.shard == SHARD and folded.end.hold.reason


@pytest.mark.parametrize("before", [[], [row("c", {"id": 1, "v": "x"}, at(1))]])
def test_a_row_whose_key_is_an_array_holds_and_the_rows_before_it_are_written(
    before: list[bytes],
) -> None:
    """The first row of all, or the first one of a group."""
    later = segment(at(5), id=TEXT, v=TEXT)
    f = fold(segment(id=INT, v=TEXT), later)
    values = [*before, row("c", {"id": [], "v": "x"}, at(6))]
    assert not f.add_all(range(len(values)), values)
    assert f.end is not None
    assert f.end.hold is not None
    assert "an array or an object" in f.end.hold.reason
    assert f.counts() == (len(before), 0)
    assert len(f.batches()) == len(f.first_offsets()) == len(before)


@pytest.mark.parametrize("many", [False, True])
@pytest.mark.parametrize(
    ("kind", "read", "streamed", "text"),
    [
        (ColumnType("enum", elements=("f,g", "h")), "f,g", "f\\,g", "f,g"),
        (ColumnType("varchar", 9, charset="koi8u"), "є", "\u2553", "є"),
    ],
)
def test_a_key_is_one_however_debezium_spells_it(
    many: bool, kind: ColumnType, read: str, streamed: str, text: str
) -> None:
    """A snapshot and the binlog spell some texts differently."""
    key = {"id": 1} if many else {}
    shape: Any = {"id": INT, "k": kind, "v": TEXT} if many else {"k": kind, "v": TEXT}
    f = fold(segment(key="id k" if many else "k", **shape))
    assert f.add(0, row("r", {**key, "k": read, "v": "old"}, at(1)))
    assert f.add(1, row("u", {**key, "k": streamed, "v": "new"}, at(2)))
    [block] = only(f.batches()).upserts
    assert [(r["k"], r["v"]) for r in rows_of(block)] == [(text, "new")]
    assert f.add(2, row("d", {**key, "k": streamed, "v": "new"}, at(3)))
    batch = only(f.batches())
    assert (batch.upserts, f.counts()) == ((), (0, 1))
