"""Target statements with their kind, reason, subjects and bindings."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from .diff_columns import Step
from .events import Binding, StatementKind, TargetStatement
from .expressions import column_names
from .model import Check, Column, Default, DefaultKind, Index
from .names import TargetTable, quote_identifier
from .render.mysql import (
    check_clause,
    column_definition,
    create_table,
    default_value,
    index_clause,
)
from .target_table import TargetSchema
from .type_join import value_type
from .zero_values import zero_value

_EXPANDING = StatementKind.EXPANDING
_CONTRACTING = StatementKind.CONTRACTING
_SWITCHING = StatementKind.SWITCHING


class StatementWriter:
    """Collects the statements of one ``diff`` in execution order."""

    def __init__(self, target: TargetTable) -> None:
        self._name = target.sql
        self._statements: list[TargetStatement] = []

    @property
    def statements(self) -> tuple[TargetStatement, ...]:
        """What was written so far."""
        return tuple(self._statements)

    def create(self, to: TargetSchema) -> None:
        """CREATE TABLE without IF NOT EXISTS: whoever executes it looks what is there."""
        binds = tuple(_bound(c.id, c.column) for c in to.columns)
        sql = create_table(to.schema, self._name)
        self._add(sql, _EXPANDING, "the target is new", ("table",), binds)

    def add(self, column_id: str, column: Column, *, ours: bool) -> None:
        """Add a column; a generated one is a debt, since it takes values that rows bring."""
        kind, reason = _EXPANDING, f"column {column.name} is new"
        if column.generated is not None:
            kind, reason = _CONTRACTING, f"every shard computes {column.name}"
        elif ours:
            reason += "; shards without it get its zero value"
        self._alter(
            f"ADD COLUMN {column_definition(column)}", kind, reason, _subjects(column),
            (_bound(column_id, column),),
        )  # fmt: skip

    def drop(self, column_id: str, column: Column, name: str) -> None:
        """Drop a column that is called ``name`` by now.

        A generated column is dropped at once: the target then accepts what it accepted, while
        an ordinary one must wait for the rows that still bring a value.
        """
        generated = column.generated is not None
        self._alter(
            f"DROP COLUMN {quote_identifier(name)}",
            _EXPANDING if generated else _CONTRACTING,
            f"a shard no longer computes {name}" if generated else f"no shard has {name} any more",
            (_column(name),),
            (Binding(column_id, ""),),
        )

    def make_optional(self, column: Column) -> None:
        """Give a column that will be dropped a default, if rows could not leave it out.

        Rows without the column arrive before the drop is executed, which waits for all shards.
        """
        if not column.is_required:
            return
        zero = zero_value(column.type)
        nullable = replace(column, nullable=True, default=Default(DefaultKind.NULL))
        clause = _move_clause(column, replace(column, default=zero) if zero else nullable)
        reason = f"rows leave {column.name} out before it is dropped"
        self._alter(clause, _EXPANDING, reason, (_column(column.name),))

    def rename(self, column_id: str, name: str, to: str, writable: bool) -> None:
        """Rename a column; rows of all shards go to the new name from then on."""
        self._alter(
            f"RENAME COLUMN {quote_identifier(name)} TO {quote_identifier(to)}",
            _EXPANDING,
            f"a shard renamed {name} to {to}; the others' rows go to {to} as well",
            (_column(name), _column(to)),
            (Binding(column_id, to, writable),),
        )

    def move(self, column_id: str, step: Step) -> None:
        """One step of a column's definition."""
        before, after = step.before, step.after
        binds: tuple[Binding, ...] = ()
        if (before.generated is None) != (after.generated is None):
            binds = (_bound(column_id, after),)
        self._alter(_move_clause(before, after), step.kind, step.reason, _subjects(after), binds)

    def drop_index(self, index: Index) -> None:
        """Drop an index that some shard lacks."""
        self._alter(
            f"DROP INDEX {quote_identifier(index.name)}", _EXPANDING,
            f"not every shard has index {index.name}", (f"index:{index.name.lower()}",),
        )  # fmt: skip

    def add_index(self, index: Index, columns: Iterable[str]) -> None:
        """Add an index; also a plain one is a debt, since no row should wait for its making."""
        self._alter(
            f"ADD {index_clause(index)}",
            _CONTRACTING,
            f"every shard has index {index.name}",
            (f"index:{index.name.lower()}", *dict.fromkeys(_column(name) for name in columns)),
        )

    def drop_check(self, check: Check) -> None:
        """Drop a check that some shard lacks."""
        self._alter(
            f"DROP CHECK {quote_identifier(check.name)}", _EXPANDING,
            f"not every shard has check {check.name}", (f"check:{check.name.lower()}",),
        )  # fmt: skip

    def add_check(self, check: Check, columns: Iterable[str]) -> None:
        """Add a check that every shard has; rows of before it must have been applied."""
        self._alter(
            f"ADD {check_clause(check)}",
            _CONTRACTING,
            f"every shard has check {check.name}",
            (f"check:{check.name.lower()}", *dict.fromkeys(_column(name) for name in columns)),
        )

    def switch_primary_key(self, before: Index | None, after: Index | None) -> None:
        """Change the primary key in one statement: a table without one would lose its order."""
        clauses = ["DROP PRIMARY KEY"] if before else []
        clauses += [f"ADD {index_clause(after)}"] if after else []
        reason = "the shards' primary key is another one"
        self._alter(", ".join(clauses), _SWITCHING, reason, ("table",))

    def _alter(
        self,
        clause: str,
        kind: StatementKind,
        reason: str,
        subjects: tuple[str, ...],
        binds: tuple[Binding, ...] = (),
    ) -> None:
        self._add(f"ALTER TABLE {self._name} {clause}", kind, reason, subjects, binds)

    def _add(
        self,
        sql: str,
        kind: StatementKind,
        reason: str,
        subjects: tuple[str, ...],
        binds: tuple[Binding, ...] = (),
    ) -> None:
        self._statements.append(TargetStatement(sql, kind, reason, subjects, binds))


def _move_clause(before: Column, after: Column) -> str:
    """ALTER COLUMN where only the default changes, since it touches no row; else MODIFY."""
    default = after.default
    only_default = (
        before.generated is None
        and after.generated is None
        and value_type(before.type) == value_type(after.type)
        and (before.nullable, before.on_update) == (after.nullable, after.on_update)
    )
    # An expression has no place in ALTER COLUMN: CURRENT_TIMESTAMP in parentheses would be another
    # default, and MySQL 8.0.15 refuses any for text, blob and JSON (measured).
    if not only_default or (default and default.kind is DefaultKind.EXPRESSION):
        return f"MODIFY COLUMN {column_definition(after)}"
    name = quote_identifier(after.name)
    if default is None:
        return f"ALTER COLUMN {name} DROP DEFAULT"
    return f"ALTER COLUMN {name} SET DEFAULT {default_value(default, after.type)}"


def _bound(column_id: str, column: Column) -> Binding:
    return Binding(column_id, column.name, column.generated is None)


def _column(name: str) -> str:
    return f"column:{name.lower()}"


def _subjects(column: Column) -> tuple[str, ...]:
    """The column, and those that its expression names."""
    named = column_names(column.generated.expression) if column.generated else ()
    return tuple(dict.fromkeys(_column(name) for name in (column.name, *named)))
