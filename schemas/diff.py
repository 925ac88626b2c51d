"""The statements that bring a target from one joined schema to the next.

Computed from the two schemas, columns matched by identity; never copied from a shard's DDL. Every
statement has one clause (several renames are one statement, so that names can be swapped) and a
kind: *expanding* if the target accepts more after it, *contracting* if it accepts less,
*switching* if it accepts other rows. A step that does both is split: widen first, narrow later.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from .events import Binding, ShardColumn, StatementKind, TargetStatement
from .model import Column, Default, DefaultKind, Index, IndexKind, TableSchema
from .names import TargetTable, quote_identifier
from .render.mysql import column_definition, create_table, default_value, index_definition
from .target_table import TargetSchema
from .type_join import join_types
from .zero_values import zero_value

_EXPANDING, _CONTRACTING, _SWITCHING = (
    StatementKind.EXPANDING, StatementKind.CONTRACTING, StatementKind.SWITCHING,
)  # fmt: skip
_NULL = Default(DefaultKind.NULL)


@dataclass(frozen=True, slots=True)
class CannotRender:
    """The target cannot be brought there by a statement, and what would help."""

    reason: str
    hint: str


def diff(
    from_schema: TableSchema | None,
    from_columns: Sequence[ShardColumn],
    to: TargetSchema,
    target: TargetTable,
) -> tuple[TargetStatement, ...] | CannotRender:
    """The statements in execution order; empty when nothing is to be done.

    Args:
        from_schema: The target as it was decided last; None when it does not exist.
        from_columns: Its columns with identities, in the same order.
        to: What it must become.
    """
    if from_schema is None:
        return (_create(to, target),)
    work = _Diff(from_schema, from_columns, to, target)
    if work.changes_generated:
        return CannotRender(
            f"column {work.changes_generated!r} would change between generated and plain",
            "drop the column on all shards and add it anew",
        )
    return tuple(work.statements())


def _create(to: TargetSchema, target: TargetTable) -> TargetStatement:
    # Rows that stand before their shard's first change have all its columns.
    return TargetStatement(
        create_table(to.schema, target.sql), _EXPANDING, "the target's first shard", ("table",),
        tuple(_bind(c) for c in to.columns),
    )  # fmt: skip


def _bind(column: ShardColumn) -> Binding:
    return Binding(column.id, column.column.name, column.column.generated is None)


class _Diff:
    """One run of ``diff``; its methods give the statements of one step each."""

    def __init__(
        self,
        from_schema: TableSchema,
        from_columns: Sequence[ShardColumn],
        to: TargetSchema,
        target: TargetTable,
    ) -> None:
        self._from_indexes = {i.name.lower(): i for i in _secondary(from_schema)}
        self._to_indexes = {i.name.lower(): i for i in _secondary(to.schema)}
        self._from = {c.id: c.column for c in from_columns}
        self._to = {c.id: c.column for c in to.columns}
        self._renamed = {
            column_id: (column.name, self._to[column_id].name)
            for column_id, column in self._from.items()
            if column_id in self._to and column.name != self._to[column_id].name
        }
        self._target = target

    @property
    def changes_generated(self) -> str:
        """Name of a column that MySQL cannot modify into what it must be; "" if none."""
        for column_id, column in self._from.items():
            to = self._to.get(column_id)
            if to and (column.generated is None) != (to.generated is None):
                stored = (column.generated or to.generated).stored  # type: ignore[union-attr]
                if not stored:
                    return to.name
        return ""

    def statements(self) -> Iterator[TargetStatement]:
        yield from self._drop_indexes()
        yield from self._rename()
        for column_id, column in self._from.items():
            if column_id in self._to:
                yield from self._change(
                    replace(column, name=self._to[column_id].name), self._to[column_id]
                )
        for column_id, column in self._from.items():
            if column_id not in self._to:
                yield from self._drop(column_id, column)
        for column_id, column in self._to.items():
            if column_id not in self._from:
                yield from self._add(column_id, column)
        yield from self._add_indexes()

    def _drop_indexes(self) -> Iterator[TargetStatement]:
        for name, index in self._from_indexes.items():
            if self._renamed_index(index) != self._to_indexes.get(name):
                yield self._alter(
                    f"DROP INDEX {quote_identifier(index.name)}", _EXPANDING,
                    f"not every shard has index {index.name}", _index_subjects(index),
                )  # fmt: skip

    def _add_indexes(self) -> Iterator[TargetStatement]:
        kept = {n: self._renamed_index(i) for n, i in self._from_indexes.items()}
        for name, index in self._to_indexes.items():
            if kept.get(name) != index:
                kind = _CONTRACTING if index.is_unique else _EXPANDING
                yield self._alter(
                    f"ADD {index_definition(index)}", kind,
                    f"every shard has index {index.name}", _index_subjects(index),
                )  # fmt: skip

    def _renamed_index(self, index: Index) -> Index:
        """The index after the renames, which MySQL carries over into it."""
        renames = dict(self._renamed.values())
        parts = tuple(replace(p, column=renames.get(p.column, p.column)) for p in index.parts)
        return replace(index, parts=parts)

    def _rename(self) -> Iterator[TargetStatement]:
        if not self._renamed:
            return
        clauses = [
            f"RENAME COLUMN {quote_identifier(old)} TO {quote_identifier(new)}"
            for old, new in self._renamed.values()
        ]
        names = sorted({n for pair in self._renamed.values() for n in pair})
        yield self._alter(
            ", ".join(clauses), _EXPANDING,
            "a shard renamed " + ", ".join(f"{o} to {n}" for o, n in self._renamed.values()),
            _column_subjects(*names),
            tuple(
                Binding(i, new, self._to[i].generated is None)
                for i, (_, new) in self._renamed.items()
            ),
        )  # fmt: skip

    def _change(self, old: Column, new: Column) -> Iterator[TargetStatement]:
        """From one definition to another under the same name: widen, switch, narrow."""
        name = new.name
        if old == new:
            return
        wide = _widest(old, new)
        if wide is None:
            yield self._modify(new, _SWITCHING, f"the type of {name} became another on every shard")
            return
        if wide != old:
            if replace(old, default=wide.default) == wide and wide.default is not None:
                switches = old.default is not None
                yield self._set_default(
                    name, wide.default, _SWITCHING if switches else _EXPANDING,
                    f"the default of {name} became another" if switches
                    else f"not every shard's rows have {name}",
                )  # fmt: skip
            else:
                yield self._modify(wide, _EXPANDING, f"a shard's {name} accepts more")
        if wide != new:
            if replace(wide, default=None) == new:
                yield self._alter(
                    f"ALTER COLUMN {quote_identifier(name)} DROP DEFAULT", _CONTRACTING,
                    f"every shard's rows have {name}", _column_subjects(name),
                )  # fmt: skip
            else:
                yield self._modify(new, _CONTRACTING, f"every shard's {name} accepts less")

    def _drop(self, column_id: str, column: Column) -> Iterator[TargetStatement]:
        if column.is_required:
            # Rows after the gate lack the column before the debt below can be paid.
            yield self._allow_to_lack(column)
        yield self._alter(
            f"DROP COLUMN {quote_identifier(column.name)}", _CONTRACTING,
            f"no shard has {column.name} any more", _column_subjects(column.name),
            (Binding(column_id, ""),),
        )  # fmt: skip

    def _add(self, column_id: str, column: Column) -> Iterator[TargetStatement]:
        """Rows before the gate lack the column, also when every shard has it after."""
        first = column
        if column.is_required:
            zero = zero_value(column.type)
            first = (
                replace(column, default=zero)
                if zero
                else replace(column, nullable=True, default=_NULL)
            )
        yield self._alter(
            f"ADD COLUMN {column_definition(first)}", _EXPANDING,
            f"a shard has the new column {column.name}", _column_subjects(column.name),
            (_bind(ShardColumn(column_id, column)),),
        )  # fmt: skip
        yield from self._change(first, column)

    def _allow_to_lack(self, column: Column) -> TargetStatement:
        reason = f"not every shard's rows have {column.name}"
        zero = zero_value(column.type)
        if zero is None:
            return self._modify(replace(column, nullable=True, default=_NULL), _EXPANDING, reason)
        return self._set_default(column.name, zero, _EXPANDING, reason)

    def _set_default(
        self, name: str, default: Default, kind: StatementKind, reason: str
    ) -> TargetStatement:
        return self._alter(
            f"ALTER COLUMN {quote_identifier(name)} SET DEFAULT {default_value(default)}",
            kind, reason, _column_subjects(name),
        )  # fmt: skip

    def _modify(self, column: Column, kind: StatementKind, reason: str) -> TargetStatement:
        return self._alter(
            f"MODIFY COLUMN {column_definition(column)}", kind, reason,
            _column_subjects(column.name),
        )  # fmt: skip

    def _alter(
        self,
        clauses: str,
        kind: StatementKind,
        reason: str,
        subjects: tuple[str, ...],
        binds: tuple[Binding, ...] = (),
    ) -> TargetStatement:
        return TargetStatement(
            f"ALTER TABLE {self._target.sql} {clauses}", kind, reason, subjects, binds
        )


def _widest(old: Column, new: Column) -> Column | None:
    """What accepts the rows of both; None when there is no such definition.

    The new default counts where both have one: it is what rows without a value get from now on.
    """
    kind = join_types(old.type, new.type)
    if isinstance(kind, str) or old.generated != new.generated:
        return None
    if kind.is_integer and kind.name == new.type.name:
        kind = new.type
    nullable = old.nullable or new.nullable
    default = new.default if new.default is not None else old.default
    if default == _NULL and not nullable:
        default = None
    return replace(new, type=kind, nullable=nullable, default=default)


def _secondary(schema: TableSchema) -> tuple[Index, ...]:
    return tuple(i for i in schema.indexes if i.kind is not IndexKind.PRIMARY)


def _column_subjects(*names: str) -> tuple[str, ...]:
    return tuple(f"column:{name.lower()}" for name in names)


def _index_subjects(index: Index) -> tuple[str, ...]:
    return (f"index:{index.name.lower()}", *_column_subjects(*index.columns))
