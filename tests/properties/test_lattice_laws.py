"""Laws of the semilattice: the join is a least upper bound, whatever the order of the shards."""

from __future__ import annotations

import random
from itertools import permutations

from hypothesis import assume, example, given
from hypothesis import strategies as st

from shardmerge.schemas.lattice.join import Order, compare_tables, join_tables
from shardmerge.schemas.lattice.joined import Conflict, JoinedTable
from shardmerge.schemas.lattice.type_join import (
    PUBLISHED,
    WIDE,
    joined_type,
    published_join,
    value_type,
)
from shardmerge.schemas.model.tables import TableSchema
from shardmerge.schemas.model.types import ColumnType
from shardmerge.schemas.target.target_table import target_schema
from tests.strategies import shard_tables, table, tables, types

NOT_ASSOCIATIVE_ELSEWHERE = [
    table("create table t (id int primary key, c int not null)"),
    table("create table t (id int primary key)"),
    table("create table t (id int primary key, c int not null default 5)"),
]


@given(tables())
def test_a_table_is_the_join_of_itself(a: TableSchema) -> None:
    once = join_tables([a])
    if isinstance(once, JoinedTable):
        assert join_tables([a, a]) == once
        assert compare_tables(a, a) is Order.EQUAL


@given(shard_tables(), st.randoms(use_true_random=False))
@example(NOT_ASSOCIATIVE_ELSEWHERE, random.Random(1))
def test_the_join_or_conflict_does_not_depend_on_the_order_of_the_shards(
    shards: list[TableSchema], shuffler: random.Random
) -> None:
    expected = join_tables(shards)
    if len(shards) <= 3:
        orders = [list(order) for order in permutations(shards)]
    else:
        orders = [shuffler.sample(shards, len(shards)) for _ in range(6)]
    for order in orders:
        assert join_tables(order) == expected


@given(shard_tables())
def test_a_shard_twice_is_a_shard_once(shards: list[TableSchema]) -> None:
    assert join_tables([*shards, shards[0]]) == join_tables(shards)


@given(shard_tables())
def test_the_join_accepts_every_shard(shards: list[TableSchema]) -> None:
    joined = join_tables(shards)
    assume(isinstance(joined, JoinedTable))
    assert isinstance(joined, JoinedTable)
    accepts = target_schema(joined).schema
    for shard in shards:
        order = compare_tables(shard, accepts)
        assert order.is_at_most, (shard, accepts)


@given(shard_tables(3), tables())
def test_whatever_accepts_every_shard_accepts_the_join(
    shards: list[TableSchema], upper: TableSchema
) -> None:
    """The candidate is itself a join with the shards, so that upper bounds are not rare."""
    wider = join_tables([*shards, upper])
    assume(isinstance(wider, JoinedTable))
    assert isinstance(wider, JoinedTable)
    candidate = target_schema(wider).schema
    if all(compare_tables(shard, candidate).is_at_most for shard in shards):
        together, alone = join_tables([*shards, candidate]), join_tables([candidate])
        if isinstance(together, Conflict):
            # Two definitions under one name conflict until a shard lacks a column they name.
            assert together.path[0].startswith(("index", "check"))
            return
        assert isinstance(alone, JoinedTable)
        assert together.value == alone.value


@given(tables(), tables())
def test_comparing_agrees_with_joining_and_with_comparing_the_other_way(
    a: TableSchema, b: TableSchema
) -> None:
    there, back = compare_tables(a, b), compare_tables(b, a)
    mirrored = {Order.LESS: Order.GREATER, Order.GREATER: Order.LESS}
    assert back is mirrored.get(there, there)
    joined, right = join_tables([a, b]), join_tables([b])
    if there.is_at_most:
        assert isinstance(joined, JoinedTable) and isinstance(right, JoinedTable)
        assert joined.value == right.value


@given(tables(), tables(), tables())
def test_the_order_is_transitive(a: TableSchema, b: TableSchema, c: TableSchema) -> None:
    """But for conflicts by policy: a generated column is less than a missing one, which is less
    than an ordinary one of any type, and two types may conflict.
    """
    if compare_tables(a, b).is_at_most and compare_tables(b, c).is_at_most:
        conflicts = isinstance(join_tables([a, c]), Conflict)
        assert compare_tables(a, c).is_at_most or conflicts


@given(types, types, types)
def test_joining_published_types_is_associative_and_so_are_its_conflicts(
    a: ColumnType, b: ColumnType, c: ColumnType
) -> None:
    results = set()
    for first, second, third in permutations((a, b, c)):
        left = published_join(first, second)
        joined = left if isinstance(left, str) else published_join(left, third)
        results.add("conflict" if isinstance(joined, str) else value_type(joined))
    assert len(results) == 1


@given(types, types)
def test_joining_published_types_is_commutative_and_idempotent(
    a: ColumnType, b: ColumnType
) -> None:
    assert published_join(a, b) == published_join(b, a)
    assert published_join(a, a) == a
    joined = published_join(a, b)
    if isinstance(joined, ColumnType):
        again = published_join(joined, a)
        assert isinstance(again, ColumnType)
        assert value_type(again) == value_type(joined)


@given(types, types)
def test_what_has_a_published_join_has_a_wide_one(a: ColumnType, b: ColumnType) -> None:
    if isinstance(joined_type((a, b), PUBLISHED), ColumnType):
        assert isinstance(joined_type((a, b), WIDE), ColumnType)
