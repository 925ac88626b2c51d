"""A target's table in parts that can be compared one by one, and what executed statements make it.

A *part* is a column, an index, a check, a foreign key, a trigger, the partitioning or the default
character set. In an Iceberg table, the identifier fields and commits of others are parts, too. Its
*subject* names a part, as in ``records.drift.Difference``. These are not compared: the order of
columns, comments, visibility, and table options. They do no harm to any row.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias, TypeVar, get_args

from shardmerge.schemas.ddl.apply.actions import schema_after
from shardmerge.schemas.ddl.apply.stored_texts import stored_schema
from shardmerge.schemas.model.actions import (
    Action,
    Adoption,
    CheckAddition,
    CheckRemoval,
    ColumnAddition,
    ColumnRemoval,
    IndexAddition,
    IndexRemoval,
    RowAction,
    TableCreation,
)
from shardmerge.schemas.model.frozen import replace
from shardmerge.schemas.model.mysql_text import (
    check_clause,
    column_definition,
    default_charset,
    index_clause,
)
from shardmerge.schemas.model.names import TargetTable, quote_identifier
from shardmerge.schemas.model.server_context import ServerContext
from shardmerge.schemas.model.tables import Check, Column, ForeignKey, Index, TableSchema

from .table_comparison import bare, bare_check, bare_column
from .target_change import plain_index

TABLE, CHARSET, PARTITIONING = "table", "charset", "partitioning"
IDENTIFIER, ROWS, ROLLBACK = "identifier", "rows", "rollback"
"""Subjects of Iceberg tables only: the identifier fields; somebody else's last commit of rows; and
that somebody set the table back to an earlier state."""


@dataclass(frozen=True, slots=True)
class OtherColumn:
    """A column that ``Column`` cannot describe, for example of a type that no shard has.

    Attributes:
        text: Its definition.
        is_required: Whether a row must have a value for it.
    """

    text: str
    is_required: bool = False


Part: TypeAlias = Column | Index | Check | OtherColumn | str
"""A part as a value; text for a part that has none."""
_Named = TypeVar("_Named", Column, Index, Check)


@dataclass(frozen=True, slots=True)
class TableState:
    """A target's table.

    Attributes:
        schema: None without a table.
        apart: Subject → text, for parts that ``schema`` lacks or has otherwise. "" means that the
            table has no part with this subject, even if ``schema`` has one.
    """

    schema: TableSchema | None
    apart: Mapping[str, str | OtherColumn] = field(default_factory=dict)

    def parts(self) -> dict[str, Part]:
        """Subject → part; empty without a table."""
        if self.schema is None:
            return {}
        schema = bare(self.schema)
        parts: dict[str, Part] = {f"column:{c.name.lower()}": c for c in schema.columns}
        parts |= {f"index:{i.name.lower()}": plain_index(i) for i in schema.indexes}
        parts |= {f"check:{c.name.lower()}": c for c in schema.checks}
        parts |= {f"foreign key:{k.name.lower()}": _foreign_key(k) for k in schema.foreign_keys}
        if self.schema.partitioning:
            parts[PARTITIONING] = self.schema.partitioning
        parts[CHARSET] = default_charset(schema.charset, schema.collation)
        parts |= self.apart
        return {subject: part for subject, part in parts.items() if part != ""}

    def value(self, subject: str) -> Column | Index | Check | None:
        """The column, index or check of a subject, with its comment and the like."""
        kind, _, name = subject.partition(":")
        schema = self.schema
        if schema is None or subject in self.apart:
            return None
        match kind:
            case "column":
                return schema.column(name)
            case "index":
                return schema.index(name)
            case "check":
                return _check(schema, name)
            case _:
                return None

    def in_context(self, context: ServerContext) -> TableState:
        """The state as the server stores it.

        The default character set has its default collation when none is named.
        """
        if self.schema is None:
            return self
        schema = stored_schema(self.schema, context)
        if not schema.collation:
            collation = context.default_collation(schema.charset)
            schema = replace(schema, collation=collation)
        return replace(self, schema=schema)


def text_of(part: Part | None) -> str:
    """A part as SQL; "" for none."""
    match part:
        case None:
            return ""
        case Column():
            return column_definition(part)
        case Index():
            return index_clause(part)
        case Check():
            return check_clause(part)
        case OtherColumn():
            return part.text
        case _:
            return part


def compared_text(part: Column | Index | Check | None) -> str:
    """A part as SQL, as it is compared: without what does not count, such as its comment."""
    match part:
        case Column():
            return text_of(bare_column(part))
        case Index():
            return text_of(plain_index(part))
        case Check():
            return text_of(bare_check(part))
        case None:
            return ""


def executed_state(
    executed: Iterable[Sequence[Action]],
    target: TargetTable,
    context: ServerContext,
    before: TableState | None = None,
) -> TableState:
    """The table that executed statements make, in whatever order they were executed.

    Args:
        executed: The actions of each statement, by version and place in the decision.
        target: The table's name.
        context: The target's server, with the defaults of the table's database.
        before: What the statements before these make; None without any.

    Returns:
        The table, not yet ``in_context``.

    Raises:
        UnsupportedDDL: A statement contradicts the ones before it.
    """
    state = before or TableState(None)
    for actions in executed:
        state = state_after(state, actions, target, context)
    return state


def state_after(
    state: TableState, actions: Sequence[Action], target: TargetTable, context: ServerContext
) -> TableState:
    """The table after one more statement.

    Args:
        state: The table before it.
        actions: What the statement does.
        target: The table's name.
        context: See ``executed_state``.

    Raises:
        UnsupportedDDL: The statement contradicts the ones before it.
    """
    schema = state.schema
    match actions:
        case [Adoption() as adoption]:
            return _adopted(state, adoption)
        case [TableCreation()]:
            # A rebuilt table can take the place of one that was made before.
            return TableState(schema_after(None, actions, target, context))
        case [action] if isinstance(action, get_args(RowAction)):
            return state
        case [action] if schema is not None and _is_there(schema, action):
            # The statement changes nothing: the table has the added part, or lacks the dropped one.
            return state
    return replace(state, schema=schema_after(schema, actions, target, context))


def _is_there(schema: TableSchema, action: Action) -> bool:
    match action:
        case ColumnAddition():
            return schema.column(action.column.name) is not None
        case ColumnRemoval():
            return schema.column(action.name) is None
        case IndexAddition():
            return schema.index(action.index.name) is not None
        case IndexRemoval():
            return schema.index(action.name) is None
        case CheckAddition():
            return _check(schema, action.check.name) is not None
        case CheckRemoval():
            return _check(schema, action.name) is None
        case _:
            return False


def _adopted(state: TableState, adoption: Adoption) -> TableState:
    schema = state.schema
    if schema is None:
        return state
    kind, _, name = adoption.subject.partition(":")
    if kind == "column" and (adoption.column is not None or not adoption.definition):
        columns = _with(schema.columns, adoption.column, name)
        return replace(state, schema=replace(schema, columns=columns))
    if kind == "index":
        indexes = _with(schema.indexes, adoption.index, name)
        return replace(state, schema=replace(schema, indexes=indexes))
    if kind == "check":
        checks = _with(schema.checks, adoption.check, name)
        return replace(state, schema=replace(schema, checks=checks))
    return replace(state, apart={**state.apart, adoption.subject: adoption.definition})


def _with(parts: tuple[_Named, ...], part: _Named | None, name: str) -> tuple[_Named, ...]:
    """The parts with one put in, put in place of another one, or taken out."""
    found = {each.name.lower(): each for each in parts}
    if part is None:
        found.pop(name, None)
    else:
        found[name] = part
    return tuple(found.values())


def _check(schema: TableSchema, name: str) -> Check | None:
    return next((c for c in schema.checks if c.name.lower() == name.lower()), None)


def _foreign_key(key: ForeignKey) -> str:
    columns = ", ".join(map(quote_identifier, key.columns))
    parents = ", ".join(map(quote_identifier, key.parent_columns))
    table = ".".join(quote_identifier(n) for n in (key.parent_database, key.parent_table) if n)
    text = (
        f"CONSTRAINT {quote_identifier(key.name)} FOREIGN KEY ({columns}) REFERENCES {table}"
        f" ({parents})"
    )
    text += f" ON DELETE {key.on_delete}" if key.on_delete else ""
    return text + (f" ON UPDATE {key.on_update}" if key.on_update else "")
