"""The DDL that brings the target from one schema to the next.

Theory of operation. Both schemas are joins of the shards' schemas, columns have identities. A
column's definition moves in at most two steps: *up* to the join of its definition before and
after (the target accepts more: expanding), then *down* to the definition after (the target
accepts less: contracting). Where the two have no join, it moves in one step that accepts other
rows (switching). The statements come in an order in which every one of them is legal:

1. indexes, checks and generated columns that go, or that a rename would break; stored columns
   that are computed no more;
2. what must come before renames by copying; steps up of columns that are about to go; where
   renames by copying end, steps up of the columns that stay, then the values of those that go
   (``copied_columns``);
3. columns that the shards have anew, and those whose name is needed by another column, are
   dropped, then renames;
4. steps up and switches of columns that stay;
5. added columns, also those that the shards have anew; those that need a value with a default;
6. the primary key, then steps up of columns of the key before;
7. steps down of columns that stay or were added, dropped columns;
8. generated columns, indexes and checks that come; the default charset.

One clause per statement, and one text per statement: equal schemas give equal bytes. What the
statements say is the dialect's matter (``render``); where it cannot say one, there is no way.

Source: ARCHITECTURE.md, sections 3 and 5.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from shardmerge.schemas.ddl.expressions import column_names
from shardmerge.schemas.lattice.copied_columns import (
    NO_MOVES,
    CopyMoves,
)
from shardmerge.schemas.lattice.type_join import (
    WIDE,
    TypeRules,
)
from shardmerge.schemas.model.names import TargetTable
from shardmerge.schemas.model.shard_columns import ShardColumn
from shardmerge.schemas.model.tables import (
    Check,
    Column,
    Index,
    IndexKind,
    IndexPart,
    TableSchema,
)
from shardmerge.schemas.records.decisions import TargetStatement
from shardmerge.schemas.target.dialects.dialect import (
    CannotRender,
    Dialect,
)
from shardmerge.schemas.target.dialects.mysql_dialect import MYSQL_8

from .diff_columns import (
    ColumnMove,
    Step,
    column_steps,
    first_steps,
    merged_steps,
    opened_steps,
    redefines,
    without_nulls,
)
from .diff_writer import StatementWriter
from .target_table import TargetSchema

__all__ = ["CannotRender", "diff"]

_TEMPORARY = "_shardmerge_"
"""Prefix of a column's name between two renames that swap names."""
_MAX_TEMPORARY = 64 - len("4096")
"""Characters of such a name before a number: a table has at most 4,096 columns, a name 64."""


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
        to: See ``target_schema``; it must have been made with ``from_columns`` as ``previous``,
            and with the same dialect.
        target: The table's name.
        dialect: The target's kind and version.
        copies: What renames by copying do; ``from_columns`` are rekeyed by it already.
        renewed: Whether the values that the target has in a column, given by identity, are none
            of its shards' any more: a column of other values is then made anew, not converted.
        types: Which types go together: between two that do, a column takes two steps; else one that
            switches.

    Returns:
        The statements, empty when nothing is to do; or why the target cannot be brought there.
    """
    write = StatementWriter(target, to, dialect)
    if from_schema is None:
        write.create()
        return write.result
    return _Diff(
        from_schema, from_columns, to, write, dialect, copies=copies, renewed=renewed, types=types
    ).run()


class _Diff:
    """One run of ``diff``; each method writes the statements of one step of the theory."""

    def __init__(
        self,
        from_schema: TableSchema,
        from_columns: Sequence[ShardColumn],
        to: TargetSchema,
        write: StatementWriter,
        dialect: Dialect,
        *,
        copies: CopyMoves,
        renewed: Callable[[str], bool],
        types: TypeRules,
    ) -> None:
        self.write, self.dialect, self.copies = write, dialect, copies
        self.renewed, self.types = renewed, types
        self.from_schema, self.to = from_schema, to
        self.before = {c.id: c.column for c in from_columns}
        self.after = {c.id: c.column for c in to.columns}
        self.renamed = {
            self.before[i].name.lower(): column.name
            for i, column in self.after.items()
            if i in self.before
        }
        self.current = dict(self.before)
        key = from_schema.primary_key
        self.key = {name.lower() for name in key.columns} if key else set[str]()

    def run(self) -> tuple[TargetStatement, ...] | CannotRender:
        stay = [i for i in self.after if i in self.before]
        gone = [i for i in self.before if i not in self.after]
        come = [i for i in self.after if i not in self.before]
        moves: dict[str, ColumnMove] = {}
        for column_id in stay:
            move = self._steps(column_id)
            if isinstance(move, CannotRender):
                return move
            moves[column_id] = move
        if self.dialect.fixes_named_columns:
            self._rebuild_computed(moves)
        rebuilt = [i for i in stay if moves[i].rebuild]
        if refusal := self._refuse_rebuilding_keys(rebuilt):
            return refusal
        anew = [i for i in stay if moves[i].anew]
        bare = [i for i in stay if self._needs_no_index(moves[i])]
        lost = {self.before[i].name.lower() for i in (*rebuilt, *anew, *bare)}
        self._drop_indexes(lost)
        self._drop_checks()
        for column_id in self._generated_first([*gone, *rebuilt]):
            if self.before[column_id].generated is not None:
                column = self.current.pop(column_id)
                self.write.drop(column_id, column, returns=column_id in rebuilt)
        for column_id in stay:
            self._move(column_id, moves[column_id].first)
        # Before the renames: a column that a computed one names cannot be renamed.
        freed = [i for i in stay if self._is_freed(i)]
        for column_id in freed:
            self._move(column_id, moves[column_id].up)
        gone = [i for i in (*gone, *rebuilt) if i in self.current]
        for column_id in gone:
            column = self.current[column_id]
            in_key = column.name.lower() in self.key
            self.current[column_id] = self.write.make_optional(column, in_key=in_key)
        merging = [merge.kept for merge in self.copies.merges if merge.kept in stay]
        for column_id in merging:
            self._move(column_id, moves[column_id].up)
        self._merge()
        for column_id in anew:
            self.write.drop_values(column_id, self.current.pop(column_id))
        gone = self._rename(gone)
        # MySQL wants a key's columns NOT NULL, so those of a key that goes move after it.
        old_key = self._columns_of_changing_key()
        moved = {*freed, *merging}
        stay = [i for i in stay if not (moves[i].rebuild or moves[i].anew)]
        for column_id in stay:
            if column_id not in old_key and column_id not in moved:
                self._move(column_id, moves[column_id].up)
        passing: dict[str, tuple[Step, ...]] = {}
        key = self.to.schema.primary_key
        new_key = {name.lower() for name in key.columns} if key else set[str]()
        for column_id in (*anew, *come):
            column = self.after[column_id]
            if column.generated is None:
                first, steps = first_steps(column, self.dialect)
                if first.nullable and column.name.lower() in new_key:
                    first, steps = column, ()
                self.current[column_id], passing[column_id] = first, steps
                self.write.add(
                    column_id, first, ours=bool(steps) or column_id in self.to.ours,
                    copied=column_id in self.copies.renamed.values(),
                )  # fmt: skip
        self._switch_primary_key()
        for column_id in stay:
            if column_id in old_key and column_id not in moved:
                self._move(column_id, moves[column_id].up)
        for column_id in stay:
            self._move(column_id, moves[column_id].down)
        for column_id, steps in passing.items():
            self._move(column_id, steps)
        for column_id in gone:
            self.write.drop(column_id, self.current[column_id], returns=column_id in rebuilt)
        for column_id in self._base_first([*rebuilt, *come]):
            column = self.after[column_id]
            if column_id in rebuilt or column.generated is not None:
                self.write.add(column_id, column, ours=column_id in self.to.ours)
        self._add_indexes(lost)
        self._add_checks()
        before, after = self.from_schema, self.to.schema
        if (before.charset, before.collation) != (after.charset, after.collation):
            self.write.set_default_charset(before.charset)
        return self.write.result

    def _rebuild_computed(self, moves: dict[str, ColumnMove]) -> None:
        """Have computed columns that change, or name one that changes, added again."""
        changed = {
            name.lower()
            for i, move in moves.items()
            if any(map(redefines, (*move.first, *move.up, *move.down)))
            for name in (self.before[i].name, self.after[i].name)
        }
        for column_id, move in moves.items():
            before, after = self.before[column_id].generated, self.after[column_id].generated
            if before is None or after is None:
                continue
            names = {*column_names(before.expression), *column_names(after.expression)}
            if move != ColumnMove() or changed.intersection(map(str.lower, names)):
                moves[column_id] = ColumnMove(rebuild=True)

    def _needs_no_index(self, move: ColumnMove) -> bool:
        steps = (*move.first, *move.up, *move.down)
        return any(self.dialect.needs_no_index(s.before.type, s.after.type) for s in steps)

    def _steps(self, column_id: str) -> ColumnMove | CannotRender:
        move = self._converting(column_id)
        if isinstance(move, ColumnMove) and not move.switches:
            return move
        if self._can_be_made_anew(column_id) and self.renewed(column_id):
            return ColumnMove(anew=True)
        return move

    def _can_be_made_anew(self, column_id: str) -> bool:
        """Whether the column's type is another one, and nothing else stands on the column."""
        before, after = self.before[column_id], self.after[column_id]
        if after.generated is not None or (before.generated is None and before.type == after.type):
            return False
        key = self.to.schema.primary_key
        standing = {*self.key, *(name.lower() for name in (key.columns if key else ()))}
        for schema in (self.from_schema, self.to.schema):
            texts = [check.expression for check in schema.checks]
            texts += [c.generated.expression for c in schema.columns if c.generated is not None]
            standing.update(name.lower() for text in texts for name in column_names(text))
        # A table keeps at least one column.
        others = (i for i in self.before if i != column_id and i in self.after)
        stays = any(self.before[i].type == self.after[i].type for i in others)
        return stays and standing.isdisjoint((before.name.lower(), after.name.lower()))

    def _converting(self, column_id: str) -> ColumnMove | CannotRender:
        before, after = self.before[column_id], self.after[column_id]
        if before.generated is not None and after.generated is not None:
            names = column_names(before.generated.expression)
            if any(self.renamed.get(n.lower(), n) != n for n in names):
                # MySQL refuses to rename a column that a computed one names.
                return ColumnMove(rebuild=True)
        ours = column_id in self.to.ours
        if any(merge.kept == column_id for merge in self.copies.merges):
            return merged_steps(before, after, dialect=self.dialect, types=self.types)
        steps = column_steps
        if self.copies.renamed.get(column_id) in self.after:
            steps = opened_steps
        return steps(before, after, ours=ours, dialect=self.dialect, types=self.types)

    def _is_freed(self, column_id: str) -> bool:
        """Whether the column was computed, and is computed no more."""
        before, after = self.before[column_id], self.after[column_id]
        return before.generated is not None and after.generated is None

    def _move(self, column_id: str, steps: Sequence[Step]) -> None:
        for step in steps:
            # A step has the name of after the renames.
            name = self.current[column_id].name
            now = Step(
                replace(step.before, name=name), replace(step.after, name=name),
                step.kind, step.reason,
            )  # fmt: skip
            was = self.before.get(column_id)
            in_key = was is not None and was.name.lower() in self.key
            parts = without_nulls(now) if column_id in self.to.partial else None
            if parts is not None:
                first, now = parts
                for part in first:
                    self.write.move(column_id, part, in_key=in_key)
                others = [c for i, c in self.current.items() if i != column_id]
                self.write.fill_nulls(now.before, others)
            self.write.move(column_id, now, in_key=in_key)
            self.current[column_id] = now.after

    def _merge(self) -> None:
        """Move the values of columns whose renames by copying end to the columns that stay."""
        for merge in self.copies.merges:
            gone, kept = self.current[merge.gone], self.current[merge.kept]
            if not merge.forward and self.after[merge.kept].nullable:
                # Rows that have the older column again leave the newer one out.
                self.current[merge.gone] = gone = self.write.make_null_when_left_out(gone)
            others = [c for i, c in self.current.items() if i not in (merge.gone, merge.kept)]
            self.write.copy_values(merge, gone, kept, others)

    def _drop_indexes(self, lost: set[str]) -> None:
        kept = {i.name.lower(): _plain(i) for i in self.to.schema.indexes}
        for index in self._secondary(self.from_schema):
            same = kept.get(index.name.lower()) == _plain(self._in_new_names(index))
            if not same or lost.intersection(_columns_of(index)):
                returns = self.to.schema.index(index.name) is not None
                self.write.drop_index(index, returns=returns)

    def _add_indexes(self, lost: set[str]) -> None:
        lost_after = {self.renamed.get(name, name).lower() for name in lost}
        kept = {
            i.name.lower(): _plain(self._in_new_names(i)) for i in self._secondary(self.from_schema)
        }
        for index in self._secondary(self.to.schema):
            same = kept.get(index.name.lower()) == _plain(index)
            if not same or lost_after.intersection(_columns_of(index)):
                self.write.add_index(index, _columns_of(index))

    def _in_new_names(self, index: Index) -> Index:
        """The index after the renames, as MySQL follows them; never inside expressions."""
        return Index(
            index.name,
            index.kind,
            tuple(
                part if part.expression else _renamed_part(part, self.renamed)
                for part in index.parts
            ),
            parser=index.parser,
        )

    def _drop_checks(self) -> None:
        # A check that names a renamed column differs in its text, so it is dropped first: MySQL
        # refuses to rename a column that a check names.
        kept = {_check_key(c) for c in self.to.schema.checks}
        for check in self.from_schema.checks:
            if _check_key(check) not in kept:
                self.write.drop_check(check)

    def _add_checks(self) -> None:
        kept = {_check_key(c) for c in self.from_schema.checks}
        for check in self.to.schema.checks:
            if _check_key(check) not in kept:
                self.write.add_check(check, column_names(check.expression))

    def _columns_of_changing_key(self) -> set[str]:
        key = self.from_schema.primary_key
        if key is None or not self._key_changes():
            return set()
        names = {name.lower() for name in key.columns}
        return {i for i, column in self.before.items() if column.name.lower() in names}

    def _key_changes(self) -> bool:
        before, after = self.from_schema.primary_key, self.to.schema.primary_key
        renamed = _plain(self._in_new_names(before)) if before else None
        return renamed != (_plain(after) if after else None)

    def _switch_primary_key(self) -> None:
        if self._key_changes():
            self.write.switch_primary_key(self.from_schema.primary_key, self.to.schema.primary_key)

    def _rename(self, gone: list[str]) -> list[str]:
        """Write the renames, and drops that must come before one; the drops still to write."""
        pending = {
            i: self.after[i].name
            for i, column in self.current.items()
            if i in self.after and i not in gone and self.after[i].name != column.name
        }
        wanted = {name.lower() for name in pending.values()}
        wanted |= {self.after[i].name.lower() for i in self.after if i not in self.before}
        still = []
        for column_id in gone:
            if self.current[column_id].name.lower() not in wanted:
                still.append(column_id)
            elif len(self.current) > 1:
                self.write.drop(column_id, self.current.pop(column_id))
            else:
                # A table keeps at least one column.
                self._rename_one(column_id, self._free_name(self.current[column_id].name))
                still.append(column_id)
        while pending:
            taken = {column.name.lower(): i for i, column in self.current.items()}
            free = (i for i in pending if taken.get(pending[i].lower(), i) == i)
            ready = next(free, None)
            if ready is not None:
                self._rename_one(ready, pending.pop(ready))
            else:
                swapped = next(iter(pending))
                self._rename_one(swapped, self._free_name(self.current[swapped].name))
        return still

    def _free_name(self, name: str) -> str:
        """A name for the time between two renames, that no column has or will have."""
        columns = (*self.current.values(), *self.after.values())
        taken = {column.name.lower() for column in columns}
        base = (_TEMPORARY + name)[:_MAX_TEMPORARY]
        tries = (base + (str(number) if number else "") for number in range(len(taken) + 1))
        return next(found for found in tries if found.lower() not in taken)

    def _rename_one(self, column_id: str, name: str) -> None:
        column, former = self.current[column_id], self.copies.renamed.get(column_id)
        self.write.rename(column_id, column, name, former=former, again=former in self.after)
        self.current[column_id] = replace(column, name=name)

    def _generated_first(self, ids: Sequence[str]) -> list[str]:
        """Generated columns before those that they compute from, others as they come."""
        return _ordered(ids, self.before, dependents_first=True)

    def _base_first(self, ids: Sequence[str]) -> list[str]:
        return _ordered(ids, self.after, dependents_first=False)

    def _refuse_rebuilding_keys(self, rebuilt: Sequence[str]) -> CannotRender | None:
        key = self.from_schema.primary_key
        names = {name.lower() for name in key.columns} if key else set()
        for column_id in rebuilt:
            name = self.before[column_id].name
            if name.lower() in names:
                return CannotRender(
                    f"the generated column {name} would be dropped and added again, "
                    "and the primary key needs it",
                    f"take {name} out of the primary key, or undo the change of its expression",
                )
        return None

    @staticmethod
    def _secondary(schema: TableSchema) -> list[Index]:
        return [i for i in schema.indexes if i.kind is not IndexKind.PRIMARY]


def _plain(index: Index) -> Index:
    """The index as the order looks at it: names without case, no comment, no visibility."""
    parts = tuple(
        IndexPart(p.column.lower(), p.expression, p.length, p.descending) for p in index.parts
    )
    return Index(index.name.lower(), index.kind, parts, parser=index.parser)


def _renamed_part(part: IndexPart, renamed: Mapping[str, str]) -> IndexPart:
    return replace(part, column=renamed.get(part.column.lower(), part.column))


def _columns_of(index: Index) -> list[str]:
    """Lower-case names of the columns that an index reads, in order."""
    names: list[str] = []
    for part in index.parts:
        names += [part.column] if part.column else column_names(part.expression)
    return [name.lower() for name in names]


def _check_key(check: Check) -> tuple[str, str, bool]:
    return check.name.lower(), check.expression, check.enforced


def _ordered(
    ids: Sequence[str], columns: Mapping[str, Column], *, dependents_first: bool
) -> list[str]:
    """Generated columns before or after those that they compute from, others as they come.

    A generated column may name only earlier generated columns, so their depth orders them.
    """
    by_name = {column.name.lower(): column for column in columns.values()}

    def depth(column: Column) -> int:
        if column.generated is None:
            return 0
        names = column_names(column.generated.expression)
        bases = (by_name[n.lower()] for n in names if n.lower() in by_name)
        return 1 + max((depth(base) for base in bases if base is not column), default=0)

    sign = -1 if dependents_first else 1
    return sorted(ids, key=lambda column_id: sign * depth(columns[column_id]))
