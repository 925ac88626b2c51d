"""A law of ``ignore``: the target is what a table becomes that was told only of the other rows."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from shardmerge.schemas.model.names import TargetTable
from shardmerge.schemas.model.policies import RowOperation
from shardmerge.schemas.records.decisions import Binding
from shardmerge.spark_sink.planning.ranges import ShardStream
from shardmerge.spark_sink.rows.decoding.row_envelope import MovedRow
from shardmerge.spark_sink.rows.folding.keyless import KeylessBatch
from shardmerge.spark_sink.rows.folding.row_batches import Batch
from shardmerge.spark_sink.rows.folding.row_fold import RowFold
from tests.unit.spark_sink.row_events import INT, SHARD, at, row, rows_of, segment

BINDINGS = {f"{name}#1": Binding(f"{name}#1", name) for name in ("id", "v")}
Image = dict[str, Any]
OPERATIONS = st.frozensets(st.sampled_from(list(RowOperation)))


@dataclass(frozen=True)
class Statement:
    """What a shard did to one row; a read has no operation."""

    operation: RowOperation | None
    before: Image | None
    after: Image | None

    def events(self, pos: int, *, keyed: bool) -> list[bytes]:
        """Its records, as Debezium writes them."""
        before, after = self.before, self.after
        if self.operation is None:
            return [row("r", after, at(pos))]
        if before is None:
            return [row("c", after, at(pos))]
        if after is None:
            return [row("d", before, at(pos))]
        if keyed and before["id"] != after["id"]:
            found = (row("d", before, at(pos)), row("c", after, at(pos)))
            return [MovedRow(value) for value in found]
        return [row("u", after, at(pos), before=before)]


@st.composite
def histories(draw: st.DrawFn, *, keyed: bool) -> list[Statement]:
    """What a table went through: each statement is true to the rows that are there."""
    rows: list[Image] = []
    found = []
    for number in range(draw(st.integers(1, 15))):
        kind = draw(st.sampled_from(("insert", "insert", "update", "move", "delete", "read")))
        new = {"id": draw(st.integers(0, 5)), "v": number if keyed else draw(st.integers(0, 1))}
        is_free = not keyed or all(new["id"] != one["id"] for one in rows)
        if kind == "insert" and is_free:
            rows.append(new)
            found.append(Statement(RowOperation.INSERT, None, new))
        if kind in ("insert", "read") or not rows:
            if kind == "read" and rows and keyed:
                found.append(Statement(None, None, draw(st.sampled_from(rows))))
            continue
        old = rows.pop(draw(st.integers(0, len(rows) - 1)))
        if kind == "delete":
            found.append(Statement(RowOperation.DELETE, old, None))
            continue
        moved = kind == "move" and is_free
        new = new if moved or not keyed else {**new, "id": old["id"]}
        rows.append(new)
        found.append(Statement(RowOperation.UPDATE, old, new))
    return found


def keyed_model(history: list[Statement], ignored: frozenset[RowOperation]) -> dict[str, Any]:
    """Key → value in a table that is told, row by row, of what is not ignored."""
    table: dict[str, Any] = {}
    for one in history:
        if one.operation in ignored:
            continue
        if one.before is not None:
            table.pop(str(one.before["id"]), None)
        if one.after is not None:
            table[str(one.after["id"])] = str(one.after["v"])
    return table


def stream(key: str, ignored: frozenset[RowOperation]) -> ShardStream:
    one = segment(key=key, id=INT, v=INT)
    return ShardStream(SHARD, TargetTable("m", "t"), (one,), None, ignored=ignored)


@given(histories(keyed=True), OPERATIONS, st.integers(1, 6), st.integers(1, 2))
def test_a_table_with_a_key_is_as_the_rows_that_are_not_ignored_leave_it(
    history: list[Statement], ignored: frozenset[RowOperation], size: int, partitions: int
) -> None:
    parts: list[list[tuple[int, bytes]]] = [[] for _ in range(partitions)]
    for number, one in enumerate(history):
        events = one.events(100 + number, keyed=True)
        images = (one.before, one.after) if len(events) > 1 else (one.after or one.before,)
        for image, value in zip(images, events, strict=True):
            assert image is not None
            parts[image["id"] % partitions].append((number, value))

    table: dict[str, Any] = {}
    for part in parts:
        for first in range(0, len(part), size):
            fold = RowFold(stream("id", ignored), BINDINGS)
            chunk = part[first : first + size]
            assert fold.add_all([n for n, _ in chunk], [value for _, value in chunk])
            assert fold.rows == len(chunk)
            assert fold.growth is None or not ignored
            for batch in fold.batches():
                assert isinstance(batch, Batch)
                for gone in rows_of(batch.deletes):
                    table.pop(str(gone["id"]), None)
                for block in batch.upserts:
                    table.update((str(new["id"]), new["v"]) for new in rows_of(block))

    assert table == keyed_model(history, ignored)


TELLABLE = (
    frozenset[RowOperation](),
    frozenset({RowOperation.DELETE}),
    frozenset({RowOperation.UPDATE, RowOperation.DELETE}),
    frozenset({RowOperation.INSERT, RowOperation.UPDATE, RowOperation.DELETE}),
)
"""What can be ignored of a table without a key: no row is removed that was never added."""


@given(histories(keyed=False), st.sampled_from(TELLABLE), st.integers(1, 6))
def test_a_table_without_a_key_has_the_rows_that_are_not_ignored(
    history: list[Statement], ignored: frozenset[RowOperation], size: int
) -> None:
    model: Counter[tuple[str, str]] = Counter()
    table: Counter[tuple[str, str]] = Counter()
    records = []
    for number, one in enumerate(history):
        records += [(number, value) for value in one.events(100 + number, keyed=False)]
        if one.operation not in ignored:
            for image, change in ((one.before, -1), (one.after, 1)):
                if image is not None:
                    model[str(image["id"]), str(image["v"])] += change
        assert min(model.values(), default=0) >= 0

    for first in range(0, len(records), size):
        fold = RowFold(stream("", ignored), BINDINGS)
        chunk = records[first : first + size]
        assert fold.add_all([n for n, _ in chunk], [value for _, value in chunk])
        for batch in fold.batches():
            assert isinstance(batch, KeylessBatch)
            for gone, count in zip(rows_of(batch.removed), batch.removed_counts, strict=True):
                table[str(gone["id"]), str(gone["v"])] -= count
            for new in rows_of(batch.added):
                table[str(new["id"]), str(new["v"])] += 1
        assert min(table.values(), default=0) >= 0

    assert +table == +model
