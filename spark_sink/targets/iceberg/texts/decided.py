"""The table that the executed statements make: kept beside the sink's state, and compared. Pure.

It is stored in the same commit as each statement's entry. So it needs no journal of actions. With
the ids of its columns it shows which column somebody renamed, and which one is not the column that
the statements made although it has its name.

Iceberg's schema becomes a ``TableState`` as that of any target. So what differs, and what that
means for rows, is found by the same functions (``schemas.target.drift``).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from shardmerge.schemas.model.actions import Action, Adoption, ColumnAddition, ColumnRemoval
from shardmerge.schemas.model.errors import UnsupportedDDL
from shardmerge.schemas.model.mysql_facts import NULL_DEFAULT
from shardmerge.schemas.model.names import quote_identifier
from shardmerge.schemas.model.tables import Column, TableSchema
from shardmerge.schemas.target.dialects.spark import column_text
from shardmerge.schemas.target.dialects.spark_types import type_of
from shardmerge.schemas.target.table_state import (
    IDENTIFIER,
    ROLLBACK,
    ROWS,
    OtherColumn,
    Part,
    TableState,
    text_of,
)

from .history import History, last_of_others, taken_back
from .layout import Field, Layout, layout_of, schema_json, spark_name
from .layout_changes import field_of, layout_after

HISTORY_SUBJECTS = (ROWS, ROLLBACK)
"""Differences that stay when the snapshots that show them expire, until somebody adopts them."""


@dataclass(frozen=True, slots=True)
class Decided:
    """A table as it was decided.

    Attributes:
        layout: Its columns.
        after: The table's highest sequence number when the sink began to write to it: later
            commits of others are differences.
        adopted: Subject of a difference that is in no schema → its adopted text.
        others: Ids of adopted columns that no statement has made: the sink writes nothing to them.
    """

    layout: Layout
    after: int = 0
    adopted: Mapping[str, str] = field(default_factory=dict)
    others: frozenset[int] = frozenset()


def decided_json(decided: Decided) -> dict[str, Any]:
    """A decided table as plain values; ``read_decided`` reads them."""
    return {
        "schema": json.loads(schema_json(decided.layout)),
        "last-column-id": decided.layout.last_id,
        "after": decided.after,
        "adopted": dict(sorted(decided.adopted.items())),
        "others": sorted(decided.others),
    }


def read_decided(document: Mapping[str, Any]) -> Decided:
    """The inverse of ``decided_json``."""
    layout = layout_of(json.dumps(document["schema"]), document["last-column-id"])
    others = frozenset(document["others"])
    return Decided(layout, document["after"], document["adopted"], others)


def written_columns(real: Layout, decided: Decided | None) -> tuple[Field, ...]:
    """The columns of a table to which the sink writes rows.

    It leaves out columns that somebody else has added, so that they keep their values. It keeps
    those that are NOT NULL, for which it refuses the rows.

    Args:
        real: The table's columns.
        decided: The decided table; None while that is not known.
    """
    if decided is None:
        return real.fields
    return tuple(
        each
        for each in real.fields
        if each.required
        or (decided.layout.field(each.name) is not None and each.id not in decided.others)
    )


def decided_after(
    decided: Decided, actions: Sequence[Action], real: Layout, history: History
) -> Decided:
    """The decided table after one more statement.

    Args:
        decided: Before it.
        actions: Of the statement; none that changes rows.
        real: The table's columns after the statement. An added column gets its id from there.
        history: The table's commits, for an adoption.
    """
    layout = decided.layout
    match actions:
        case [Adoption() as adoption]:
            return _adopted(decided, adoption, real, history)
        case [ColumnAddition(column=column)]:
            there, known = real.field(column.name), layout.field(column.name)
            if known is None:
                added = field_of(column, real.last_id if there is None else there.id)
                layout = replace(layout, fields=(*layout.fields, added))
            else:
                decided = replace(decided, others=decided.others - {known.id})
        case [ColumnRemoval(name=name)]:
            fields = tuple(f for f in layout.fields if f.name.lower() != name.lower())
            layout = replace(layout, fields=fields)
        case _:
            # A statement that was executed before may not apply any more: it changes nothing.
            with suppress(UnsupportedDDL):
                layout = layout_after(layout, actions)
    return replace(decided, layout=replace(layout, last_id=max(layout.last_id, real.last_id)))


def _adopted(decided: Decided, adoption: Adoption, real: Layout, history: History) -> Decided:
    """The decided table with a part as the table has it now, if that is what was adopted."""
    subject = adoption.subject
    if subject in HISTORY_SUBJECTS:
        adopted = {**decided.adopted, subject: adoption.definition}
        return replace(decided, adopted=adopted)
    _, found = states(decided, real, history)
    if part_text(found.parts().get(subject)) != adoption.definition:
        return decided
    kind, _, name = subject.partition(":")
    if kind == IDENTIFIER:
        return replace(decided, layout=replace(decided.layout, identifiers=real.identifiers))
    if (there := real.field(name)) is None:
        return decided
    before = decided.layout.fields
    named = decided.layout.field(name)
    if named is None:
        layout = replace(decided.layout, fields=(*before, there))
        return replace(decided, layout=layout, others=decided.others | {there.id})
    fields = tuple(there if each is named else each for each in before)
    return replace(decided, layout=replace(decided.layout, fields=fields))


def states(
    decided: Decided, real: Layout, history: History, kept: Mapping[str, str] | None = None
) -> tuple[TableState, TableState]:
    """The decided table and the found one, for ``schemas.target.drift.differences``.

    Args:
        decided: The decided table.
        real: The table's columns.
        history: The table's commits.
        kept: Subject → text of known differences of the history. They count as found when the
            snapshots that showed them are gone.
    """
    others = _other_columns(decided.layout, real)
    wanted = {subject: text for subject, text in decided.adopted.items() if text}
    seen = {
        ROWS: last_of_others(history, decided.after),
        ROLLBACK: taken_back(history, decided.after),
    }
    there: dict[str, str] = {}
    for subject, text in seen.items():
        # Without a trace of its own, the history is as it was left.
        there[subject] = text or (kept or {}).get(subject, "") or wanted.get(subject, "")
    expected = _state(decided.layout, {k: each for k, (each, _) in others.items()}, wanted)
    return expected, _state(real, {k: each for k, (_, each) in others.items()}, there)


def _other_columns(decided: Layout, real: Layout) -> dict[str, tuple[OtherColumn, OtherColumn]]:
    """Subject → decided and found column, where a name now belongs to another column."""
    found = {}
    for wanted in decided.fields:
        there = real.field(wanted.name)
        if there is not None and there.id != wanted.id:
            found[f"column:{wanted.name.lower()}"] = (
                _other_column(wanted),
                _other_column(there),
            )
    return found


def _other_column(column: Field) -> OtherColumn:
    return OtherColumn(f"{definition(column)}, field {column.id}", column.required)


def _state(
    layout: Layout, others: Mapping[str, OtherColumn], texts: Mapping[str, str]
) -> TableState:
    columns: list[Column] = []
    apart: dict[str, str | OtherColumn] = dict(texts)
    for each in layout.fields:
        kind = type_of(spark_name(each.type))
        if kind is None:
            apart[f"column:{each.name.lower()}"] = _other_column(each)
        else:
            default = None if each.required else NULL_DEFAULT
            columns.append(Column(each.name, kind, not each.required, default))
    names = {f.id: quote_identifier(f.name) for f in layout.fields}
    key = ", ".join(names.get(number, str(number)) for number in layout.identifiers)
    if key:
        apart[IDENTIFIER] = f"({key})"
    return TableState(TableSchema(tuple(columns)), {**apart, **others})


def part_text(part: Part | None) -> str:
    """A part as Spark shows it."""
    return column_text(part) if isinstance(part, Column) else text_of(part)


def definition(column: Field) -> str:
    """A column as Spark shows it, without its comment."""
    text = f"{quote_identifier(column.name)} {spark_name(column.type)}"
    return f"{text}{' NOT NULL' if column.required else ''}"
