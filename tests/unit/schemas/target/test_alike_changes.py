"""Changes that differ only in the identities of columns get statements that differ only there."""

from __future__ import annotations

import pytest

from shardmerge.schemas.model.frozen import replace
from shardmerge.schemas.model.names import TargetTable
from shardmerge.schemas.model.shard_columns import ShardColumn
from shardmerge.schemas.records.decisions import TargetStatement
from shardmerge.schemas.target.diff import CannotRender, diff
from shardmerge.schemas.target.target_table import TargetSchema
from tests.strategies import table


def statements(
    before: str, after: str, generation: int, *, renewed: bool = False
) -> tuple[TargetStatement, ...]:
    """The statements between two tables whose columns have this generation."""
    old, new = (table(f"create table t (id int, {text})") for text in (before, after))
    sides = [
        tuple(ShardColumn(f"{c.name}#{generation}", c) for c in side.columns) for side in (old, new)
    ]
    ours = frozenset({f"b#{generation}"})
    found = diff(
        old, sides[0], TargetSchema(new, sides[1], ours), TargetTable("m", "t"),
        renewed=lambda column_id: renewed,
    )  # fmt: skip
    assert not isinstance(found, CannotRender)
    return found


def identities(found: tuple[TargetStatement, ...]) -> list[str]:
    return [bind.column_id for statement in found for bind in statement.binds]


@pytest.mark.parametrize(
    ("before", "after", "bound"),
    [
        ("a int", "a int, b int not null default 0", ["b"]),
        ("a int, b int", "b int", ["a"]),
        ("a int, b int, c int", "c int, d int", ["d", "a", "b"]),
        ("a int as (id + 1) stored", "a int", ["a"]),
    ],
)
def test_alike_changes_have_the_same_statements_with_identities_of_their_own(before, after, bound):
    first, second = (statements(before, after, generation) for generation in (1, 2))
    assert identities(first) == [f"{name}#1" for name in bound]
    assert identities(second) == [f"{name}#2" for name in bound]
    assert [replace(s, binds=()) for s in first] == [replace(s, binds=()) for s in second]


def test_whether_shards_made_a_column_anew_is_asked_at_each_change() -> None:
    texts: dict[bool, set[tuple[str, ...]]] = {}
    for generation, renewed in enumerate((False, True, False, True)):
        found = statements("a date", "a int", generation, renewed=renewed)
        assert set(identities(found)) == ({f"a#{generation}"} if renewed else set())
        texts.setdefault(renewed, set()).add(tuple(statement.sql for statement in found))
    assert len(texts[True]) == len(texts[False]) == 1
    assert texts[True] != texts[False]
