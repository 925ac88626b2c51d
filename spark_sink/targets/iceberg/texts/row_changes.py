"""MERGEs for statements that change rows of an Iceberg table without row events. Pure.

A MERGE can be staged, so that its rows and the sink's state are one commit; see ``staging``. In
its text the table is ``t``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from shardmerge.schemas.model.actions import Action, ColumnText, RowFill, RowRemoval, ValueMove
from shardmerge.schemas.model.errors import UnsupportedDDL
from shardmerge.schemas.model.names import quote_identifier
from shardmerge.schemas.target.dialects.spark_rows import string_literal


def merge_sql(name: str, actions: Sequence[Action]) -> str:
    """The MERGE with the effect of a statement.

    Args:
        name: The table's quoted name in its catalog.
        actions: Of the statement.

    Raises:
        UnsupportedDDL: The actions are no change of rows that is used for Iceberg tables.
    """
    match actions:
        case [RowRemoval() as action]:
            condition, then = _removed(action), "DELETE"
        case [RowFill() as action]:
            condition, then = _unfilled(action), f"UPDATE SET {_filled(action)}"
        case [ValueMove() as action]:
            condition, then = _movable(action), f"UPDATE SET {_moved(action)}"
        case []:
            raise UnsupportedDDL("what the statement does is not known", code="SM-3109")
        case _:
            names = ", ".join(type(action).__name__ for action in actions)
            raise UnsupportedDDL(f"an Iceberg table's rows get no {names}", code="SM-3109")
    head = f"MERGE INTO {name} t USING (SELECT 1) s ON {condition}"
    return f"{head} WHEN MATCHED THEN {then}"


def _removed(action: RowRemoval) -> str:
    if not action.of:
        return "true"
    conditions = [_rows_of(shard) for shard in action.of]
    return conditions[0] if len(conditions) == 1 else " OR ".join(f"({c})" for c in conditions)


def _unfilled(action: RowFill) -> str:
    there = " AND ".join(f"{_column(v.name)} <=> {v.literal}" for v in action.values)
    return f"{_rows_of(action.of)} AND NOT ({there})"


def _filled(action: RowFill) -> str:
    return ", ".join(f"{_column(v.name)} = {v.literal}" for v in action.values)


def _movable(action: ValueMove) -> str:
    condition = f"{_column(action.name)} IS NOT NULL"
    return condition if action.overwrites else f"{_column(action.to)} IS NULL AND {condition}"


def _moved(action: ValueMove) -> str:
    # Both assignments read the row as it was before.
    moved = f"{_column(action.to)} = {_column(action.name)}"
    return f"{moved}, {_column(action.name)} = NULL" if action.overwrites else moved


def _rows_of(shard: Iterable[ColumnText]) -> str:
    return " AND ".join(f"{_column(c.name)} = {string_literal(c.text)}" for c in shard)


def _column(name: str) -> str:
    return f"t.{quote_identifier(name)}"
