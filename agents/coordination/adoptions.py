"""The command ``adopt``: what somebody changed on the target by hand counts as decided. Pure.

The coordinator does not see the target's table. The command says what was found there, and the
decision orders a statement for each part. The sink executes nothing for it: it notes in its journal
that the part is wanted. So a replay of the log shows when, and at whose order, that was decided.
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
    """Carry out the command, or refuse it."""
    if state.schema is None:
        why = Refusal(
            f"nothing was decided about a table {state.target}",
            "adopt what is changed on a table of a pipeline",
            code="SM-6808",
        )
        return refuse(state, command, why)
    try:
        adoptions = Adoptions.read(command.argument).adoptions
        statements = [_statement(checked_adoption(each)) for each in adoptions]
    except ContractError as error:
        why = Refusal(error.message, "adopt it with `shardmerge drift adopt`", code="SM-6808")
        return refuse(state, command, why)
    step = obeyed(state, command, Settled(state, unmoved(state, known_names(state)), {}))
    for statement in statements:
        step = with_statement(step, statement)
    return step


def _statement(adoption: Adoption) -> TargetStatement:
    """The statement that notes an adoption.

    Its subject is its own: it must neither wait for a statement that is refused because of the
    difference, nor make a debt void.
    """
    what = adoption.definition or "nothing"
    return TargetStatement(
        sql=f"adopt {adoption.subject} as {what}",
        kind=StatementKind.EXPANDING,
        reason=f"an operator wants {adoption.subject} as somebody made it by hand",
        subjects=(f"adoption:{adoption.subject}",),
        actions=(adoption,),
        code="SM-6807",
    )
