"""The kept join is the join from scratch, whatever changed, and it does not see who shares what."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardmerge.schemas.lattice import join_cache as kept_counts
from shardmerge.schemas.lattice import key_join as lattice_keys
from shardmerge.schemas.lattice.join import join_all
from shardmerge.schemas.lattice.join_index import JoinIndex
from shardmerge.schemas.lattice.joined import Conflict, JoinedTable, ShardSchema
from shardmerge.schemas.lattice.key_join import Constraint
from shardmerge.schemas.lattice.schema_pool import SchemaPool
from shardmerge.schemas.model.tables import Check, ForeignKey, TableSchema
from tests.strategies import by_name, shard_tables, table, tables

SHARDS = range(4)
# Renames on the shard: the identity stays, the shard's name differs, also crosswise.
LOCAL_NAMES = st.permutations(["a", "b", "c", "d"])
# Names in the target, changing from one join to the next.
TARGET_NAMES = st.permutations(["a", "b", "c", "x"])


def renamed_on_the_shard(shard: ShardSchema, names: list[str]) -> ShardSchema:
    """The same definitions under other identities: a shard that renamed its columns."""
    other = dict(zip(names, "abcd", strict=True))
    return ShardSchema(shard.schema, tuple(other.get(name, name) for name in shard.ids))


FOREIGN_KEYS = [
    ForeignKey(name, ("id",), "shop", parent, ("id",))
    for name in ("t_ibfk_1", "fk", "FK")
    for parent in ("p", "q")
]
CHECKS = [
    Check(name, f"(`{column}` > {bound})")
    for name in ("", "t_chk_1", "c", "C")
    for column in ("id", "a")
    for bound in (0, 1)
]


@st.composite
def shards(draw: st.DrawFn) -> ShardSchema | None:
    if draw(st.integers(0, 4)) == 0:
        return None
    schema = draw(tables())
    if draw(st.booleans()):
        keys = draw(st.lists(st.sampled_from(FOREIGN_KEYS), max_size=2))
        found = {check.name.lower(): check for check in schema.checks}
        for check in draw(st.lists(st.sampled_from(CHECKS), max_size=2)):
            if "`a`" not in check.expression or schema.column("a"):
                found.setdefault(check.name.lower(), check)
        schema = replace(schema, foreign_keys=tuple(keys), checks=tuple(found.values()))
    return renamed_on_the_shard(by_name(schema), draw(LOCAL_NAMES))


changes = st.lists(st.tuples(st.sampled_from(SHARDS), shards(), TARGET_NAMES), max_size=12)


@given(changes)
def test_the_kept_join_is_the_join_of_all_shards(
    steps: list[tuple[int, ShardSchema | None, list[str]]],
) -> None:
    index = JoinIndex()
    live: dict[int, ShardSchema] = {}
    for number, new, names in steps:
        before, lived = index, dict(live)
        index = index.with_shard(live.pop(number, None), new)
        if new is not None:
            live[number] = new
        assert _joined(index, live, names) == _from_scratch(live, names)
        assert _joined(before, lived, names) == _from_scratch(lived, names)
        assert index.shards == len(live)
        assert set(index.ids) == {column_id for shard in live.values() for column_id in shard.ids}


def _names(live: dict[int, ShardSchema], names: list[str]) -> dict[str, str]:
    ids = {column_id for shard in live.values() for column_id in shard.ids}
    new = dict(zip("abcd", names, strict=True))
    return {column_id: new.get(column_id, column_id) for column_id in ids}


def _joined(
    index: JoinIndex, live: dict[int, ShardSchema], names: list[str]
) -> JoinedTable | Conflict | None:
    return index.join(_names(live, names)) if live else None


def _from_scratch(live: dict[int, ShardSchema], names: list[str]) -> JoinedTable | Conflict | None:
    return join_all(list(live.values()), _names(live, names)) if live else None


@given(shard_tables(), st.integers(1, 5))
def test_many_shards_that_are_alike_count_at_once(found: list[TableSchema], times: int) -> None:
    one_by_one, at_once = JoinIndex(), JoinIndex()
    for shard in map(by_name, found):
        at_once = at_once.with_shard(None, shard, times)
        for _ in range(times):
            one_by_one = one_by_one.with_shard(None, shard)
    names = {i: i for i in at_once.ids}
    assert at_once.join(names) == one_by_one.join(names)
    assert at_once.shards == one_by_one.shards == times * len(found)


@given(shard_tables())
def test_a_pool_keeps_one_object_of_what_is_used_and_nothing_else(
    found: list[TableSchema],
) -> None:
    pool = SchemaPool()
    used = [by_name(schema) for schema in found]
    for schema in used:
        pool = pool.exchanged((), [schema])
        assert pool.one(schema) == schema
    columns: dict[object, object] = {}
    for schema in used:
        for column in pool.one(schema).schema.columns:
            assert columns.setdefault(column, column) is column
    last = used[-1]
    for schema in used[:-1]:
        pool = pool.exchanged([schema], [])
    assert pool.counts() == {last: 1}
    assert pool == SchemaPool().exchanged((), [last])
    assert pool.exchanged([last], [last]) == pool
    assert pool.exchanged([last], []) == SchemaPool()


def test_what_one_shard_has_alone_costs_the_others_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Such as a foreign key to a parent of the shard's own."""
    looked_at: list[Constraint] = []
    renamed = lattice_keys.renamed

    def counted(constraint: Constraint, names: Mapping[str, str]) -> Constraint:
        looked_at.append(constraint)
        return renamed(constraint, names)

    monkeypatch.setattr(kept_counts, "renamed", counted)
    plain = table("create table t (id int primary key, a int, key k (a))")
    index = JoinIndex()
    for number in range(50):
        own = ForeignKey("fk", ("id",), "shop", f"parent_{number}", ("id",))
        index = index.with_shard(None, by_name(replace(plain, foreign_keys=(own,))))
    joined = index.join({i: i for i in index.ids})
    assert isinstance(joined, JoinedTable)
    assert [i.name for i in joined.indexes] == ["k"]
    assert joined.foreign_keys == ()
    assert len(looked_at) == 2  # the primary key, the index


def test_a_change_leaves_the_join_of_untouched_columns_as_it_is() -> None:
    old = by_name(table("create table t (id int primary key, a int, b varchar(9))"))
    new = by_name(table("create table t (id int primary key, a int, b varchar(20))"))
    index = JoinIndex().with_shard(None, old, 1000)
    names = {i: i for i in index.ids}
    before = index.join(names)
    after = index.with_shard(old, new).join(names)
    assert isinstance(before, JoinedTable)
    assert isinstance(after, JoinedTable)
    same = [a is b for a, b in zip(before.columns, after.columns, strict=True)]
    assert same == [True, False, True]
