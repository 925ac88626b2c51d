"""Many records at a time, partitions folded together: the same as one by one."""

from __future__ import annotations

import json

import pytest

from shardmerge.spark_sink.rows.decoding.row_envelope import RowRecord
from shardmerge.spark_sink.rows.decoding.row_format import JsonRows
from shardmerge.spark_sink.rows.folding.row_batches import Batch
from shardmerge.spark_sink.rows.folding.row_blocks import RefusedRow
from tests.unit.spark_sink.row_events import INT, TEXT, at, fold, only, row, rows_of, segment


def test_records_may_come_many_at_a_time() -> None:
    places = [at(100), at(150), at(199, 9), at(200), at(4, file=2), at(210)]
    ops: list[tuple[str, dict[str, object]]] = [
        ("c", {"id": 1}), ("u", {"id": 1}), ("d", {"id": 2}),
        ("c", {"id": 3, "v": "x"}), ("u", {"id": 1, "v": "y"}), ("d", {"id": 3, "v": "x"}),
    ]  # fmt: skip
    values = [row(op, image, place) for (op, image), place in zip(ops, places, strict=True)]
    with_tombstones = [v for value in values for v in (value, None)]
    segments = segment(id=INT), segment(at(200), id=INT, v=TEXT)
    one, many = fold(*segments), fold(*segments)

    for offset, value in enumerate(with_tombstones):
        assert one.add(offset, value)
    assert many.add_all(range(len(with_tombstones)), with_tombstones)

    assert one.rows == many.rows == 6
    assert one.counts() == many.counts() == (1, 2)
    assert one.batches() == many.batches()
    assert rows_of(only(many.batches()).upserts[0]) == [{"id": "1", "v": "y"}]


@pytest.mark.parametrize(
    "bad",
    [
        row("c", {"id": 3, "w": "x"}, at(130)),
        row("c", {"id": 3}, at(130)),
        row("d", {"id": 3}, at(130)),
        row("c", None, at(130)),
        row("c", {"id": 3, "v": "x"}, at(130), "other"),
        row("c", {"id": [3], "v": "x"}, at(130)),
        b"\xff",
        b'{"op": "c"}',
    ],
)
def test_many_records_stop_before_the_one_that_cannot_be_applied(bad: bytes) -> None:
    f = fold(segment(id=INT, v=TEXT))
    good = [row("c", {"id": n, "v": "x"}, at(100 + n)) for n in range(9)]

    assert not f.add_all([10, 11, 12, 13, 14], [*good[:3], bad, good[4]])

    assert f.end is not None
    assert f.end.hold is not None
    assert (f.end.offset, f.rows, f.counts()) == (13, 3, (3, 0))
    assert not f.add_all([15], good[5:6])


def test_a_value_of_another_type_among_many_is_refused_by_its_offset() -> None:
    f = fold(segment(id=INT, v=INT))
    values = [row("c", {"id": n, "v": "bad" if n in (2, 3) else n}, at(100 + n)) for n in range(5)]
    assert f.add_all([7, 8, 9, 10, 11], values)

    with pytest.raises(RefusedRow) as refused:
        f.batches()
    assert refused.value.offset == 9


def test_rows_with_an_embedded_schema_and_rows_without_are_one_stream() -> None:
    f = fold(segment(id=INT, v=TEXT))
    plain = [row("c", {"id": n, "v": "x"}, at(100 + n)) for n in range(6)]
    values = [
        json.dumps({"schema": {"type": "struct"}, "payload": json.loads(value)}).encode()
        if n in (1, 2, 3)
        else value
        for n, value in enumerate(plain)
    ]
    assert f.add_all(range(6), values)
    assert (f.rows, f.counts()) == (6, (6, 0))


def wrapped(value: bytes) -> bytes:
    record = {"schema": {"type": "struct"}, "payload": json.loads(value)}
    return json.dumps(record, separators=(",", ":")).encode()


def test_rows_with_embedded_schemas_take_the_short_way_too() -> None:
    looked_at: list[bytes] = []

    class Watched(JsonRows):
        def decode(self, value: bytes) -> RowRecord:
            looked_at.append(value)
            return super().decode(value)

    f = fold(segment(id=INT, v=TEXT), rows=Watched())
    # A snapshot, changes of the binlog, rows of an incremental snapshot among them, a tombstone.
    values = [wrapped(row("r", {"id": n, "v": "r"}, at(100))) for n in range(3)]
    values += [wrapped(row("c", {"id": 3, "v": "c"}, at(200)))]
    values += [wrapped(row("u", {"id": 3, "v": "u"}, at(210), before={"id": 3, "v": "c"}))]
    values += [wrapped(row("r", {"id": 2, "v": "again"}, at(210)))]
    deleted = [wrapped(row("d", {"id": 1, "v": "r"}, at(220))), None]
    assert f.add_all(range(8), [*values, *deleted])
    assert not f.add(8, wrapped(row("t", None, at(300))))

    assert f.end is not None
    assert (f.end.truncated, f.end.position) == (True, at(300))
    assert len(looked_at) == 2  # the first row, and the TRUNCATE
    batch = only(f.batches())
    assert rows_of(batch.deletes) == [{"id": "1"}]
    assert rows_of(batch.upserts[0]) == [
        {"id": "0", "v": "r"},
        {"id": "2", "v": "again"},
        {"id": "3", "v": "u"},
    ]


def test_partitions_of_one_shard_give_one_sorted_batch() -> None:
    segments = segment(id=INT), segment(at(200), id=INT, v=TEXT)
    folds = [fold(*segments), fold(*segments), fold(*segments)]
    for number, f in enumerate(folds[:2]):
        for key in range(number, 6, 2):
            assert f.add(key, row("d" if key == 4 else "c", {"id": key}, at(100 + key)))
    assert folds[1].add(9, row("c", {"id": 7, "v": "x"}, at(200)))

    batch = only(folds[0].batches(folds[1:]))

    assert [[r["id"] for r in rows_of(b)] for b in batch.upserts] == [
        ["0", "1", "2", "3", "5"],
        ["7"],
    ]
    assert rows_of(batch.deletes) == [{"id": "4"}]


def test_partitions_with_several_batches_each_are_written_one_after_the_other() -> None:
    segments = segment(id=INT, v=INT), segment(at(200), key="v", id=INT, v=INT)
    folds = [fold(*segments), fold(*segments)]
    for number, f in enumerate(folds):
        assert f.add(0, row("c", {"id": number, "v": 5}, at(100)))
        assert f.add(1, row("d", {"id": number, "v": 5 + number}, at(200)))

    batches = folds[0].batches(folds[1:])
    assert [b.key for b in batches if isinstance(b, Batch)] == [("id",), ("v",)] * 2
