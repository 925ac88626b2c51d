"""Compares a target's table with what was decided and executed, and says what a difference means.

People change the table: they add an index, widen a column, or drop what seems unused. The kind of a
difference says what it can do to the rows that the sink writes. The sink writes a row with an
upsert, which replaces the row with the same key. The upsert names every column that the row has.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence

from shardmerge.schemas.lattice.join import compare_tables, join_tables
from shardmerge.schemas.lattice.joined import Conflict
from shardmerge.schemas.model.actions import (
    Action,
    Adoption,
    CheckAddition,
    CheckRemoval,
    ColumnAddition,
    ColumnChange,
    ColumnRemoval,
    ColumnRename,
    CommentChange,
    DefaultChange,
    IndexAddition,
    IndexRemoval,
    NullPermission,
    TypeChange,
)
from shardmerge.schemas.model.errors import ContractError
from shardmerge.schemas.model.frozen import replace
from shardmerge.schemas.model.names import TargetTable
from shardmerge.schemas.model.tables import Check, Column, DefaultKind, Index, TableSchema
from shardmerge.schemas.model.types import ColumnType
from shardmerge.schemas.records.drift import Difference, DriftKind

from .dialects.spark import column_text
from .table_comparison import misfit
from .table_state import (
    CHARSET,
    IDENTIFIER,
    PARTITIONING,
    ROLLBACK,
    ROWS,
    TABLE,
    OtherColumn,
    Part,
    TableState,
    compared_text,
    text_of,
)
from .target_change import plain_index

_BOUNDED = re.compile(r"partition by (range|list)\b", re.IGNORECASE)
"""Kinds of partitions that can lack a partition for a row. The server then refuses the row."""
_HARMLESS, _REFUSES = DriftKind.HARMLESS, DriftKind.REFUSES
_VALUES, _MISSING = DriftKind.VALUES, DriftKind.MISSING
_IN_NO_SCHEMA = frozenset(
    {"foreign key", "trigger", PARTITIONING, CHARSET, IDENTIFIER, ROWS, ROLLBACK}
)
"""First parts of subjects whose adoption is a text alone."""


def differences(
    expected: TableState, found: TableState, text: Callable[[Part | None], str] = text_of
) -> tuple[Difference, ...]:
    """The parts in which the table differs from what was decided, sorted by subject.

    Args:
        expected: The table that the executed statements make (``executed_state``).
        found: The table that the server shows.
        text: A part as people of this kind of target write it; "" for none.
    """
    if expected.schema is None:
        return ()
    if found.schema is None:
        return (Difference(TABLE, _MISSING, "a table", ""),)
    wanted, there = expected.parts(), found.parts()
    unique = {
        name.lower()
        for schema in (expected.schema, found.schema)
        for index in schema.indexes
        if index.is_unique
        for name in index.columns
    }
    return tuple(
        Difference(
            subject,
            kind_of(subject, wanted.get(subject), there.get(subject), unique),
            text(wanted.get(subject)),
            text(there.get(subject)),
        )
        for subject in sorted({*wanted, *there})
        if not is_same_part(wanted.get(subject), there.get(subject))
    )


def is_same_part(expected: Part | None, found: Part | None) -> bool:
    """Whether both definitions do the same to rows."""
    if isinstance(expected, Column) and isinstance(found, Column):
        return expected == found or (
            expected.on_update == found.on_update
            and compare_tables(TableSchema((expected,)), TableSchema((found,))).is_equal
        )
    return expected == found


def kind_of(
    subject: str, expected: Part | None, found: Part | None, unique: Collection[str] = ()
) -> DriftKind:
    """What a difference can do to rows.

    Args:
        subject: The subject of the part that differs.
        expected: The decided part; None when none was decided.
        found: The part that the table has; None when it has none.
        unique: Lower-case names of the columns in unique keys.
    """
    if found is None:
        harmless = subject in (CHARSET, PARTITIONING, IDENTIFIER)
        return _HARMLESS if harmless else _MISSING
    match expected, found:
        case None, Column():
            return _REFUSES if found.is_required else _HARMLESS
        case None, OtherColumn():
            return _REFUSES if found.is_required else _HARMLESS
        case (_, OtherColumn()) | (OtherColumn(), _):
            return _VALUES
        case Column(), Column():
            return _column_kind(expected, found, is_unique=found.name.lower() in unique)
        case None, Index():
            # An upsert replaces every row that has the same values in any unique key.
            return _VALUES if found.is_unique else _HARMLESS
        case Index(), Index():
            return _VALUES if expected.is_unique or found.is_unique else _HARMLESS
        case _, Check():
            return _REFUSES if found.enforced else _HARMLESS
        case _:
            pass
    if subject.startswith("trigger:"):
        return _VALUES if str(found).startswith("BEFORE") else _REFUSES
    if subject in (ROWS, ROLLBACK):
        return _VALUES
    if subject == PARTITIONING:
        return _REFUSES if _BOUNDED.search(str(found)) else _HARMLESS
    return _HARMLESS if subject in (CHARSET, IDENTIFIER) else _REFUSES


def _column_kind(expected: Column, found: Column, *, is_unique: bool) -> DriftKind:
    if found.generated != expected.generated:
        # The server refuses a row with a value for a computed column. If the decided column is
        # computed, the sink writes no value for it, and the server's value is another one.
        return _REFUSES if expected.generated is None else _VALUES
    if found.on_update != expected.on_update or found.auto_increment != expected.auto_increment:
        return _VALUES
    if _is_null(expected) and found.default is not None and not _is_null(found):
        return _VALUES  # NULL was decided for a row that leaves the column out.
    plain = replace(expected.type, collation=""), replace(found.type, collation="")
    if plain[0] == plain[1] and expected.type != found.type and is_unique:
        return _VALUES  # Another collation lets other values collide in the unique key.
    wanted, there = TableSchema((expected,)), TableSchema((found,))
    if not misfit(wanted, there):
        return _HARMLESS
    if plain[0] == plain[1]:
        there = TableSchema((replace(found, type=expected.type),))
        if not misfit(wanted, there):
            return _HARMLESS
    return _VALUES if isinstance(join_tables([wanted, there]), Conflict) else _REFUSES


def _is_null(column: Column) -> bool:
    return column.default is not None and column.default.kind is DefaultKind.NULL


MEANINGS = {
    DriftKind.HARMLESS: "rows are written as before",
    DriftKind.REFUSES: "the table can refuse rows of shards",
    DriftKind.VALUES: "the table can hold other values, or other rows, than the shards",
    DriftKind.MISSING: "the table lacks what was decided",
    DriftKind.UNREAD: "the table is not compared",
}
"""Kind → what it means for rows, as a part of a sentence."""


def adoption_of(difference: Difference, found: TableState) -> Adoption | str:
    """The adoption of a difference; or, as text, why it cannot be adopted.

    Args:
        difference: One of the results of ``differences``.
        found: The table that the server shows.
    """
    subject = difference.subject
    if difference.kind is DriftKind.UNREAD or subject == TABLE:
        return "a table that is missing or cannot be read cannot be adopted"
    if not difference.found and subject.startswith("column:"):
        return "rows have values for this column, which the table must hold"
    part = found.value(subject)
    return Adoption(
        subject,
        difference.found,
        column=part if isinstance(part, Column) else None,
        index=part if isinstance(part, Index) else None,
        check=part if isinstance(part, Check) else None,
    )


def checked_adoption(adoption: Adoption) -> Adoption:
    """Check an adoption that came from outside, and return it.

    Raises:
        ContractError: Its text (``definition``) does not describe its column, index or check.
    """
    kind, _, name = adoption.subject.partition(":")
    value = {"column": adoption.column, "index": adoption.index, "check": adoption.check}
    part = value.get(kind)
    named = part is None or part.name.lower() == name
    is_same = compared_text(part) == adoption.definition or (
        # An Iceberg table shows a column as Spark does.
        isinstance(part, Column) and column_text(part) == adoption.definition
    )
    is_other_column = kind == "column" and adoption.definition != ""
    apart = (kind in _IN_NO_SCHEMA or is_other_column) and part is None
    if not ((kind in value and named and is_same) or apart):
        raise ContractError(
            f"{adoption.subject!r} with the definition {adoption.definition!r} cannot be adopted",
            hint="make the command with `shardmerge drift adopt`",
            code="SM-6808",
        )
    return adoption


def met(
    expected: TableState,
    found: TableState,
    actions: Sequence[Action],
    text: Callable[[Part | None], str] = text_of,
) -> tuple[Difference, ...]:
    """The changes by hand that a statement would overwrite. With any, it must not be executed.

    These do not count:

    * a column that the statement adds and that is there already: the journal compares it;
    * a changed column, if the statement gives it a type that can hold all its values;
    * a changed column that the statement drops, if it accepts every value of the decided column.

    Args:
        expected: The table that the statements executed so far make.
        found: The table that the server shows.
        actions: The actions of the statement.
        text: See ``differences``.
    """
    named = {each.subject: each for each in differences(expected, found, text)}
    hit = []
    for action in actions:
        for subject in _touched(action):
            each = named.get(subject)
            if each is not None and not _keeps(expected, found, each, action):
                hit.append(each)
    return tuple(dict.fromkeys(hit))


def holds_already(
    expected: TableState, after: TableState, found: TableState, actions: Sequence[Action]
) -> bool:
    """Whether the table can stay as it is, because its columns accept all that a statement decides.

    That is so for a statement that only widens columns (each value stays what it is), if somebody
    made these columns wider still, and of the same kind of type. A later statement that widens them
    further, or drops them, is executed. A later one that narrows them is refused (``met``).

    Args:
        expected: The table that the statements executed so far make.
        after: The table that the statement makes of it.
        found: The table that the server shows.
        actions: The actions of the statement.
    """
    unique = {
        name.lower()
        for schema in (after.schema, found.schema)
        for index in (() if schema is None else schema.indexes)
        if index.is_unique
        for name in index.columns
    }
    return bool(actions) and all(
        (
            isinstance(action, TypeChange)
            or (
                isinstance(action, ColumnChange)
                and action.column.name.lower() == action.name.lower()
            )
        )
        and _holds(f"column:{action.name.lower()}", expected, after, found, unique)
        for action in actions
    )


def _holds(
    subject: str, expected: TableState, after: TableState, found: TableState, unique: set[str]
) -> bool:
    parts = [state.parts().get(subject) for state in (expected, after, found)]
    columns = [part for part in parts if isinstance(part, Column)]
    kinds = {_kind_of_type(column.type) for column in columns}
    if len(columns) < 3 or len(kinds) > 1 or "binary" in kinds:
        return False
    before, wanted, there = columns
    is_widened = not misfit(TableSchema((before,)), TableSchema((wanted,)))
    return is_widened and kind_of(subject, wanted, there, unique) is _HARMLESS


def _kind_of_type(kind: ColumnType) -> str:
    """The same text for types between which a server converts no value.

    BINARY is an exception, which ``_holds`` leaves out: it pads a value to its own length.
    """
    if kind.is_integer:
        return "integer"
    return "text" if kind.is_string else kind.name


def met_text(target: TargetTable, differences: Sequence[Difference]) -> str:
    """The message for a refused statement: both definitions of each part, and the ways out."""
    parts = "; ".join(
        f"{each.subject}: decided is {each.expected or 'nothing'}, but the table has "
        f"{each.found or 'nothing'}"
        for each in differences
    )
    return (
        f"the statement would overwrite what somebody changed on {target} by hand ({parts}); "
        f"`shardmerge drift heal {target} --pipeline FILE` brings the decided table back, "
        f"`shardmerge drift adopt {target} --pipeline FILE` lets the statement overwrite the change"
    )


def _touched(action: Action) -> tuple[str, ...]:
    match action:
        case ColumnChange():
            names = {action.name.lower(), action.column.name.lower()}
            return tuple(f"column:{name}" for name in sorted(names))
        case ColumnRename():
            return f"column:{action.name.lower()}", f"column:{action.to.lower()}"
        case ColumnRemoval() | TypeChange() | NullPermission() | CommentChange() | DefaultChange():
            return (f"column:{action.name.lower()}",)
        case IndexAddition():
            return (f"index:{action.index.name.lower()}",)
        case IndexRemoval():
            return (f"index:{action.name.lower()}",)
        case CheckAddition():
            return (f"check:{action.check.name.lower()}",)
        case CheckRemoval():
            return (f"check:{action.name.lower()}",)
        case _:
            return ()


def _keeps(expected: TableState, found: TableState, each: Difference, action: Action) -> bool:
    """Whether the action overwrites nothing of a change by hand."""
    part = found.parts().get(each.subject)
    match action:
        case ColumnRemoval() if isinstance(part, Column):
            # The column is the decided one, only wider, so its values came from the shards. A table
            # that existed before the pipeline often has such columns.
            decided = expected.parts().get(each.subject)
            return isinstance(decided, Column) and not misfit(
                TableSchema((decided,)), TableSchema((part,))
            )
        case ColumnRemoval() | IndexRemoval() | CheckRemoval():
            return part is None
        case IndexAddition():
            return plain_index(action.index) == part
        case CheckAddition():
            return part is None or part == action.check
        case ColumnChange() if isinstance(part, Column):
            other = action.column.name.lower() != action.name.lower()
            if other and each.subject == f"column:{action.column.name.lower()}":
                return False
            after = replace(action.column, name=part.name, comment="")
            return not misfit(TableSchema((part,)), TableSchema((after,)))
        case TypeChange() if isinstance(part, Column):
            after = replace(part, type=action.type)
            return not misfit(TableSchema((part,)), TableSchema((after,)))
        case NullPermission() | CommentChange():
            return isinstance(part, Column)  # The column stays as it is otherwise.
        case ColumnAddition():
            return True
        case _:
            return False
