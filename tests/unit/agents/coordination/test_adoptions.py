"""The command ``adopt``: recorded as a statement that executes nothing, or refused."""

from __future__ import annotations

import pytest

from shardmerge.schemas.model.actions import Adoption
from shardmerge.schemas.model.policies import Mode
from shardmerge.schemas.model.tables import Index, IndexKind, IndexPart
from shardmerge.schemas.records.decisions import Outcome, StatementKind
from shardmerge.schemas.records.drift import Adoptions
from shardmerge.schemas.records.operator_commands import CommandKind
from tests.unit.agents.sql_line import BASE, SqlLine

MORE = Index("more", IndexKind.PLAIN, (IndexPart("a"),))
ADOPTION = Adoption("index:more", "INDEX `more` (`a`)", index=MORE)
TRIGGER = Adoption("trigger:audit", "AFTER INSERT x")


def test_what_is_adopted_is_decided_and_nothing_else_moves() -> None:
    shards = SqlLine(Mode.OPTIMISTIC, "s0", "s1", create=BASE)
    before = shards.columns

    answer = shards.command(CommandKind.ADOPT, argument=str(Adoptions((ADOPTION, TRIGGER))))

    assert answer.outcome is Outcome.EMIT
    assert [statement.actions for statement in answer.statements] == [(ADOPTION,), (TRIGGER,)]
    assert {statement.kind for statement in answer.statements} == {StatementKind.EXPANDING}
    assert {statement.code for statement in answer.statements} == {"SM-6807"}
    assert answer.statements[0].subjects == ("adoption:index:more",)
    assert "an operator adopted the change by hand of index:more" in answer.reason
    assert (shards.columns, shards.held) == (before, [])


@pytest.mark.parametrize(
    "argument",
    [
        "",
        "{}",
        str(Adoptions(())),
        str(Adoptions((Adoption("index:more", "INDEX `more` (`b`)", index=MORE),))),
        str(Adoptions((Adoption("index:less", ADOPTION.definition, index=MORE),))),
        str(Adoptions((Adoption("table", ""),))),
        str(Adoptions((Adoption("column:a", "`a` int"),))),
    ],
)
def test_a_damaged_adoption_is_refused(argument: str) -> None:
    shards = SqlLine(Mode.OPTIMISTIC, "s0", create=BASE)

    answer = shards.command(CommandKind.ADOPT, argument=argument)

    assert (answer.outcome, answer.statements) == (Outcome.REFUSED, ())
    assert answer.code == "SM-6808"
    assert "shardmerge drift adopt" in answer.hint
