from __future__ import annotations

from dataclasses import replace

import pytest

from shardmerge.agents.holds.answers import Answers, fingerprint
from shardmerge.schemas.records.decisions import Outcome
from shardmerge.schemas.records.operator_commands import CommandKind, OperatorCommand
from shardmerge.schemas.records.schema_changes import ChangeId
from tests.example_pages import ORDERS, example, orders, pipeline

SCHEMA = (
    "CREATE TABLE x (id INT PRIMARY KEY, customer VARCHAR(80) NOT NULL, total INT NOT NULL, "
    "note VARCHAR(200), secret VARCHAR(20), created DATETIME, level INT)"
)


def said(kind: CommandKind, argument: str = "") -> OperatorCommand:
    return OperatorCommand(ChangeId("shop.commands", 0), ORDERS, kind, orders(7), argument)


@pytest.mark.parametrize(
    "command",
    [
        said(CommandKind.SKIP),
        said(CommandKind.LEAVE),
        said(CommandKind.REPLACE, "ALTER TABLE x ADD COLUMN level INT"),
        said(CommandKind.SET_SCHEMA, SCHEMA),
        said(CommandKind.UNLOCK_EXECUTE),
    ],
    ids=lambda command: command.kind.value,
)
def test_the_answer_is_what_the_coordinator_then_decides(command):
    line = example()
    answer = Answers(pipeline(), line.state.targets[ORDERS]).answer_to(command)
    assert answer is not None
    line.send(replace(command, id=ChangeId("shop.commands", 2**61 + 100)))
    target = line.view.target(str(ORDERS))
    assert target is not None
    decided = target.decisions[0]
    assert decided.version == answer.version
    assert fingerprint(decided) == fingerprint(answer)


def test_a_schema_that_cannot_be_read_is_refused():
    answers = Answers(pipeline(), example().state.targets[ORDERS])
    answer = answers.answer_to(said(CommandKind.SET_SCHEMA, "DROP TABLE x"))
    assert answer is not None
    assert (answer.outcome, answer.code) == (Outcome.REFUSED, "SM-1310")


def test_answers_that_do_something_else_have_another_fingerprint():
    answers = Answers(pipeline(), example().state.targets[ORDERS])
    skip = answers.answer_to(said(CommandKind.SKIP))
    leave = answers.answer_to(said(CommandKind.LEAVE))
    assert skip is not None
    assert leave is not None
    assert fingerprint(skip) != fingerprint(leave)
    assert fingerprint(replace(skip, version=99, ts_ms=5)) == fingerprint(skip)
    assert fingerprint(replace(skip, warnings=("x",))) != fingerprint(skip)
