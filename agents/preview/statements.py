"""What a target's statement waits for, and which values it loses. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from shardmerge.agents.coordination.state.target_state import TargetState
from shardmerge.agents.holds.shapes import Reason
from shardmerge.schemas.model.actions import ColumnChange, ColumnRemoval, RowRemoval, TypeChange
from shardmerge.schemas.model.types import ColumnType
from shardmerge.schemas.records.decisions import StatementKind, TargetStatement

from .shapes import ShownStatement

_EARLIER = "every live shard's rows from before its latest change"


def shown_statement(statement: TargetStatement, before: TargetState | None) -> ShownStatement:
    """A statement as it is shown.

    Args:
        statement: Of a decision.
        before: The target's state before the decision.
    """
    return ShownStatement(
        statement.sql,
        statement.kind.value,
        waits_for(statement),
        "; ".join(_lost(statement, before)),
        Reason(statement.code, statement.reason) if statement.reason else None,
    )


def waits_for(statement: TargetStatement) -> str:
    """Which rows a statement waits for, and which wait for it; see the joined schema's page."""
    match statement.kind:
        case StatementKind.EXPANDING:
            return "nothing; the shard's rows behind the change wait for it"
        case StatementKind.CONTRACTING:
            return f"{_EARLIER}; no row waits for it"
        case StatementKind.SWITCHING:
            return f"{_EARLIER}; later rows wait for it"
        case StatementKind.ROWS:
            if statement.shard is None:
                return f"{_EARLIER}; no row waits for it"
            return f"the rows of {statement.shard} before the change; its later rows wait for it"


def _lost(statement: TargetStatement, before: TargetState | None) -> Iterator[str]:
    for action in statement.actions:
        match action:
            case ColumnRemoval(name):
                yield f"the values of column {name} are gone"
            case RowRemoval(of):
                yield "rows are deleted" if of else "all rows are deleted"
            case TypeChange(name, kind):
                yield from _narrowed(statement, before, name, kind)
            case ColumnChange(name, column):
                yield from _narrowed(statement, before, name, column.type)
            case _:
                pass


def _narrowed(
    statement: TargetStatement, before: TargetState | None, name: str, kind: ColumnType
) -> Iterator[str]:
    """What is lost when a column's new type accepts fewer values, or other ones."""
    schema = before.schema if before else None
    known = schema.column(name) if schema else None
    narrows = statement.kind in (StatementKind.CONTRACTING, StatementKind.SWITCHING)
    if narrows and known is not None and known.type != kind:
        yield f"values of column {name} that its new type does not hold are gone"
