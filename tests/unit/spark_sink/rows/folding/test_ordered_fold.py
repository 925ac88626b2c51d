"""What is folded of ordered partitions: all rows up to one place, and none beyond."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from shardmerge.schemas.model.errors import StackError
from shardmerge.schemas.model.names import TargetTable
from shardmerge.schemas.model.position import BEGINNING, SourcePosition
from shardmerge.schemas.model.types import ColumnType
from shardmerge.schemas.records.decisions import Binding
from shardmerge.spark_sink.planning.ordered_partitions import PartitionClosure
from shardmerge.spark_sink.planning.ranges import ShardStream
from shardmerge.spark_sink.rows.decoding.row_envelope import RowRecord
from shardmerge.spark_sink.rows.decoding.row_format import JSON_ROWS, JsonRows, RowFormat
from shardmerge.spark_sink.rows.folding.ordered_fold import LaneFold, LaneRecords, ShardLanes
from shardmerge.spark_sink.rows.folding.row_fold import RowFold
from shardmerge.spark_sink.rows.folding.segment_plan import Refusal
from tests.unit.spark_sink.row_events import SHARD, at, marked, row, segment

SEGMENT = segment(id=ColumnType("varchar", 20))
JUNK = b"junk"


def new(*place: int, op: str = "c", id_: str = "a") -> bytes:
    """A row event at a place."""
    return row(op, {"id": id_}, at(*place))


def read_again(*place: int) -> bytes:
    """Of an incremental snapshot."""
    return marked(new(*place, op="r"))


def lane(
    *values: bytes | None,
    start: int = 0,
    closed: int | None = None,
    bound: int | None = None,
    rows: RowFormat = JSON_ROWS,
    kept_from: SourcePosition | None = None,
) -> LaneRecords:
    """Of records that are read; all are below the closure's end unless something else is told."""
    end = start + len(values)
    step = PartitionClosure(end if closed is None else closed, end if bound is None else bound)
    found = LaneRecords(SHARD, start, end, step, rows, kept_from=kept_from)
    found.extend(range(start, end), values)
    found.reached = end
    return found


def fold(
    *lanes: LaneRecords, stop: SourcePosition | None = None, shard: ShardLanes | None = None
) -> list[LaneFold | None]:
    stream = ShardStream(SHARD, TargetTable("m", "t"), (SEGMENT,), stop, 2, ordered=True)
    bindings = {"id#1": Binding("id#1", "id")}

    def new_fold(number: int) -> RowFold:
        return RowFold(stream, bindings, lanes[number].refusals)

    return (shard or ShardLanes(lanes)).fold(new_fold)


def counts(folds: Sequence[LaneFold | None]) -> list[int | None]:
    return [None if some is None else some.count for some in folds]


class Away(JsonRows):
    """A registry that cannot be asked about what has ``away`` in it; ``asked`` counts."""

    def __init__(self) -> None:
        self.asked = 0

    def decode(self, value: bytes) -> RowRecord:
        self.asked += 1
        if b"away" in value:
            raise StackError("the registry is away", hint="start it")
        return super().decode(value)


def test_tombstones_are_dropped() -> None:
    records = lane(None, new(10), None, new(20), None, start=3)
    assert len(records) == 2
    assert records.first(2) == ([4, 6], [new(10), new(20)])
    assert [records.offset_at(count) for count in range(3)] == [4, 6, 8]
    assert records.size == len(new(10)) + len(new(20))


def test_places_are_looked_for_by_bisection() -> None:
    rows = Away()
    records = lane(*(new(10 * n) for n in range(1_000)), rows=rows)
    assert (records.upto(at(500)), records.before(at(500))) == (51, 50)
    assert rows.asked < 25
    asked = rows.asked
    assert (records.upto(at(505)), records.before(at(505))) == (51, 51)
    assert rows.asked <= asked + 1, "they are remembered"


def test_records_of_one_place_are_before_it_or_up_to_it_together() -> None:
    records = lane(new(10), new(20, op="d"), new(20), new(30))
    assert (records.before(at(20)), records.upto(at(20))) == (1, 3)
    assert records.places(4) == [at(10), at(20), at(20), at(30)]


@pytest.mark.parametrize(
    "nameless", [JUNK, row("c", {"id": "a"}, at(15), table="u"), b'{"op": "c", "after": {}}']
)
def test_a_record_that_names_no_place_of_the_shard_stands_with_the_one_before(
    nameless: bytes,
) -> None:
    records = lane(nameless, new(10), nameless, nameless, new(20))
    assert records.places(5) == [BEGINNING, at(10), at(10), at(10), at(20)]
    assert [records.own_place(n) for n in (2, 4)] == [None, at(20)]
    assert (records.before(at(10)), records.upto(at(10))) == (1, 4)
    assert records.refusals == {}, "whatever folds it says why"


def test_rows_that_were_read_again_stand_behind_all_rows_of_their_event() -> None:
    records = lane(new(10), read_again(10), new(11))
    assert records.upto(at(10, 99_999)) == 1
    assert at(10, 99_999) < records.place(1) < at(11)


def test_rows_that_do_not_count_stand_with_what_they_came_behind() -> None:
    """Those of before a whole reading can come behind it."""
    read = [new(30, op="r"), new(30, op="r")]
    records = lane(new(10), *read, new(20), new(25), new(40), kept_from=at(30))
    assert records.places(6) == [BEGINNING, at(30), at(30), at(30), at(30), at(40)]
    assert (records.upto(at(25)), records.upto(at(30))) == (1, 5)


@pytest.mark.parametrize("op", "cud")
def test_rows_of_the_binlog_keep_their_place_while_others_are_read_again(op: str) -> None:
    assert lane(marked(new(10, 3, op=op))).place(0) == at(10, 3)


def test_what_is_dropped_leaves_the_rest_where_it_was() -> None:
    records = lane(new(10), new(20), JUNK, new(30), start=5)
    assert records.last_place == at(30)
    records.drop(2)
    assert records.first(9) == ([7, 8], [JUNK, new(30)])
    assert records.size == len(JUNK) + len(new(30))
    assert records.places(2) == [at(20), at(30)], "that of the last one that was dropped"
    assert (records.index_of(8), records.offset_at(1), records.reached) == (1, 8, 9)
    records.drop(0)
    assert len(records) == 2


def test_what_comes_next_stands_behind_what_was_dropped() -> None:
    records = lane(new(10), start=5, bound=9)
    records.drop(1)
    records.extend([6, 7], [JUNK, new(20)])
    assert records.places(2) == [at(10), at(20)]
    assert records.size == len(JUNK) + len(new(20))


def test_a_registry_that_is_away_refuses_the_record() -> None:
    records = lane(new(10), new(20, id_="away"), new(30), start=5, rows=Away())
    assert records.places(3) == [at(10), at(10), at(30)]
    assert records.refusals == {6: Refusal("the registry is away", "start it", code="SM-9001")}


def test_a_lane_is_read_at_its_bound_not_at_the_end_of_its_range() -> None:
    assert lane(new(10), new(20)).is_read
    assert not lane(new(10), new(20), bound=3).is_read


def test_the_last_closed_record_is_below_the_closure_s_end() -> None:
    values = [new(10), None, new(20), new(30)]
    found = [lane(*values, start=5, closed=end).last_closed_place for end in range(5, 10)]
    assert found == [None, at(10), at(10), at(20), at(30)]


def test_the_limit_is_the_last_place_below_the_ends() -> None:
    lanes = lane(new(10), new(30), closed=1), lane(new(20), new(40), closed=1), lane()
    assert ShardLanes(lanes).limit() == at(20)
    assert counts(fold(*lanes)) == [1, 1, 0]


def test_there_is_no_limit_while_nothing_below_the_ends_is_read() -> None:
    lanes = lane(new(10), closed=0), lane(None, None)
    assert ShardLanes(lanes).limit() is None
    folds = fold(*lanes)
    assert counts(folds) == [0, 0]
    assert [some.next_offset for some in folds if some] == [0, 2], "behind what is no row"


def test_there_is_no_limit_while_an_unread_lane_has_no_record() -> None:
    lanes = lane(new(10), new(20)), lane(None, bound=2)
    assert ShardLanes(lanes).limit() is None
    folds = fold(*lanes)
    assert counts(folds) == [0, 0]
    assert [some.next_offset for some in folds if some] == [0, 1]


def test_of_an_unread_lane_no_more_is_known_than_up_to_its_last_record() -> None:
    lanes = lane(new(10), new(25), new(40)), lane(new(20), bound=2), lane(new(30), bound=2)
    assert ShardLanes(lanes).limit() == at(20)
    folds = fold(*lanes)
    assert counts(folds) == [1, 1, 0]
    assert [some.next_offset for some in folds if some] == [1, 1, 0]


def test_an_unread_lane_beyond_the_ends_limits_nothing() -> None:
    lanes = lane(new(10), new(20)), lane(new(90), closed=0, bound=2)
    assert ShardLanes(lanes).limit() == at(20)


def test_both_records_of_a_key_s_update_at_the_limit_are_taken() -> None:
    deleted, created = lane(new(10), new(20, op="d")), lane(new(20), new(30), closed=0)
    assert counts(fold(deleted, created)) == [2, 1]


def test_the_place_below_the_ends_is_known_when_its_row_is_applied() -> None:
    shard = ShardLanes([lane(new(10)), lane(new(5), closed=1, bound=3)])
    shard.take(fold(*shard.lanes, shard=shard))
    assert [len(some) for some in shard.lanes] == [1, 0], "up to 5"
    late = shard.lanes[1]
    late.extend([1, 2], [new(7), new(20)])
    late.reached = 3
    shard.take(fold(*shard.lanes, shard=shard))
    assert shard.limit() == at(10)
    assert [some.offset_at(0) for some in shard.lanes] == [1, 2]


def test_a_lane_that_ended_at_a_gate_limits_nobody() -> None:
    ended, other = lane(new(10), new(30), bound=9), lane(new(20), new(29), new(40))
    shard = ShardLanes([ended, other])
    folds = fold(ended, other, stop=at(30), shard=shard)
    assert counts(folds) == [1, 2], "no lane goes beyond the gate"
    assert not any(some.is_stopped for some in folds if some)
    shard.take(folds)
    assert (ended.is_ended, other.is_ended) == (True, False)
    assert shard.limit() == at(40)
    folds = fold(ended, other, stop=at(30), shard=shard)
    assert counts(folds) == [None, 0]
    shard.take(folds)
    assert other.is_ended
    assert counts(fold(ended, other, stop=at(30), shard=shard)) == [None, None]


BAD = row("c", {"id": "a", "unknown": 1}, at(20))
EMPTIED = row("t", None, at(20))


@pytest.mark.parametrize("stopper", [BAD, EMPTIED])
@pytest.mark.parametrize("order", [1, -1])
def test_no_lane_goes_as_far_as_a_row_that_stops_another(stopper: bytes, order: int) -> None:
    stopped, other = lane(new(10), stopper, new(50)), lane(new(15), new(20), new(30))
    folds = fold(*[stopped, other][::order])[::order]
    assert counts(folds) == [1, 1]
    assert [some.next_offset for some in folds if some] == [1, 1]
    assert [some.is_stopped for some in folds if some] == [True, False]
    assert [some.fold.rows for some in folds if some] == [1, 1]


def test_the_delete_of_a_key_s_update_is_applied_although_its_create_cannot_be() -> None:
    folds = fold(lane(new(10), new(20, op="d"), BAD), lane(new(15), new(30)))
    assert counts(folds) == [2, 1]
    assert [some.is_stopped for some in folds if some] == [True, False]


def test_a_stop_says_why() -> None:
    held, emptied = fold(lane(BAD))[0], fold(lane(EMPTIED))[0]
    assert held is not None and held.fold.end is not None and held.fold.end.hold is not None
    assert "unknown: unknown" in held.fold.end.hold.reason
    assert emptied is not None and emptied.fold.end is not None and emptied.fold.end.truncated


@pytest.mark.parametrize("order", [1, -1])
def test_no_lane_goes_further_than_the_record_before_one_that_cannot_be_decoded(
    order: int,
) -> None:
    stopped = lane(new(10), new(20, op="d"), JUNK, new(50))
    other = lane(new(15), new(20), new(21), new(30))
    folds = fold(*[stopped, other][::order])[::order]
    assert counts(folds) == [2, 2]
    assert [some.is_stopped for some in folds if some] == [True, False]


def test_a_registry_that_is_away_stops_all_lanes() -> None:
    stopped = lane(new(10), new(20, id_="away"), rows=Away())
    folds = fold(stopped, lane(new(5), new(15), new(30)))
    assert counts(folds) == [1, 1]
    end = folds[0].fold.end if folds[0] is not None else None
    assert end is not None and end.hold is not None
    assert (end.offset, end.hold.reason) == (1, "the registry is away")


@pytest.mark.parametrize("order", [1, -1])
def test_the_first_of_several_rows_that_cannot_be_applied_counts(order: int) -> None:
    emptied = EMPTIED.replace(b"20", b"15")
    late, early = lane(new(5), new(17), BAD), lane(new(10), emptied, new(16))
    folds = fold(*[late, early][::order])[::order]
    assert counts(folds) == [1, 1]
    assert [some.is_stopped for some in folds if some] == [False, True]


def test_what_cannot_be_decoded_stops_all_at_their_beginning_when_nothing_is_before_it() -> None:
    assert counts(fold(lane(new(5)), lane(JUNK), lane(new(10), BAD))) == [0, 0, 0]


def test_what_was_committed_is_taken() -> None:
    shard = ShardLanes([lane(new(10), BAD), lane(new(15), new(30), start=7)])
    shard.take(fold(*shard.lanes, shard=shard))
    assert [some.first(9)[0] for some in shard.lanes] == [[1], [8]]
    assert [some.is_ended for some in shard.lanes] == [True, False]


@pytest.mark.parametrize("order", [1, -1])
def test_no_create_is_applied_before_a_delete_at_its_place_that_cannot_be(order: int) -> None:
    """A key's update: its delete has an unknown column; behind its create stands what is none."""
    deleted = lane(row("d", {"id": "a", "x": 1}, at(100)))
    created = lane(new(100, id_="A"), JUNK)
    assert counts(fold(*[deleted, created][::order])) == [0, 0]


@pytest.mark.parametrize("order", [1, -1])
def test_of_two_rows_that_cannot_be_applied_the_first_alone_is_told(order: int) -> None:
    first = lane(new(100), new(200, op="?"))
    later = lane(new(150), new(300, op="?"))
    folds = fold(*[first, later][::order])[::order]
    assert counts(folds) == [1, 1]
    assert [some.is_stopped for some in folds if some] == [True, False]
