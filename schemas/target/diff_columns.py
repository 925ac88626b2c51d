"""How one column of the target gets from its old definition to its new one."""

from __future__ import annotations

from dataclasses import dataclass, field

from shardmerge.schemas.lattice.column_join import fitted_default, same_value
from shardmerge.schemas.lattice.type_join import WIDE, TypeRules, joined_type, value_type
from shardmerge.schemas.model.coded_text import CodedText
from shardmerge.schemas.model.frozen import replace
from shardmerge.schemas.model.mysql_facts import NULL_DEFAULT
from shardmerge.schemas.model.tables import Column, DefaultKind
from shardmerge.schemas.model.types import WITHOUT_LITERAL_DEFAULT
from shardmerge.schemas.records.decisions import StatementKind
from shardmerge.schemas.target.dialects.dialect import CannotRender, Dialect, Place


@dataclass(frozen=True, slots=True)
class Step:
    """One change of a definition.

    Attributes:
        before, after: The definitions, under the name that the column has after renames.
    """

    before: Column
    after: Column
    kind: StatementKind
    why: CodedText


@dataclass(frozen=True, slots=True)
class ColumnMove:
    """The steps of one column: up and switches first, down later.

    Attributes:
        first: Steps before all others, executed while the column still has its old name.
        rebuild: Whether the column is generated and must be dropped and added again.
        anew: Whether the column is dropped and added again, because no shard has its values.
    """

    up: tuple[Step, ...] = field(default=())
    down: tuple[Step, ...] = field(default=())
    rebuild: bool = False
    anew: bool = False
    first: tuple[Step, ...] = field(default=())

    @property
    def switches(self) -> bool:
        """Whether the column accepts other values afterwards, not only more or fewer."""
        return any(step.kind is StatementKind.SWITCHING for step in self.up)


def redefines(step: Step) -> bool:
    """Whether a step changes more than a default that is a literal."""
    before, after = step.before, step.after
    is_literal = after.default is None or after.default.kind is DefaultKind.LITERAL
    return not is_literal or replace(before, default=None) != replace(after, default=None)


def column_steps(
    before: Column,
    after: Column,
    *,
    ours: bool,
    dialect: Dialect,
    types: TypeRules = WIDE,
) -> ColumnMove | CannotRender:
    """The steps from one definition to another.

    Args:
        before: The target's definition now.
        after: The definition that it must have; the name may differ.
        ours: Whether the default of ``after`` is a zero value that no shard has.
        dialect: The target's dialect, for its zero values.
        types: Which types can be joined.
    """
    if before == after:
        return ColumnMove()
    if replace(before, name=after.name, comment=after.comment) == after:
        if before.comment == after.comment:
            return ColumnMove()
        text = f"a shard gave {after.name} another comment, which touches no row"
        why = CodedText(text, "SM-1915")
        step = Step(replace(before, name=after.name), after, StatementKind.EXPANDING, why)
        return ColumnMove(up=(step,))
    if before.generated is not None or after.generated is not None:
        return _generated_steps(before, after)
    before = replace(before, name=after.name)
    # A default that equals the zero value is treated as ours, even if a shard had it: two different
    # defaults of shards conflict, so no shard's rows can depend on it.
    is_zero = same_value(before.default, dialect.zero_value(before.type), before.type)
    low = _Value.of(before, ours=is_zero)
    high = _Value.of(after, ours=ours)
    top = low.join(high, types, dialect)
    name = after.name
    if top is None:
        why = CodedText(f"{name} accepts other values than before", "SM-1916")
        if before.type == after.type and before.nullable == after.nullable:
            why = CodedText(f"the shards' default of {name} is another one", "SM-1914")
        return ColumnMove(up=(Step(before, after, StatementKind.SWITCHING, why),))
    if top == high:
        return _opened(before, after, ours=ours)
    if top == low:
        why = _why_down(before, after)
        return ColumnMove(down=(Step(before, after, StatementKind.CONTRACTING, why),))
    middle = top.column(after, dialect)
    up = Step(before, middle, StatementKind.EXPANDING, _why_up(before, middle, ours=False))
    down = Step(middle, after, StatementKind.CONTRACTING, _why_down(middle, after))
    return ColumnMove(up=(up,), down=(down,))


def _opened(before: Column, after: Column, *, ours: bool) -> ColumnMove:
    """The move to a definition that accepts more.

    If rows could leave the column out before, a new default for it is a debt. Rows from before
    their shard had the column may still come, and must get the value that the column was added
    with.
    """
    why = _why_up(before, after, ours=ours)
    optional = before.nullable or before.default is not None
    kept = before.default or NULL_DEFAULT
    fits = kept == NULL_DEFAULT or after.type.name not in WITHOUT_LITERAL_DEFAULT
    if after.default in (None, NULL_DEFAULT) or not (optional and fits):
        return ColumnMove(up=(Step(before, after, StatementKind.EXPANDING, why),))
    if kept != NULL_DEFAULT:
        kept = fitted_default(kept, after.type)
    middle = replace(after, default=kept)
    down = Step(middle, after, StatementKind.CONTRACTING, _agreed_default(after.name))
    if replace(before, comment=after.comment) == middle:
        return ColumnMove(down=(replace(down, before=before),))
    up = Step(before, middle, StatementKind.EXPANDING, why)
    return ColumnMove(up=(up,), down=(down,) if middle != after else ())


def opened_steps(
    before: Column,
    after: Column,
    *,
    ours: bool,
    dialect: Dialect,
    types: TypeRules = WIDE,
) -> ColumnMove | CannotRender:
    """The steps of a column that is renamed by copying; see ``copied_columns``.

    The column loses its default first, in a switching step: rows that leave it out will have their
    value in the column with the old name, and NULL there must mean NULL. But rows from before a
    shard had the column leave it out too, and must get the value that the column was added with. So
    the default stays, and the rename waits, until such rows are applied.

    Args:
        before: The target's definition now.
        after: The definition that it must have.
        ours: Whether the default of ``after`` is a zero value that no shard has.
        dialect: The target's dialect, for its zero values.
        types: As for ``column_steps``.
    """
    has_default = before.default not in (None, NULL_DEFAULT)
    if not (after.nullable and has_default and before.generated is None):
        return column_steps(before, after, ours=ours, dialect=dialect, types=types)
    free = replace(before, name=after.name, nullable=True, default=NULL_DEFAULT)
    why = CodedText(f"{after.name} is to be NULL in rows that have its old name", "SM-1909")
    step = Step(replace(before, name=after.name), free, StatementKind.SWITCHING, why)
    free_before = replace(free, name=before.name)
    move = column_steps(free_before, after, ours=ours, dialect=dialect, types=types)
    return move if isinstance(move, CannotRender) else replace(move, first=(step,))


def merged_steps(
    before: Column, after: Column, *, dialect: Dialect, types: TypeRules = WIDE
) -> ColumnMove | CannotRender:
    """The steps of the column that stays when a rename by copying ends; see ``copied_columns``.

    Until the values are copied, the column must be NULL in rows that leave it out. So it gets the
    shards' default after that, and no row waits for it.

    Args:
        before: The target's definition now.
        after: The definition that it must have.
        dialect: The target's dialect, for its zero values.
        types: As for ``column_steps``.
    """
    nullable = before.nullable or after.nullable
    default = before.default
    if not nullable and default is not None:
        default = fitted_default(default, after.type)
    elif nullable:
        default = before.default if before.nullable else NULL_DEFAULT
    middle = replace(after, nullable=nullable, default=default)
    first = column_steps(before, middle, ours=False, dialect=dialect, types=types)
    last = column_steps(middle, after, ours=False, dialect=dialect, types=types)
    if isinstance(first, CannotRender) or isinstance(last, CannotRender):
        return first if isinstance(first, CannotRender) else last
    later = (replace(s, kind=StatementKind.CONTRACTING) for s in (*last.up, *last.down))
    return replace(first, down=(*first.down, *later))


def without_nulls(step: Step) -> tuple[tuple[Step, ...], Step] | None:
    """A step to NOT NULL of a column that a shard lacks, in parts; None for any other step.

    Existing rows of shards that lack the column hold NULL in it. First the column gets the default,
    which later rows of these shards take; then the existing rows get it too; then the column
    becomes NOT NULL.

    Returns:
        The steps before the rows are filled, and the step after that.
    """
    before, after = step.before, step.after
    narrows = step.kind is StatementKind.CONTRACTING and before.nullable and not after.nullable
    if not narrows or before.generated is not None or after.default in (None, NULL_DEFAULT):
        return None
    middle = replace(after, nullable=True)
    optional = step.why
    if before.type == after.type:
        text = f"rows without {after.name} get a default instead of NULL"
        optional = CodedText(text, "SM-1913")
    first = () if middle == before else (replace(step, after=middle, why=optional),)
    why = CodedText(f"{after.name} is NOT NULL on every shard that has it", "SM-1913")
    return first, replace(step, before=middle, why=why)


def first_steps(after: Column, dialect: Dialect) -> tuple[Column, tuple[Step, ...]]:
    """How a new column is added: its definition at first, and the steps from there.

    Rows from before their shard had the column may still come. So a column that needs a value is
    added with a default, and loses it when these rows are applied.
    """
    if not after.is_required or after.generated is not None:
        return after, ()
    optional = _Value(_Value.of(after, ours=False).definition, True).column(after, dialect)
    step = Step(optional, after, StatementKind.CONTRACTING, _why_down(optional, after))
    return optional, (step,)


def _generated_steps(before: Column, after: Column) -> ColumnMove | CannotRender:
    """The move of a column that is generated before or after the change.

    Source: MySQL Reference Manual, "ALTER TABLE and Generated Columns".
    """
    name = after.name
    if before.generated is None:
        assert after.generated is not None
        why = CodedText(f"every shard computes {name} now", "SM-1903")
        if after.generated.stored:
            step = Step(replace(before, name=name), after, StatementKind.CONTRACTING, why)
            return ColumnMove(down=(step,))
        return ColumnMove(rebuild=True)
    if after.generated is None:
        if before.generated.stored:
            why = CodedText(f"a shard gives {name} values of its own", "SM-1905")
            step = Step(replace(before, name=name), after, StatementKind.EXPANDING, why)
            return ColumnMove(up=(step,))
        return CannotRender(
            f"MySQL does not turn the VIRTUAL column {name} into an ordinary one",
            f"drop {name} on every shard and add it again, or make it STORED first",
            code="SM-1225",
        )
    same_storage = before.generated.stored == after.generated.stored
    if before.name == name and same_storage:
        why = CodedText(f"{name} is computed otherwise", "SM-1905")
        step = Step(before, after, StatementKind.SWITCHING, why)
        return ColumnMove(up=(step,))
    return ColumnMove(rebuild=True)


@dataclass(frozen=True, slots=True)
class _Value:
    """A target column's value in the semilattice; ``definition.default`` None is unset."""

    definition: Column
    optional: bool

    @classmethod
    def of(cls, column: Column, *, ours: bool) -> _Value:
        default = column.default
        optional = column.nullable or default is not None
        if default is not None and (ours or default.kind is DefaultKind.NULL):
            default = None
        return cls(
            Column("", value_type(column.type), column.nullable, default, column.on_update),
            optional,
        )

    def join(self, other: _Value, types: TypeRules, dialect: Dialect) -> _Value | None:
        """The least upper bound; None when there is none."""
        a, b = self.definition, other.definition
        kind = joined_type((a.type, b.type), types)
        if isinstance(kind, str):
            return None
        if kind not in (a.type, b.type):
            fitted = dialect.fit_column(Column("c", kind), Place())
            if isinstance(fitted, CannotRender):
                return None
            kind = fitted.column.type
        if a.default and b.default and not same_value(a.default, b.default, kind):
            return None
        default = b.default or a.default
        if default is not None:
            default = fitted_default(default, kind)
            if default.kind is DefaultKind.LITERAL and kind.name in WITHOUT_LITERAL_DEFAULT:
                # Text types take a default only as an expression, on older servers not at all.
                whole = Column("c", kind, default=default)
                fitted = dialect.fit_column(whole, Place(optional=True))
                if isinstance(fitted, CannotRender) or fitted.column.default == NULL_DEFAULT:
                    return None
                default = fitted.column.default
        joined = Column(
            "",
            value_type(kind),
            nullable=a.nullable or b.nullable,
            default=default,
            on_update=a.on_update if a.on_update == b.on_update else "",
        )
        return _Value(joined, self.optional or other.optional)

    def column(self, like: Column, dialect: Dialect) -> Column:
        """The value as a definition that the target can have."""
        joined = replace(self.definition, name=like.name, comment=like.comment)
        if joined.default is not None:
            return joined
        zero = dialect.zero_value(joined.type) if self.optional and not joined.nullable else None
        if zero is not None:
            return replace(joined, default=zero)
        nullable = joined.nullable or self.optional
        return replace(joined, nullable=nullable, default=NULL_DEFAULT if nullable else None)


def _why_up(before: Column, after: Column, *, ours: bool) -> CodedText:
    name = after.name
    if before.type != after.type:
        return CodedText(f"{name} holds the values of every shard's type", "SM-1910")
    if after.nullable and not before.nullable:
        return CodedText(f"{name} may be NULL on a shard", "SM-1912")
    if ours or before.default is None:
        return CodedText(f"a shard leaves {name} out", "SM-1914")
    return _agreed_default(name)


def _agreed_default(name: str) -> CodedText:
    return CodedText(f"{name} takes the default that the shards agree on", "SM-1914")


def _why_down(before: Column, after: Column) -> CodedText:
    name = after.name
    if before.type != after.type:
        return CodedText(f"every shard has the narrower type of {name}", "SM-1911")
    if before.nullable and not after.nullable:
        return CodedText(f"{name} is NOT NULL on every shard", "SM-1913")
    return CodedText(f"every shard gives {name} a value, so its default goes", "SM-1914")
