"""What one shard's schema change costs the coordinator, by the number of shards.

Usage: ``python -m benchmarks.join_speed [--shards 10,100,1000,10000,100000] [--only different]``

A table of 50 columns on N shards; one ADD COLUMN on each of them in turn, through
``coordinator.decide``. Three rollouts: shards that were alike; a type change that conflicts, so
that shards are held until the last one follows; and shards that all have another schema. Every
change brings values of its own, as a decoded record does.

N shards cost 2 N decisions, one to make each of them: with 100,000 that are alike six minutes of
processor time, with 100,000 different ones ten.

Given are microseconds of processor time per change over the whole rollout, their ratio to that of
100 shards in the same run, what the change in the middle writes to the coordinator's table, and
what the state holds in memory per shard (tracemalloc).
"""

from __future__ import annotations

import argparse
import gc
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

from shardmerge.agents.coordination import coordinator
from shardmerge.agents.coordination.state.state_rows import changed_rows
from shardmerge.agents.coordination.state.target_state import TargetState
from shardmerge.schemas.ddl.apply.statements import apply_create
from shardmerge.schemas.ddl.changes import CreateTable
from shardmerge.schemas.ddl.grammar import ServerContext, parse
from shardmerge.schemas.model.names import ShardId, TargetTable
from shardmerge.schemas.model.position import SourcePosition
from shardmerge.schemas.model.shard_columns import Lineage
from shardmerge.schemas.model.tables import Column, Default, Index, IndexPart, TableSchema
from shardmerge.schemas.model.types import ColumnType
from shardmerge.schemas.records.decisions import Outcome
from shardmerge.schemas.records.schema_changes import ChangeId, SchemaChange

TARGET = TargetTable("merged", "orders")
SOURCES = 100
BITS = 17
"""Columns in which shards differ, when they do: every pattern of 17 bits is another schema."""
MEMORY_SHARDS = 5_000
LEAST_CHANGES = 1_000
"""Small rollouts are repeated until there are that many."""
REFERENCE = 100
FLAT = 2.0
MEMORY_BYTES = 2048

_KINDS = ("int", "varchar(40)", "decimal(12,2)", "datetime(3)", "varchar(200) not null")
_COLUMNS = ", ".join(f"c{i} {_KINDS[i % len(_KINDS)] if i > BITS else 'int'}" for i in range(1, 50))
_SQL = f"CREATE TABLE orders (id bigint PRIMARY KEY, {_COLUMNS}, KEY k1 (c20), KEY k2 (c21, c22))"
BIGINT = ColumnType("bigint")
NEW = Column("added", ColumnType("int", unsigned=True), nullable=False)


def base() -> TableSchema:
    """The table of 50 columns."""
    statement = parse(_SQL, ServerContext())
    assert isinstance(statement, CreateTable)
    return apply_create(statement, ServerContext())


def alike(schema: TableSchema, number: int) -> TableSchema:
    """The same schema on every shard."""
    return schema


def different(schema: TableSchema, number: int) -> TableSchema:
    """Another schema for every number below 2 ** 17."""
    columns = [
        replace(column, type=BIGINT) if 0 < i <= BITS and number >> (i - 1) & 1 else column
        for i, column in enumerate(schema.columns)
    ]
    return replace(schema, columns=tuple(columns))


def added(schema: TableSchema) -> TableSchema:
    """The schema after ADD COLUMN."""
    return replace(schema, columns=(*schema.columns, NEW))


def retyped(schema: TableSchema) -> TableSchema:
    """The schema after a type change that has no join with the type before."""
    columns = [
        replace(c, type=ColumnType("date")) if c.name == "c20" else c for c in schema.columns
    ]
    return replace(schema, columns=tuple(columns))


def fresh(text: str) -> str:
    """An equal string that is another object."""
    return text.encode().decode()


def decoded(schema: TableSchema) -> TableSchema:
    """An equal schema that shares nothing, as decoding a record gives it."""
    columns = []
    for c in schema.columns:
        kind = ColumnType(
            fresh(c.type.name), c.type.length, c.type.scale, c.type.unsigned, False, c.type.fsp,
            fresh(c.type.charset), fresh(c.type.collation),
        )  # fmt: skip
        default = c.default and Default(c.default.kind, c.default.text)
        columns.append(Column(fresh(c.name), kind, c.nullable, default))
    indexes = [
        Index(fresh(i.name), i.kind, tuple(IndexPart(fresh(p.column)) for p in i.parts))
        for i in schema.indexes
    ]
    made = TableSchema(tuple(columns), tuple(indexes), (), (), fresh(schema.charset))
    assert made.columns[-1] == schema.columns[-1]
    return made


def change(
    number: int, offset: int, before: TableSchema | None, after: TableSchema
) -> SchemaChange:
    """A shard's change; every value of it is its own."""
    shard = ShardId(fresh(f"s{number % SOURCES}"), fresh("shop"), f"orders_{number:06}")
    names = {c.name for c in before.columns} if before else set[str]()
    after = decoded(after)
    lineage = tuple(Lineage(c.name, c.name if c.name in names else "") for c in after.columns)
    position = SourcePosition(0, fresh("binlog.000001"), offset * 1000, 0)
    return SchemaChange(
        ChangeId(shard.source, offset), TARGET, shard, position, before, after,
        lineage if before else (), (), "",
    )  # fmt: skip


@lru_cache(maxsize=1)
def created(count: int, variant: Callable[[TableSchema, int], TableSchema]) -> TargetState:
    """The state after the table was created on every shard."""
    schema, state = base(), coordinator.initial(TARGET)
    for number in range(count):
        state = coordinator.decide(
            state, change(number, number, None, variant(schema, number))
        ).state
    return state


@dataclass(frozen=True)
class Rollout:
    """How shards begin, what is done to each of them, and to how many at most."""

    name: str
    variant: Callable[[TableSchema, int], TableSchema]
    altered: Callable[[TableSchema], TableSchema]
    held: bool = False
    most: int = 100_000


ROLLOUTS = (
    Rollout("ADD COLUMN, shards alike", alike, added),
    Rollout("conflicting type change, shards alike", alike, retyped, held=True, most=10_000),
    Rollout("ADD COLUMN, all different", different, added),
)


@dataclass(frozen=True)
class Figures:
    """Of one rollout over one number of shards.

    Attributes:
        seconds: Per change.
        rows, size_bytes: What the change in the middle writes.
    """

    seconds: float
    rows: int
    size_bytes: int


def measure(rollout: Rollout, count: int) -> Figures:
    """One rollout, checked: what is decided is what such a rollout must decide."""
    schema, start = base(), created(count, rollout.variant)
    seconds, changes, written = 0.0, 0, {}
    while changes < max(count, min(LEAST_CHANGES, 20 * count)):
        state, outcomes = start, []
        for number in range(count):
            before = rollout.variant(schema, number)
            record = change(number, count + number, before, rollout.altered(before))
            begin = time.thread_time()
            step = coordinator.decide(state, record)
            seconds += time.thread_time() - begin
            assert step.decision is not None
            outcomes.append(step.decision.outcome)
            if number == count // 2:
                touched = [record.shard, *step.decision.released]
                written = changed_rows(state, step.state, touched, [record.shard.source])
            state = step.state
        changes += count
        middle = Outcome.HOLD if rollout.held else Outcome.NOOP
        assert outcomes[0] is (Outcome.HOLD if rollout.held else Outcome.EMIT)
        assert outcomes[1:-1] == [middle] * (count - 2)
        assert outcomes[-1] is Outcome.EMIT
        assert not state.held
    size = sum(len(key) + len(row or b"") for key, row in written.items())
    return Figures(seconds / changes, len(written), size)


def memory_bytes(variant: Callable[[TableSchema, int], TableSchema]) -> float:
    """Bytes per shard that the state of many shards holds."""
    created(100, variant)  # what is made once
    created.cache_clear()
    gc.collect()
    tracemalloc.start()
    state = created(MEMORY_SHARDS, variant)
    gc.collect()
    used, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(state.shards) == MEMORY_SHARDS
    return used / MEMORY_SHARDS


def lines(counts: list[int], only: str, failures: list[str]) -> Iterator[str]:
    """The table, line by line as it is measured, of the rollouts whose names have ``only``."""
    yield f"memory per shard, {MEMORY_SHARDS:,} shards of 50 columns"
    for variant in (alike, different):
        used = memory_bytes(variant)
        yield f"  {variant.__name__:>10} {used:>8,.0f} bytes"
        if used > MEMORY_BYTES:
            failures.append(f"{used:.0f} bytes per shard, {variant.__name__}")
    for rollout in (rollout for rollout in ROLLOUTS if only in rollout.name):
        yield f"{rollout.name}"
        yield f"  {'shards':>8} {'µs/change':>10} {'ratio':>6} {'rows':>5} {'bytes written':>14}"
        figures = {REFERENCE: measure(rollout, REFERENCE)}
        for count in (count for count in counts if count <= rollout.most):
            found = figures.get(count) or measure(rollout, count)
            ratio = found.seconds / figures[REFERENCE].seconds
            yield (
                f"  {count:>8,} {found.seconds * 1e6:>10.0f} {ratio:>6.2f} {found.rows:>5}"
                f" {found.size_bytes:>14,}"
            )
            if count >= REFERENCE and ratio > FLAT:
                failures.append(f"{rollout.name}: {ratio:.2f} times at {count:,} shards")


def main() -> int:
    """Measure, print, and fail when the cost grows with the number of shards."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shards", default="10,100,1000,10000,100000")
    parser.add_argument("--only", default="", help="rollouts with this in their name")
    arguments = parser.parse_args()
    failures: list[str] = []
    counts = [int(count) for count in arguments.shards.split(",")]
    for line in lines(counts, arguments.only, failures):
        print(line, flush=True)
    for failure in failures:
        print(f"too much: {failure}", file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
