"""Checks that a topic has only the kinds of records that belong into it. Pure."""

from __future__ import annotations

from shardmerge.schemas.model.errors import ContractError

from .decisions import Decision
from .operator_commands import OperatorCommand
from .schema_changes import SchemaChange


def decision_of(record: object, place: str) -> Decision:
    """A record of the ddl topic.

    Args:
        record: As it was read.
        place: Where it stands, for the error.

    Raises:
        ContractError: The record is no decision.
    """
    if isinstance(record, Decision):
        return record
    raise _misplaced(record, place, "the ddl topic holds decisions, and only the agents write them")


def command_of(record: object, place: str) -> OperatorCommand:
    """A record of the commands topic.

    Raises:
        ContractError: The record is no command.
    """
    if isinstance(record, OperatorCommand):
        return record
    raise _misplaced(record, place, "write commands with `shardmerge command`")


def logged_change(record: object, place: str) -> SchemaChange | OperatorCommand:
    """A record of the schema-log.

    Raises:
        ContractError: The record is neither a schema change nor a command.
    """
    if isinstance(record, (SchemaChange, OperatorCommand)):
        return record
    hint = "the schema-log holds schema changes and commands, and only the agents write them"
    raise _misplaced(record, place, hint)


def _misplaced(record: object, place: str, hint: str) -> ContractError:
    return ContractError(f"{place} is a {type(record).__name__}", hint=hint, code="SM-2105")
