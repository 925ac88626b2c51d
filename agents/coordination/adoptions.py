"""The command ``adopt``: a change by hand on the target counts as decided from then on. Pure.

The coordinator does not see the target's table, so the command contains each changed definition.
The decision has a statement for each of them. The sink executes no SQL for such a statement. It
notes in its journal that the changed definition is the decided one. So a replay of the log shows
when it was adopted, and by whom.
"""

from __future__ import annotations

from shardmerge.agents.coordination.state.target_state import TargetState
from shardmerge.schemas.model.actions import Adoption
from shardmerge.schemas.model.errors import ContractError
from shardmerge.schemas.records.decisions import StatementKind, TargetStatement
from shardmerge.schemas.records.drift import Adoptions
from shardmerge.schemas.records.operator_commands import OperatorCommand
from shardmerge.schemas.target.drift import checked_adoption

from .decision_records import Step, obeyed, refuse, with_statement
from .identities import known_names
from .target_moves import Refusal, Settled, unmoved


def adopt(state: TargetState, command: OperatorCommand) -> Step:
    """Decide what the command adopts, or refuse the command."""
    if state.schema is None:
        why = Refusal(
            f"nothing was decided about a table {state.target}",
            "adopt changes on a table that this pipeline has made",
            code="SM-6808",
        )
        return refuse(state, command, why)
    try:
        adoptions = Adoptions.read(command.argument).adoptions
        statements = [_statement(checked_adoption(each)) for each in adoptions]
    except ContractError as error:
        why = Refusal(
            error.message, "make the command with `shardmerge drift adopt`", code="SM-6808"
        )
        return refuse(state, command, why)
    step = obeyed(state, command, Settled(state, unmoved(state, known_names(state)), {}))
    for statement in statements:
        step = with_statement(step, statement)
    return step


def _statement(adoption: Adoption) -> TargetStatement:
    """The statement that notes an adoption.

    It has a subject of its own. With the part's subject it would wait for the statement that is
    refused because of this very difference, or it would make a debt void.
    """
    what = adoption.definition or "nothing"
    return TargetStatement(
        sql=f"adopt {adoption.subject} as {what}",
        kind=StatementKind.EXPANDING,
        reason=f"an operator adopted the change by hand of {adoption.subject}",
        subjects=(f"adoption:{adoption.subject}",),
        actions=(adoption,),
        code="SM-6807",
    )
