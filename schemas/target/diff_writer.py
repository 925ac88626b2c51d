"""Target statements with their kind, reason, subjects and bindings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from shardmerge.schemas.ddl.expressions import column_names
from shardmerge.schemas.lattice.copied_columns import Merge
from shardmerge.schemas.model.coded_text import CodedText
from shardmerge.schemas.model.frozen import replace
from shardmerge.schemas.model.mysql_facts import NULL_DEFAULT
from shardmerge.schemas.model.names import TargetTable
from shardmerge.schemas.model.tables import Check, Column, Index
from shardmerge.schemas.records.decisions import Binding, StatementKind, TargetStatement
from shardmerge.schemas.target.dialects.dialect import CannotRender, Dialect, Rendering

from .diff_columns import Step
from .renamed_defaults import named_by_default
from .row_statements import copying, defaulting
from .target_table import TargetSchema

_EXPANDING = StatementKind.EXPANDING
_CONTRACTING = StatementKind.CONTRACTING
_SWITCHING = StatementKind.SWITCHING


class StatementWriter:
    """Collects the statements of one ``diff`` in execution order.

    Attributes:
        refusal: Why the target cannot have its schema, or the dialect cannot write a statement: the
            first such reason. None while there is none.
    """

    def __init__(self, target: TargetTable, to: TargetSchema, dialect: Dialect) -> None:
        self._table, self._to, self._dialect = target, to, dialect
        self._statements: list[TargetStatement] = []
        self.refusal = to.refusal

    @property
    def result(self) -> tuple[TargetStatement, ...] | CannotRender:
        """The statements written so far, or why they cannot all be written."""
        return self.refusal or tuple(self._statements)

    def create(self) -> None:
        """Create the whole table; the reason contains all notes on it."""
        to = self._to
        binds = tuple(_bound(c.id, c.column) for c in to.columns)
        why = CodedText("; ".join(["the target is new", *to.sentences]), "SM-1901")
        rendering = self._dialect.create_table(self._table, to.schema)
        self._add(rendering, _EXPANDING, why, ("table",), binds)

    def add(self, column_id: str, column: Column, *, ours: bool, copied: bool = False) -> None:
        """Add a column. A generated one is a debt: once it is there, rows cannot bring its values.

        Args:
            column_id: Its identity.
            column: Its definition.
            ours: Whether its default is a zero value that no shard has.
            copied: Whether it was just renamed by copying, and is added again under its old name.
        """
        kind, why = _EXPANDING, CodedText(f"column {column.name} is new", "SM-1902")
        if copied:
            why = CodedText(f"not every shard has renamed {column.name}", "SM-1909")
        if column.generated is not None:
            kind = _CONTRACTING
            why = CodedText(f"every shard computes {column.name}", "SM-1903")
        elif ours and column.default != NULL_DEFAULT:
            why = replace(why, text=f"{why.text}; rows without it get its zero value")
        self._add(
            self._dialect.add_column(self._table, column), kind, self._noted(why, column.name),
            _subjects(column), (_bound(column_id, column),),
        )  # fmt: skip

    def drop(self, column_id: str, column: Column, *, returns: bool = False) -> None:
        """Drop a column.

        A generated column is dropped at once: the target still accepts the same rows. The drop of
        an ordinary column must wait for the rows that bring a value for it.

        Args:
            column_id: Its identity.
            column: Its current definition, with its current name.
            returns: Whether it is added again as a computed column.
        """
        name = column.name
        generated = column.generated is not None
        why = CodedText(f"no shard has {name} any more", "SM-1904")
        if generated:
            why = CodedText(f"a shard no longer computes {name}", "SM-1905")
        if returns:
            text = f"{name} is added again, computed otherwise or from a renamed column"
            why = CodedText(text, "SM-1905")
        self._add(
            self._dialect.drop_column(self._table, column),
            _EXPANDING if generated else _CONTRACTING,
            why,
            (_column(name),),
            (Binding(column_id, ""),),
        )

    def drop_values(self, column_id: str, column: Column) -> None:
        """Drop a column whose values no shard has any more; it is added again.

        At the drop, all rows from before the change must be applied, and none from after it.

        Args:
            column_id: Its identity.
            column: Its current definition.
        """
        name = column.name
        text = f"the shards have {name} anew, for values that the target's cannot become"
        why = CodedText(text, "SM-1906")
        rendering = self._dialect.drop_column(self._table, column)
        self._add(rendering, _SWITCHING, why, (_column(name),), (Binding(column_id, ""),))

    def make_optional(self, column: Column, *, in_key: bool) -> Column:
        """Give a column that will be dropped a default, if rows cannot leave it out.

        The drop waits for all shards; rows without the column arrive before that.

        Returns:
            The column's definition after this.
        """
        if not column.is_required:
            return column
        zero = self._dialect.zero_value(column.type)
        nullable = replace(column, nullable=True, default=NULL_DEFAULT)
        optional = replace(column, default=zero) if zero else nullable
        rendering = self._dialect.change_column(self._table, column, optional, in_key=in_key)
        self._add(rendering, _EXPANDING, _left_out(column), (_column(column.name),))
        return optional

    def rename(
        self,
        column_id: str,
        column: Column,
        to: str,
        on_shards: tuple[str, str],
        *,
        former: str | None = None,
        again: bool = False,
    ) -> None:
        """Rename a column; from then on rows of all shards are written under the new name.

        Args:
            column_id: Its identity.
            column: Its current definition.
            to: Its new name.
            on_shards: Its names on shards before and after; the second is "" if it is dropped.
            former: The identity that it has in rows from before the rename; None: the same one.
            again: Whether a column with the old name is added for the other shards' rows.
        """
        name, (old, new) = column.name, on_shards
        renamed = f"a shard renamed {old} to {new}" if new else f"shards dropped {old}"
        why = CodedText(f"{renamed}; the others' rows go to {to} as well", "SM-1908")
        if to != new:
            text = f"{renamed}; its name is {to} until no other column is in the way"
            why = CodedText(text, "SM-1908")
        if again:
            why = CodedText(f"{renamed}; the others' values are copied at the end", "SM-1909")
        ids = (column_id,) if former is None else (column_id, former)
        self._add(
            self._dialect.rename_column(self._table, column, to),
            _EXPANDING,
            why,
            (_column(name), _column(to)),
            tuple(Binding(each, to, column.generated is None) for each in ids),
        )

    def make_null_when_left_out(self, column: Column) -> Column:
        """Make a column that will be dropped nullable, so that rows can leave it out.

        Returns:
            The column's definition after this.
        """
        if column.nullable:
            return column
        nullable = replace(column, nullable=True, default=NULL_DEFAULT)
        rendering = self._dialect.change_column(self._table, column, nullable, in_key=False)
        self._add(rendering, _EXPANDING, _left_out(column), (_column(column.name),))
        return nullable

    def copy_values(
        self, merge: Merge, gone: Column, kept: Column, others: Sequence[Column]
    ) -> None:
        """Copy the values of a column that is dropped to the one that stays (``copied_columns``).

        Args:
            merge: The end of the rename by copying.
            gone: The column that is dropped, with its current name.
            kept: The column that stays, with its current name.
            others: The target's other columns.
        """
        self._statements.append(copying(self._table, gone, kept, others, overwrites=merge.forward))

    def fill_nulls(self, column: Column, others: Sequence[Column]) -> None:
        """Give a column's default to the rows that hold NULL, before it becomes NOT NULL.

        Args:
            column: Its current definition.
            others: The target's other columns.
        """
        self._statements.append(defaulting(self._table, column, others))

    def move(self, column_id: str, step: Step, *, in_key: bool) -> None:
        """Change a column's definition by one step."""
        before, after = step.before, step.after
        binds: tuple[Binding, ...] = ()
        if (before.generated is None) != (after.generated is None):
            binds = (_bound(column_id, after),)
        rendering = self._dialect.change_column(self._table, before, after, in_key=in_key)
        why = self._noted(step.why, after.name)
        named = (*named_by_default(before), *named_by_default(after))
        subjects = dict.fromkeys((*_subjects(after), *map(_column, named)))
        self._add(rendering, step.kind, why, tuple(subjects), binds)

    def drop_index(self, index: Index, *, returns: bool = False) -> None:
        """Drop an index that some shard lacks, or (``returns``) that is added again later."""
        text = f"not every shard has index {index.name}"
        if returns:
            text = f"index {index.name} is made again with what it is of"
        rendering = self._dialect.drop_index(self._table, index)
        why = CodedText(text, "SM-1917")
        self._add(rendering, _EXPANDING, why, (f"index:{index.name.lower()}",))

    def add_index(self, index: Index, columns: Iterable[str]) -> None:
        """Add an index. Even a plain one is a debt: no row should wait until it is built."""
        self._add(
            self._dialect.add_index(self._table, index),
            _CONTRACTING,
            CodedText(f"every shard has index {index.name}", "SM-1917"),
            (f"index:{index.name.lower()}", *dict.fromkeys(_column(name) for name in columns)),
        )

    def drop_check(self, check: Check) -> None:
        """Drop a check that the join lacks, or that names a renamed or converted column."""
        rendering = self._dialect.drop_check(self._table, check)
        text = f"not every shard has check {check.name}"
        if check in self._to.schema.checks:
            text = f"check {check.name} is made again when what it names is converted"
        why = CodedText(text, "SM-1918")
        self._add(rendering, _EXPANDING, why, (f"check:{check.name.lower()}",))

    def add_check(self, check: Check, columns: Iterable[str]) -> None:
        """Add a check that every shard has. Rows from before the check must be applied first."""
        self._add(
            self._dialect.add_check(self._table, check),
            _CONTRACTING,
            CodedText(f"every shard has check {check.name}", "SM-1918"),
            (f"check:{check.name.lower()}", *dict.fromkeys(_column(name) for name in columns)),
        )

    def set_default_charset(self, before: str) -> None:
        """Set the table's default charset. Clients show it; every column names its own charset."""
        to = self._to.schema
        rendering = self._dialect.set_default_charset(
            self._table, to.charset, to.collation, before=before
        )
        why = CodedText("the shards' default charset is another one", "SM-1919")
        self._add(rendering, _EXPANDING, why, ("charset",))

    def switch_primary_key(self, before: Index | None, after: Index | None) -> None:
        """Replace the primary key; each of the two may be None."""
        why = CodedText("the shards' primary key is another one", "SM-1920")
        rendering = self._dialect.change_primary_key(self._table, before, after)
        self._add(rendering, _SWITCHING, why, ("table",))

    def _noted(self, why: CodedText, column: str) -> CodedText:
        return replace(why, text="; ".join([why.text, *self._to.notes_on(_column(column))]))

    def _add(
        self,
        rendering: Rendering,
        kind: StatementKind,
        why: CodedText,
        subjects: tuple[str, ...],
        binds: tuple[Binding, ...] = (),
    ) -> None:
        if isinstance(rendering, CannotRender):
            self.refusal = self.refusal or rendering
            return
        for place, one in enumerate(rendering, 1):
            # The bindings become true when the last statement is executed.
            bound = binds if place == len(rendering) else ()
            self._statements.append(
                TargetStatement(
                    one.sql, kind, why.text, subjects, bound, actions=one.actions, code=why.code
                )
            )


def _left_out(column: Column) -> CodedText:
    return CodedText(f"rows leave {column.name} out before it is dropped", "SM-1907")


def _bound(column_id: str, column: Column) -> Binding:
    return Binding(column_id, column.name, column.generated is None)


def _column(name: str) -> str:
    return f"column:{name.lower()}"


def _subjects(column: Column) -> tuple[str, ...]:
    """The column, and those that its expression names."""
    named = column_names(column.generated.expression) if column.generated else ()
    return tuple(dict.fromkeys(_column(name) for name in (column.name, *named)))
