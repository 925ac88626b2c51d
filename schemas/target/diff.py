"""The DDL that brings the target from one schema to the next.

Theory of operation. Both schemas are joins of the shards' schemas, and columns have identities. A
column's definition moves in at most two steps: *up* to the join of the old and the new definition
(expanding: the target accepts more), then *down* to the new definition (contracting: the target
accepts less). If the two have no join, it moves in one step (switching: the target accepts other
rows). The statements are in an order in which each is legal when it is executed:

1. drop indexes, checks and generated columns that go, or that a rename would break;
2. steps that must precede renames by copying; steps up of stored columns that are no longer
   computed; defaults for columns that are about to be dropped; at the end of a rename by copying:
   steps up of the column that stays, then the copying of the values (``copied_columns``);
3. drop the columns that move *anew* (``column_moves``), and those that go and whose name another
   column needs; then rename;
4. steps up and switches of columns that stay;
5. add new columns and the dropped *anew* ones; with a default if they need a value;
6. change the primary key, then steps up of columns of the old key;
7. steps down of columns that stay or were added; drop columns;
8. add generated columns, indexes and checks; set the default charset.

Each statement has one clause, except the change of a primary key, and one possible text: equal
schemas give equal bytes. The dialect writes the statements; if it cannot write one of them, the
target cannot be brought to the new schema.

Source: docs/explanation/joined-schema.md, docs/explanation/offset-barrier.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache

from shardmerge.schemas.ddl.expressions import column_names
from shardmerge.schemas.lattice.copied_columns import NO_MOVES, CopyMoves
from shardmerge.schemas.lattice.type_join import WIDE, TypeRules
from shardmerge.schemas.model.frozen import replace
from shardmerge.schemas.model.names import TargetTable
from shardmerge.schemas.model.shard_columns import ShardColumn
from shardmerge.schemas.model.tables import Column, TableSchema
from shardmerge.schemas.records.decisions import Binding, TargetStatement
from shardmerge.schemas.target.dialects.dialect import CannotRender, Dialect
from shardmerge.schemas.target.dialects.mysql_dialect import MYSQL_8

from .column_moves import column_moves, needs_no_index
from .diff_columns import ColumnMove, Step, first_steps, without_nulls
from .diff_keys import added_checks, added_indexes, columns_of, dropped_checks, dropped_indexes
from .diff_writer import StatementWriter
from .renames import renames
from .target_change import TargetChange, in_order_of_computing
from .target_table import TargetSchema

__all__ = ["CannotRender", "diff"]

_MOST_CHANGES = 512
"""Changes of a target whose statements are remembered."""


def diff(
    from_schema: TableSchema | None,
    from_columns: Sequence[ShardColumn],
    to: TargetSchema,
    target: TargetTable,
    dialect: Dialect = MYSQL_8,
    *,
    copies: CopyMoves = NO_MOVES,
    renewed: Callable[[str], bool] = lambda column_id: False,
    types: TypeRules = WIDE,
) -> tuple[TargetStatement, ...] | CannotRender:
    """The statements that bring the target to ``to``, in execution order.

    Args:
        from_schema: The target's table as it is; None when it does not exist.
        from_columns: Its columns with identities, in its order; empty when it does not exist.
        to: The new schema. It must be made by ``target_schema`` with ``from_columns`` as
            ``previous``, and with the same dialect.
        target: The table's name.
        dialect: The target's kind and version.
        copies: What renames by copying do; ``from_columns`` must have the new identities already.
        renewed: Whether no shard has the values any more that the target has in the column with
            this identity. If such a column would switch to another type, it is dropped and added
            again instead of converted.
        types: Which types can be joined. Between two that can, a column takes two steps, else one
            switching step.

    Returns:
        The statements, none when nothing changes; or why the target cannot be brought to ``to``.
    """
    if from_schema is None:
        write = StatementWriter(target, to, dialect)
        write.create()
        return write.result
    if not (copies.renamed or copies.merges):
        found = _remembered(from_schema, from_columns, to, target, (dialect, types))
        if found is not None:
            return found
    change = TargetChange.of(
        from_schema, from_columns, to, dialect, copies=copies, renewed=renewed, types=types
    )
    return _written(change, target)


def _written(
    change: TargetChange, target: TargetTable
) -> tuple[TargetStatement, ...] | CannotRender:
    moves = column_moves(change)
    if isinstance(moves, CannotRender):
        return moves
    return _Diff(change, moves, StatementWriter(target, change.to, change.dialect)).run()


def _remembered(
    from_schema: TableSchema,
    from_columns: Sequence[ShardColumn],
    to: TargetSchema,
    target: TargetTable,
    rules: tuple[Dialect, TypeRules],
) -> tuple[TargetStatement, ...] | CannotRender | None:
    """What ``diff`` gives, if the same columns changed alike before; else it is remembered.

    Identities do not count for it, because they are different when each shard in turn adds a column
    and drops it again: only their bindings are in the statements. None when the answer depends on
    ``renewed``.
    """
    ids = [column.id for column in from_columns]
    places = {column_id: place for place, column_id in enumerate(ids)}
    for column in to.columns:
        if column.id not in places:
            places[column.id] = len(ids)
            ids.append(column.id)
    found = _with_places(
        (from_schema, tuple([column.column for column in from_columns])),
        (to.schema, tuple([(places[column.id], column.column) for column in to.columns])),
        (
            frozenset([places[column_id] for column_id in to.ours if column_id in places]),
            frozenset([places[column_id] for column_id in to.partial if column_id in places]),
        ),
        (to.notes, to.refusal),
        (target, *rules),
    )
    if found is None or isinstance(found, CannotRender):
        return found
    return tuple(
        replace(
            statement,
            binds=tuple(
                Binding(ids[int(bind.column_id)], bind.name, bind.writable)
                for bind in statement.binds
            ),
        )
        if statement.binds
        else statement
        for statement in found
    )


class _RenewalAskedError(Exception):
    """The statements depend on whether shards have dropped a column and added it again."""


@lru_cache(maxsize=_MOST_CHANGES)
def _with_places(
    was: tuple[TableSchema, tuple[Column, ...]],
    now: tuple[TableSchema, tuple[tuple[int, Column], ...]],
    of_columns: tuple[frozenset[int], frozenset[int]],
    of_table: tuple[tuple[tuple[str, str], ...], CannotRender | None],
    rules: tuple[TargetTable, Dialect, TypeRules],
) -> tuple[TargetStatement, ...] | CannotRender | None:
    """The statements, with numbers instead of identities; see ``_remembered``."""

    def renewed(column_id: str) -> bool:
        raise _RenewalAskedError(column_id)

    target, dialect, types = rules
    ours, partial = (frozenset(map(str, places)) for places in of_columns)
    columns = tuple(ShardColumn(str(place), column) for place, column in now[1])
    to = TargetSchema(now[0], columns, ours, *of_table, partial)
    from_columns = [ShardColumn(str(place), column) for place, column in enumerate(was[1])]
    change = TargetChange.of(
        was[0], from_columns, to, dialect, copies=NO_MOVES, renewed=renewed, types=types
    )
    try:
        return _written(change, target)
    except _RenewalAskedError:
        return None


class _Diff:
    """One run of ``diff``; each method writes the statements of a part of the theory.

    Attributes:
        current: Identity → definition after the statements written so far.
        stay: Columns that change in place.
        gone: Columns that are still to be dropped.
        rebuilt: Columns that are dropped and added again as computed columns.
        anew: Columns that are dropped and added again for other values.
        lost: Old names, in lower case, of columns that must be in no index while they change.
        moved: Columns that have taken their steps up.
        passing: Added column → the steps from the definition that it was added with.
    """

    def __init__(
        self, change: TargetChange, moves: Mapping[str, ColumnMove], write: StatementWriter
    ) -> None:
        self.change, self.moves, self.write = change, moves, write
        self.current = dict(change.before)
        self.rebuilt = [i for i in change.stays if moves[i].rebuild]
        self.anew = [i for i in change.stays if moves[i].anew]
        self.stay = [i for i in change.stays if not (moves[i].rebuild or moves[i].anew)]
        self.gone = [*change.goes, *self.rebuilt]
        bare = [i for i in change.stays if needs_no_index(change, moves[i])]
        self.lost = {change.before[i].name.lower() for i in (*self.rebuilt, *self.anew, *bare)}
        self.moved: set[str] = set()
        self.passing: dict[str, tuple[Step, ...]] = {}

    def run(self) -> tuple[TargetStatement, ...] | CannotRender:
        self._drop_what_is_in_the_way()
        self._move_before_renames()
        self._drop_renewed_and_rename()
        # MySQL requires NOT NULL in a key, so columns of the old key change after it is dropped.
        old_key = self.change.columns_of_changing_key
        self._move_up(i for i in self.stay if i not in old_key)
        self._add_columns()
        if self.change.key_changes:
            self.write.switch_primary_key(
                self.change.from_schema.primary_key, self.change.to.schema.primary_key
            )
        self._move_up(i for i in self.stay if i in old_key)
        self._move_down_and_drop()
        self._add_what_stands_on_columns()
        return self.write.result

    def _drop_what_is_in_the_way(self) -> None:
        for index, returns in dropped_indexes(self.change, self.lost):
            self.write.drop_index(index, returns=returns)
        for check in dropped_checks(self.change):
            self.write.drop_check(check)
        before = self.change.before
        for column_id in in_order_of_computing(self.gone, before, dependents_first=True):
            if before[column_id].generated is not None:
                column = self.current.pop(column_id)
                self.write.drop(column_id, column, returns=column_id in self.rebuilt)
        self.gone = [i for i in self.gone if i in self.current]

    def _move_before_renames(self) -> None:
        for column_id in self.change.stays:
            self._move(column_id, self.moves[column_id].first)
        # This comes before the renames: a column that a computed one names cannot be renamed.
        self._move_up(i for i in self.change.stays if self.change.is_freed(i))
        for column_id in self.gone:
            column = self.current[column_id]
            in_key = column.name.lower() in self.change.key
            self.current[column_id] = self.write.make_optional(column, in_key=in_key)
        self._move_up(self.change.merged)
        self._merge()

    def _drop_renewed_and_rename(self) -> None:
        for column_id in self.anew:
            self.write.drop_values(column_id, self.current.pop(column_id))
        for rename in renames(self.change, self.current, self.gone):
            column_id = rename.column_id
            column = self.current[column_id]
            if rename.to is None:
                del self.current[column_id]
                self.write.drop(column_id, column)
                continue
            former = self.change.copies.renamed.get(column_id)
            again = former in self.change.after
            before, after = self.change.before[column_id], self.change.after.get(column_id)
            names = before.name, after.name if after is not None else ""
            self.write.rename(column_id, column, rename.to, names, former=former, again=again)
            self.current[column_id] = replace(column, name=rename.to)
        self.gone = [i for i in self.gone if i in self.current]

    def _add_columns(self) -> None:
        change = self.change
        for column_id in (*self.anew, *change.comes):
            column = change.after[column_id]
            if column.generated is not None:
                continue
            first, steps = first_steps(column, change.dialect)
            if first.nullable and column.name.lower() in change.new_key:
                first, steps = column, ()
            self.current[column_id], self.passing[column_id] = first, steps
            self.write.add(
                column_id, first, ours=bool(steps) or column_id in change.to.ours,
                copied=column_id in change.copies.renamed.values(),
            )  # fmt: skip

    def _move_down_and_drop(self) -> None:
        for column_id in self.stay:
            self._move(column_id, self.moves[column_id].down)
        for column_id, steps in self.passing.items():
            self._move(column_id, steps)
        for column_id in self.gone:
            returns = column_id in self.rebuilt
            self.write.drop(column_id, self.current[column_id], returns=returns)

    def _add_what_stands_on_columns(self) -> None:
        change = self.change
        ids = [*self.rebuilt, *change.comes]
        for column_id in in_order_of_computing(ids, change.after, dependents_first=False):
            column = change.after[column_id]
            if column_id in self.rebuilt or column.generated is not None:
                self.write.add(column_id, column, ours=column_id in change.to.ours)
        for index in added_indexes(change, self.lost):
            self.write.add_index(index, columns_of(index))
        for check in added_checks(change):
            self.write.add_check(check, column_names(check.expression))
        before, after = change.from_schema, change.to.schema
        if (before.charset, before.collation) != (after.charset, after.collation):
            self.write.set_default_charset(before.charset)

    def _move_up(self, ids: Iterable[str]) -> None:
        for column_id in ids:
            if column_id not in self.moved:
                self.moved.add(column_id)
                self._move(column_id, self.moves[column_id].up)

    def _move(self, column_id: str, steps: Sequence[Step]) -> None:
        for step in steps:
            in_key = self.change.is_in_key(column_id)
            # The step uses the name after the renames; the column may have another name now.
            name = self.current[column_id].name
            now = Step(
                replace(step.before, name=name), replace(step.after, name=name),
                step.kind, step.why,
            )  # fmt: skip
            parts = without_nulls(now) if column_id in self.change.to.partial else None
            if parts is not None:
                first, now = parts
                for part in first:
                    self.write.move(column_id, part, in_key=in_key)
                others = [c for i, c in self.current.items() if i != column_id]
                self.write.fill_nulls(now.before, others)
            self.write.move(column_id, now, in_key=in_key)
            self.current[column_id] = now.after

    def _merge(self) -> None:
        """Copy the values of columns whose rename by copying ends into the columns that stay."""
        for merge in self.change.copies.merges:
            gone, kept = self.current[merge.gone], self.current[merge.kept]
            if not merge.forward and self.change.after[merge.kept].nullable:
                # Shards went back to the older name: their rows leave out the newer column.
                self.current[merge.gone] = gone = self.write.make_null_when_left_out(gone)
            others = [c for i, c in self.current.items() if i not in (merge.gone, merge.kept)]
            self.write.copy_values(merge, gone, kept, others)
