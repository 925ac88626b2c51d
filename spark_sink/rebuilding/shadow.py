"""What is decided for a shadow table: the decisions of its target, from some version on. Pure.

A *shadow* is a table that is filled beside a target and then takes its place. A second sink applies
the target's decisions and rows to it. For this sink the decisions are told in another way:

* Up to the version at which the shadow was planned they set the same gates, but change nothing. The
  first of them creates the table as the target was then.
* Later ones are the target's own, with the shadow's name.
* Decisions about other targets count as decided, and concern nothing.

The versions stay the same, so each of the target's statements has the same place in both journals.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from shardmerge.schemas.model.actions import Adoption
from shardmerge.schemas.model.errors import ContractError
from shardmerge.schemas.model.names import TargetTable
from shardmerge.schemas.records.decisions import (
    Decision,
    Outcome,
    StatementKind,
    TargetStatement,
)
from shardmerge.schemas.target.dialects.dialect import Rendered
from shardmerge.spark_sink.barrier.decisions import StatementKey, TargetDecisions
from shardmerge.spark_sink.barrier.statements import bindings

_HEADS = frozenset({"CREATE TABLE ", "ALTER TABLE ", "UPDATE ", "DELETE FROM "})
"""What stands before the target's name, in every text that a decision can have."""


@dataclass(frozen=True, slots=True)
class Shadow:
    """A table that is to take the place of a target.

    Attributes:
        target: The target.
        table: The shadow. It has the target's table name in a database of its own: the names of
            CHECK constraints are unique in a database, and RENAME TABLE keeps them.
        version: Of the target's latest decision when the shadow was planned.
        creation: The statements that make the shadow as the target was after that decision.
    """

    target: TargetTable
    table: TargetTable
    version: int
    creation: tuple[TargetStatement, ...]


def creation_of(
    known: TargetDecisions,
    executed: Collection[StatementKey],
    rendered: Sequence[Rendered],
) -> tuple[TargetStatement, ...]:
    """The first statements of a shadow.

    Args:
        known: Everything decided for the target.
        executed: Its executed statements; they must be all that are decided.
        rendered: The texts that create the shadow.
    """
    binds = tuple(bindings(known, executed).values())
    why = f"{known.target} is rebuilt"
    return tuple(
        TargetStatement(
            each.sql,
            StatementKind.EXPANDING,
            why,
            ("table",),
            # The bindings become true when the last statement is executed.
            binds if place == len(rendered) else (),
            actions=each.actions,
            code="SM-1901",
        )
        for place, each in enumerate(rendered, 1)
    )


def shadow_decision(decision: Decision, shadow: Shadow) -> Decision:
    """A decision as the shadow's sink has to read it.

    Raises:
        ContractError: A statement has a text that names the target at another place than at its
            beginning.
    """
    if decision.target != shadow.target:
        return Decision(decision.id, None, 0, None, decision.position, Outcome.IGNORED)
    if decision.version > shadow.version:
        statements = tuple(for_shadow(statement, shadow) for statement in decision.statements)
        return replace(decision, target=shadow.table, statements=statements)
    # The rows that earlier fix-ups were about are loaded from the shards.
    made = shadow.creation if decision.version == 1 else ()
    return replace(decision, target=shadow.table, statements=made, fixups=())


def for_shadow(statement: TargetStatement, shadow: Shadow) -> TargetStatement:
    """A statement of the target as it is executed on the shadow.

    Raises:
        ContractError: See ``shadow_decision``.
    """
    head, name, rest = statement.sql.partition(shadow.target.sql)
    if name and head in _HEADS:
        return replace(statement, sql=f"{head}{shadow.table.sql}{rest}")
    if any(isinstance(action, Adoption) for action in statement.actions):
        return statement  # nothing is executed
    raise ContractError(
        f"a statement of {shadow.target} cannot be executed on its shadow: {statement.sql}",
        hint="end the rebuild with --abort, and report this text",
        code="SM-6512",
    )
