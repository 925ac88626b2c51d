"""Which way a column that stays goes."""

from __future__ import annotations

from shardmerge.schemas.lattice.copied_columns import NO_MOVES
from shardmerge.schemas.lattice.type_join import WIDE
from shardmerge.schemas.model.mysql_facts import NULL_DEFAULT
from shardmerge.schemas.model.shard_columns import ShardColumn
from shardmerge.schemas.records.decisions import StatementKind
from shardmerge.schemas.target.column_moves import column_moves, needs_no_index
from shardmerge.schemas.target.dialects.dialect import CannotRender, Dialect
from shardmerge.schemas.target.dialects.mysql_dialect import MYSQL_8
from shardmerge.schemas.target.dialects.tidb import TiDbDialect
from shardmerge.schemas.target.diff_columns import ColumnMove
from shardmerge.schemas.target.target_change import TargetChange
from shardmerge.schemas.target.target_table import TargetSchema
from tests.strategies import table


def change(
    before: str, after: str, *, renewed: bool = False, dialect: Dialect = MYSQL_8, **renamed: str
) -> TargetChange:
    """Columns are known by their names before; ``renamed``: after → before."""
    old, new = (table(f"create table t (id int, {text})") for text in (before, after))
    return TargetChange.of(
        old, [ShardColumn(c.name, c) for c in old.columns],
        TargetSchema(new, tuple(ShardColumn(renamed.get(c.name, c.name), c) for c in new.columns)),
        dialect, copies=NO_MOVES, renewed=lambda column_id: renewed, types=WIDE,
    )  # fmt: skip


def move_of(found: TargetChange, column_id: str = "a") -> ColumnMove:
    moves = column_moves(found)
    assert not isinstance(moves, CannotRender)
    assert moves["id"] == ColumnMove()
    return moves[column_id]


def test_a_wider_type_is_a_step_up_and_a_narrower_one_a_step_down() -> None:
    up = move_of(change("a int", "a bigint"))
    assert [step.kind for step in up.up] == [StatementKind.EXPANDING] and not up.down
    down = move_of(change("a bigint", "a int"))
    assert [step.kind for step in down.down] == [StatementKind.CONTRACTING] and not down.up


def test_values_that_are_no_shards_any_more_are_dropped_with_their_column() -> None:
    assert move_of(change("a date", "a int")).switches
    assert move_of(change("a date", "a int", renewed=True)) == ColumnMove(anew=True)
    # Not where a key or a check needs the column, nor where types agree.
    for rest in (", primary key (a)", ", check (a > 0)"):
        found = move_of(change(f"a date not null{rest}", f"a int not null{rest}", renewed=True))
        assert found.switches
    assert not move_of(change("a int", "a bigint", renewed=True)).anew


def test_a_computed_column_is_made_again_when_what_it_names_is_renamed() -> None:
    found = change("b int, a int as (b + 1)", "c int, a int as (c + 1)", c="b")
    assert move_of(found) == ColumnMove(rebuild=True)


def test_a_default_that_names_a_renamed_column_is_gone_while_it_is_renamed() -> None:
    found = move_of(change("b int, a int default (b + 1)", "c int, a int default (c + 1)", c="b"))
    (first,), (last,) = found.first, (*found.up, *found.down)
    assert first.after.default == NULL_DEFAULT == last.before.default
    assert last.after.default is not None and last.after.default.text == "(`c` + 1)"
    # Rows that leave the column out wait until it has its default again.
    assert {first.kind, last.kind} == {StatementKind.SWITCHING}
    kept = move_of(change("b int, a int default (b + 1)", "b int, a int default (b + 1)"))
    assert kept == ColumnMove()


def test_a_column_that_a_default_names_is_converted_not_made_anew() -> None:
    rest = "b int default (a)"
    assert move_of(change(f"a date, {rest}", f"a int, {rest}", renewed=True)).switches


def test_a_computed_column_of_the_primary_key_cannot_be_made_again() -> None:
    key = "not null, primary key (a)"
    found = column_moves(
        change(f"b int, a int as (b + 1) stored {key}", f"c int, a int as (c + 1) stored {key}",
               c="b")
    )  # fmt: skip
    assert isinstance(found, CannotRender) and "primary key needs it" in found.reason and found.hint


def test_tidb_makes_again_what_names_a_column_that_changes() -> None:
    texts = ("b int, a int as (b + 1)", "b bigint, a int as (b + 1)")
    assert move_of(change(*texts)) == ColumnMove()
    assert move_of(change(*texts, dialect=TiDbDialect())) == ColumnMove(rebuild=True)


def test_tidb_changes_a_collation_without_indexes() -> None:
    texts = ("a varchar(9) collate utf8mb4_bin", "a varchar(9) collate utf8mb4_general_ci")
    for dialect, expected in ((MYSQL_8, False), (TiDbDialect(), True)):
        found = change(*texts, dialect=dialect)
        assert needs_no_index(found, move_of(found)) is expected
