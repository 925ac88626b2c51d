"""What a decided statement may do when it meets a change by hand on its table. Pure.

A statement that would overwrite such a change is not executed. One that overwrites nothing is, and
one that the table already fulfils counts as executed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from shardmerge.schemas.model.actions import (
    Action,
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
from shardmerge.schemas.model.frozen import replace
from shardmerge.schemas.model.names import TargetTable
from shardmerge.schemas.model.tables import Column, TableSchema
from shardmerge.schemas.model.types import ColumnType
from shardmerge.schemas.records.drift import Difference, DriftKind

from .drift import differences, kind_of
from .table_comparison import misfit
from .table_state import Part, TableState, text_of
from .target_change import plain_index


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
    touched = _differences_touched(expected, found, actions, text)
    hit = [each for each, action in touched if not _keeps(expected, found, each, action)]
    return tuple(dict.fromkeys(hit))


def replaced(
    expected: TableState,
    found: TableState,
    actions: Sequence[Action],
    text: Callable[[Part | None], str] = text_of,
) -> tuple[Difference, ...]:
    """The columns changed by hand that a statement changes or drops, although it meets nothing.

    No value is lost by it, but the change by hand is gone afterwards. So it must be told.

    Args:
        expected: See ``met``.
        found: See ``met``.
        actions: Of a statement for which ``met`` finds nothing.
        text: See ``differences``.
    """
    changing = (ColumnChange, ColumnRemoval, TypeChange)
    parts = found.parts()
    return tuple(dict.fromkeys(
        each
        for each, action in _differences_touched(expected, found, actions, text)
        if isinstance(action, changing) and isinstance(parts.get(each.subject), Column)
    ))  # fmt: skip


def _differences_touched(
    expected: TableState,
    found: TableState,
    actions: Sequence[Action],
    text: Callable[[Part | None], str],
) -> Iterator[tuple[Difference, Action]]:
    """Each difference of the table whose part an action concerns, with the action."""
    named = {each.subject: each for each in differences(expected, found, text)}
    for action in actions:
        for subject in _touched(action):
            each = named.get(subject)
            if each is not None:
                yield each, action


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
    return is_widened and kind_of(subject, wanted, there, unique) is DriftKind.HARMLESS


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
