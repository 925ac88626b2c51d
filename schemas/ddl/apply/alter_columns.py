"""ALTER TABLE's changes of columns; ``apply.statements`` says in which order they are made."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from shardmerge.schemas.ddl.canonical.literals import normal_literal
from shardmerge.schemas.ddl.canonical.normalize import normal_column
from shardmerge.schemas.ddl.changes import (
    Action,
    AddColumn,
    AlterColumnVisibility,
    AlterDefault,
    AlterTable,
    ChangeColumn,
    DropColumn,
    Place,
    RenameColumn,
    WrittenLiteral,
)
from shardmerge.schemas.ddl.expressions import rename_columns
from shardmerge.schemas.ddl.grammar.definitions.types import BINARY_ATTRIBUTE
from shardmerge.schemas.model.errors import UnsupportedDDL
from shardmerge.schemas.model.frozen import replace
from shardmerge.schemas.model.mysql_facts import NULL_DEFAULT
from shardmerge.schemas.model.server_context import ServerContext
from shardmerge.schemas.model.shard_columns import Lineage
from shardmerge.schemas.model.tables import Column, DefaultKind, TableSchema

_HINT = "the tracked schema differs from the server's: compare it with SHOW CREATE TABLE"
_NOW = re.compile(r"CURRENT_TIMESTAMP(?:\([0-6]\))?\Z")


@dataclass(frozen=True, slots=True)
class ColumnChanges:
    """The columns after the statement, and how they follow from those before it.

    In this class, an action's place is its index among the statement's actions.

    Attributes:
        columns: In table order.
        lineage: One entry per column, in the same order.
        renamed: Old name (lower case) → new name, for every column that stays.
        dropped: Old names (lower case) of columns that are dropped, even if they are added again.
        skipped: Places of actions that have no effect because of IF [NOT] EXISTS.
        described: Place of an action → the definition of the column that it concerns.
        binary: Names of columns to which the statement gives the attribute BINARY. CONVERT TO does
            not remove it.
        defined: Names of columns that the statement adds or redefines.
        replaced: Places of additions whose definition the same statement replaces.
        only_added: Whether the statement changes no existing column. Then indexes and constraints
            do not change because of columns.
    """

    columns: tuple[Column, ...]
    lineage: tuple[Lineage, ...]
    renamed: Mapping[str, str]
    dropped: frozenset[str]
    skipped: frozenset[int] = frozenset()
    described: Mapping[int, Column] = field(default_factory=dict)
    binary: frozenset[str] = frozenset()
    defined: frozenset[str] = frozenset()
    replaced: frozenset[int] = frozenset()
    only_added: bool = False


class _Plan:
    """The column actions of one statement, sorted by what they do."""

    __slots__ = (
        "changes", "defaults", "drops", "expressions_follow", "late", "renames", "replaced",
        "skipped", "visibility",
    )  # fmt: skip

    def __init__(self, *, expressions_follow: bool) -> None:
        self.expressions_follow = expressions_follow
        self.drops: dict[str, int] = {}
        self.changes: dict[str, tuple[int, ChangeColumn]] = {}
        self.renames: dict[str, tuple[int, RenameColumn]] = {}
        self.defaults: dict[str, tuple[int, AlterDefault]] = {}
        self.visibility: dict[str, tuple[int, AlterColumnVisibility]] = {}
        self.late: list[tuple[int, AddColumn | ChangeColumn]] = []
        self.skipped: set[int] = set()
        self.replaced: dict[int, int] = {}
        """Place of an action that redefines a new column → place of the action that adds it."""


def change_columns(
    schema: TableSchema,
    alter: AlterTable,
    table_name: str,
    charset: tuple[str, str],
    context: ServerContext,
) -> ColumnChanges:
    """Apply the actions that concern columns.

    Args:
        schema: The schema before the statement.
        alter: The statement.
        table_name: For messages.
        charset: The table's default charset and collation after the statement; definitions inherit
            them.
        context: The server.

    Raises:
        UnsupportedDDL: An action contradicts the schema.
    """
    plan = _plan(schema, alter, table_name, context)
    rounds = not context.is_mariadb
    described: dict[int, Column] = {}
    kept: list[tuple[Column, str]] = []
    moved: dict[int, tuple[Column, str]] = {}
    for column in schema.columns:
        folded = column.name.lower()
        if folded in plan.drops:
            described[plan.drops[folded]] = column
            continue
        change = plan.changes.get(folded)
        if change is not None:
            place, action = change
            after = normal_column(action.column, *charset, context)
            after = _altered(after, plan, described, (folded, rounds))
            described[place] = after
            if action.place is not None:
                # It is moved later: until then another column can be placed AFTER it here.
                moved[place] = (after, column.name)
        else:
            after = _altered(column, plan, described, (folded, rounds))
        kept.append((after, column.name))
    for place, late in plan.late:
        if place in plan.replaced:
            entry = (normal_column(late.column, *charset, context), "")
            described[place] = entry[0]
            kept = [e for e in kept if e[0].name.lower() != late.column.name.lower()]
        elif isinstance(late, ChangeColumn):
            if place not in moved:
                raise UnsupportedDDL(
                    f"column {late.name} of table {table_name} is redefined twice in one statement",
                    hint=_HINT,
                    code="SM-1102",
                )
            entry = moved[place]
            kept.remove(entry)
        else:
            if late.if_not_exists and schema.column(late.column.name) is not None:
                # IF NOT EXISTS looks at the table as it was before the statement.
                plan.skipped.add(place)
                continue
            if _find(kept, late.column.name) is not None:
                if late.if_not_exists:
                    plan.skipped.add(place)
                    continue
                raise UnsupportedDDL(
                    f"table {table_name} already has a column {late.column.name}",
                    hint=_HINT,
                    code="SM-1102",
                )
            entry = (normal_column(late.column, *charset, context), "")
            described[place] = entry[0]
        _insert(kept, entry, late.place, table_name)
    defined = [
        action.column for action in alter.actions if isinstance(action, (AddColumn, ChangeColumn))
    ]
    named = frozenset(column.name for column in defined)
    binary = [c.name for c in defined if c.type.collation == BINARY_ATTRIBUTE]
    only_added = len(plan.late) == len(kept) - len(schema.columns) and not (
        plan.changes or plan.renames or plan.defaults or plan.visibility or plan.drops
    )
    replaced = frozenset(plan.replaced.values())
    last_fields = frozenset(binary), named, replaced, only_added
    return _result(kept, plan, described, table_name, last_fields)


def _plan(schema: TableSchema, alter: AlterTable, table_name: str, context: ServerContext) -> _Plan:
    plan = _Plan(expressions_follow=follows_renames(context))
    known = {column.name.lower() for column in schema.columns}
    for place, action in enumerate(alter.actions):
        if isinstance(action, AddColumn):
            plan.late.append((place, action))
            continue
        if not isinstance(
            action,
            (DropColumn, ChangeColumn, RenameColumn, AlterDefault, AlterColumnVisibility),
        ):
            continue
        folded = action.name.lower()
        if folded not in known:
            if not isinstance(action, AlterColumnVisibility) and action.if_exists:
                plan.skipped.add(place)
                continue
            added = _place_of_addition(plan, action, known) if context.is_mariadb else None
            if isinstance(action, ChangeColumn) and added is not None:
                plan.replaced[place] = added
                plan.late.append((place, action))
                continue
            raise UnsupportedDDL(
                f"table {table_name} has no column {action.name}", hint=_HINT, code="SM-1102"
            )
        if isinstance(action, DropColumn):
            plan.drops[folded] = place
        elif isinstance(action, ChangeColumn):
            plan.changes[folded] = (place, action)
            if action.place is not None:
                plan.late.append((place, action))
        elif isinstance(action, RenameColumn):
            plan.renames[folded] = (place, action)
        elif isinstance(action, AlterDefault):
            plan.defaults[folded] = (place, action)
        else:
            plan.visibility[folded] = (place, action)
    for folded in plan.drops.keys() & plan.changes.keys():
        raise UnsupportedDDL(
            f"column {folded} of table {table_name} is dropped and redefined in one statement",
            hint=_HINT,
            code="SM-1102",
        )
    return plan


def _place_of_addition(plan: _Plan, action: Action, known: set[str]) -> int | None:
    """The place of the ADD whose column a MODIFY of the same statement redefines.

    MariaDB accepts this; it looks for the new name, whatever the old one was. (Measured on 10.11.)
    """
    if not isinstance(action, ChangeColumn) or action.column.name.lower() in known:
        return None
    folded = action.column.name.lower()
    places = (place for place, late in plan.late if late.column.name.lower() == folded)
    return max(places, default=None)


def _altered(
    column: Column, plan: _Plan, described: dict[int, Column], name_and_rounds: tuple[str, bool]
) -> Column:
    """A column after its rename, its new default and its new visibility.

    ``name_and_rounds`` is the column's old name in lower case, and whether fractions of a second
    are rounded.
    """
    folded, rounds = name_and_rounds
    after = column
    if folded in plan.renames:
        place, rename = plan.renames[folded]
        after = replace(after, name=rename.to)
        described[place] = after
    place, alteration = plan.defaults.get(folded, (0, None))
    # MariaDB accepts a default for a generated column, and ignores it.
    if alteration is not None and column.generated is None:
        default = alteration.default
        old = column.default
        if not rounds and old and old.kind is DefaultKind.EXPRESSION and _NOW.match(old.text):
            # When the default is the current time, MariaDB also removes ON UPDATE (measured).
            after = replace(after, on_update="")
        if column.auto_increment:
            # An AUTO_INCREMENT column drops the default; MariaDB keeps an expression.
            is_expression = default is not None and default.kind is DefaultKind.EXPRESSION
            default = default if is_expression and not rounds else None
        elif isinstance(default, WrittenLiteral):
            default = normal_literal(default, column.type, rounds=rounds)
        elif default is None and column.nullable:
            # In strict mode the server then requires a value. The target may accept more.
            default = NULL_DEFAULT
        after = replace(after, default=default)
        described[place] = after
    if folded in plan.visibility:
        place, visibility = plan.visibility[folded]
        after = replace(after, invisible=visibility.invisible)
        described[place] = after
    return after


def _find(entries: list[tuple[Column, str]], name: str) -> int | None:
    folded = name.lower()
    return next((i for i, (c, _) in enumerate(entries) if c.name.lower() == folded), None)


def _insert(
    entries: list[tuple[Column, str]],
    entry: tuple[Column, str],
    place: Place | None,
    table_name: str,
) -> None:
    if place is None:
        entries.append(entry)
    elif not place.after:
        entries.insert(0, entry)
    else:
        found = _find(entries, place.after)
        if found is None:
            raise UnsupportedDDL(
                f"table {table_name} has no column {place.after} to put {entry[0].name} after",
                hint=_HINT,
                code="SM-1102",
            )
        entries.insert(found + 1, entry)


def _result(
    entries: list[tuple[Column, str]],
    plan: _Plan,
    described: dict[int, Column],
    table_name: str,
    last_fields: tuple[frozenset[str], frozenset[str], frozenset[int], bool],
) -> ColumnChanges:
    """The changes; ``last_fields`` are the attributes from ``binary`` to ``only_added``."""
    if not entries:
        raise UnsupportedDDL(
            f"table {table_name} would have no columns left", hint=_HINT, code="SM-1102"
        )
    columns = [column for column, _ in entries]
    names: set[str] = {column.name.lower() for column in columns}
    if len(names) < len(columns):
        _report_repetition(columns, table_name)
    renamed = {before.lower(): column.name for column, before in entries if before}
    if (plan.renames or plan.changes) and plan.expressions_follow:
        # Definitions in the statement use the names that columns have after it.
        own = {old: new for old, new in renamed.items() if old not in names}
        columns = [
            _renamed_expression(column, own if column.name in last_fields[1] else renamed)
            for column in columns
        ]
    return ColumnChanges(
        tuple(columns),
        tuple(Lineage(column.name, before) for column, before in entries),
        renamed,
        frozenset(plan.drops),
        frozenset(plan.skipped),
        described,
        *last_fields,
    )


def follows_renames(context: ServerContext) -> bool:
    """Whether a rename of columns also changes expressions of generated columns and indexes.

    MySQL before 8.0.16 keeps the expression's text, and refuses a rename if no column has the old
    name afterwards. If two columns swap names, the expression then means the other column.
    (Measured on 8.0.15.)
    """
    return context.at_least(80016, 0)


def _report_repetition(columns: list[Column], table_name: str) -> None:
    seen: set[str] = set()
    for column in columns:
        if column.name.lower() in seen:
            raise UnsupportedDDL(
                f"table {table_name} would have two columns {column.name}",
                hint=_HINT,
                code="SM-1102",
            )
        seen.add(column.name.lower())


def _renamed_expression(column: Column, renamed: Mapping[str, str]) -> Column:
    default = column.default
    if default is not None and default.kind is DefaultKind.EXPRESSION:
        text = rename_columns(default.text, renamed)
        return replace(column, default=replace(default, text=text))
    if column.generated is None:
        return column
    text = rename_columns(column.generated.expression, renamed)
    return replace(column, generated=replace(column.generated, expression=text))
