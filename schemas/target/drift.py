"""Compares a target's table with what was decided and executed, and says what a difference means.

People change the table: they add an index, widen a column, or drop what seems unused. The kind of a
difference says what it can do to the rows that the sink writes. The sink writes a row with an
upsert, which replaces the row with the same key. The upsert names every column that the row has.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection

from shardmerge.schemas.lattice.join import compare_tables, join_tables
from shardmerge.schemas.lattice.joined import Conflict
from shardmerge.schemas.model.actions import Adoption
from shardmerge.schemas.model.errors import ContractError
from shardmerge.schemas.model.frozen import replace
from shardmerge.schemas.model.tables import Check, Column, DefaultKind, Index, TableSchema
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

_BOUNDED = re.compile(r"partition by (range|list)\b", re.IGNORECASE)
"""Kinds of partitions that can lack a partition for a row. The server then refuses the row."""
_FIELD = re.compile(r", field [0-9]+\Z")
"""How the text of a column of an Iceberg table ends that ``Column`` cannot describe: its id."""
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
    is_other_column = kind == "column" and _FIELD.search(adoption.definition) is not None
    apart = (kind in _IN_NO_SCHEMA or is_other_column) and part is None
    if not ((kind in value and named and is_same) or apart):
        raise ContractError(
            f"{adoption.subject!r} with the definition {adoption.definition!r} cannot be adopted",
            hint="make the command with `shardmerge drift adopt`",
            code="SM-6808",
        )
    return adoption
