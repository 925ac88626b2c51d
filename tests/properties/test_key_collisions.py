"""Laws of what is counted as written over others: never too much, and nothing of a shard's own."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from shardmerge.schemas.model.names import TargetTable
from shardmerge.schemas.model.position import BEGINNING
from shardmerge.schemas.model.shard_columns import ShardColumn
from shardmerge.schemas.model.tables import Column
from shardmerge.schemas.model.types import ColumnType
from shardmerge.schemas.records.decisions import Binding
from shardmerge.spark_sink.planning.ranges import Segment, ShardStream
from shardmerge.spark_sink.rows.folding.key_collisions import ShardWrites
from shardmerge.spark_sink.rows.folding.row_batches import Batch
from shardmerge.spark_sink.rows.folding.row_fold import RowFold
from tests.unit.spark_sink.row_events import SHARD, at, row

COLUMN = ShardColumn("id#1", Column("id", ColumnType("int")))
STREAM = ShardStream(
    SHARD, TargetTable("m", "t"), (Segment(BEGINNING, (COLUMN,), ("id",)),), None, partitions=2
)
Events = list[tuple[str, int]]
"""Operations and their keys."""


@dataclass
class Table:
    """A target, whose its rows are, and how many were replaced or deleted by another shard."""

    owners: dict[str, int] = field(default_factory=dict)
    lost: int = 0

    def write(self, owner: int, batch: Batch) -> int:
        """Returns by how many rows it grew."""
        before = len(self.owners)
        if batch.deletes is not None:
            for key in batch.deletes.values[0]:
                self.lost += self.owners.pop(str(key), owner) != owner
        for block in batch.upserts:
            for key in block.values[0]:
                self.lost += self.owners.get(str(key), owner) != owner
                self.owners[str(key)] = owner
        return len(self.owners) - before


@st.composite
def histories(draw: st.DrawFn, *, shared: bool) -> list[tuple[int, Events]]:
    """Transactions of two shards as the sink may apply them, each true to its shard's table."""
    there: tuple[set[int], set[int]] = set(), set()
    found: list[tuple[int, Events]] = []
    for _ in range(draw(st.integers(1, 8))):
        shard = draw(st.integers(0, 1))
        events: Events = []
        for step in draw(st.lists(st.integers(0, 5), max_size=12)):
            key = step if shared else 2 * step + shard
            if key not in there[shard]:
                events.append((draw(st.sampled_from("cr")) if not found else "c", key))
                there[shard].add(key)
            elif draw(st.booleans()):
                events.append(("u", key))
            else:
                events.append(("d", key))
                there[shard].remove(key)
        found.append((shard, events))
    return found


def collisions(history: list[tuple[int, Events]], table: Table) -> int:
    """What is counted; each transaction's events come in two partitions, by key."""
    total = pos = 0
    for shard, events in history:
        folds = [RowFold(STREAM, {"id#1": Binding("id#1", "id")}) for _ in range(2)]
        for op, key in events:
            pos += 10
            assert folds[key // 2 % 2].add(pos, row(op, {"id": key}, at(pos)))
        writes = ShardWrites.of(folds)
        grown = [table.write(shard, b) for b in writes.batches if isinstance(b, Batch)]
        total += writes.key_collisions(iter(grown))
    return total


@given(histories(shared=False))
def test_shards_with_keys_of_their_own_overwrite_nothing(history: list[tuple[int, Events]]) -> None:
    assert collisions(history, Table()) == 0


@given(histories(shared=True))
def test_never_more_is_counted_than_rows_were_lost(history: list[tuple[int, Events]]) -> None:
    table = Table()
    found = collisions(history, table)
    assert found <= table.lost
