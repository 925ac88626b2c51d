from __future__ import annotations

from dataclasses import replace

from shardmerge.agents.status import command_log
from shardmerge.agents.status.command_log import CommandLog
from shardmerge.schemas.records.decisions import Outcome
from shardmerge.schemas.records.operator_commands import CommandKind, OperatorCommand
from shardmerge.schemas.records.schema_changes import ChangeId
from tests.example_pages import ITEMS, ORDERS, example, orders

SAID = OperatorCommand(ChangeId("shop.commands", 7), ORDERS, CommandKind.SKIP, orders(7))


def answer(offset: int):
    target = example().view.target(str(ORDERS))
    assert target is not None
    return replace(target.decisions[0], id=ChangeId("shop.commands", offset))


def test_a_command_has_its_answer_whichever_came_first():
    for answer_first in (True, False):
        log = CommandLog()
        if answer_first:
            log.add_answer(answer(7))
        log.add_command(SAID)
        if not answer_first:
            assert log.of(ORDERS)[0].answer is None
            log.add_answer(answer(7))
        [found] = log.of(ORDERS)
        assert found.command == SAID
        assert found.answer == answer(7)


def test_commands_are_those_of_the_target_newest_first():
    log = CommandLog()
    for offset in (3, 9, 5):
        log.add_command(replace(SAID, id=ChangeId("shop.commands", offset)))
    log.add_command(replace(SAID, id=ChangeId("shop.commands", 6), target=ITEMS))
    assert [each.command.id.offset for each in log.of(ORDERS)] == [9, 5, 3]
    assert [each.command.id.offset for each in log.of(ITEMS)] == [6]


def test_a_decision_about_a_schema_change_is_no_answer(monkeypatch):
    monkeypatch.setattr(command_log, "MAX_COMMANDS", 1)
    log = CommandLog()
    log.add_command(SAID)
    log.add_answer(answer(7))
    log.add_answer(replace(answer(8), id=ChangeId("s1", 99)))
    assert log.of(ORDERS)[0].answer is not None


def test_the_oldest_commands_are_dropped(monkeypatch):
    monkeypatch.setattr(command_log, "MAX_COMMANDS", 2)
    log = CommandLog()
    for offset in (1, 2, 3):
        log.add_command(replace(SAID, id=ChangeId("shop.commands", offset)))
        log.add_answer(answer(offset))
    assert [each.command.id.offset for each in log.of(ORDERS)] == [3, 2]


def test_a_refused_or_unanswered_switch_does_not_count():
    log = CommandLog()
    for offset, kind in enumerate((CommandKind.DISABLE, CommandKind.ENABLE, CommandKind.ENABLE)):
        log.add_command(OperatorCommand(ChangeId("shop.commands", offset), ORDERS, kind))
    assert log.disabled(ORDERS) is None
    for offset, outcome in ((1, Outcome.REFUSED), (0, Outcome.NOOP)):
        log.add_answer(replace(answer(offset), outcome=outcome))
    found = log.disabled(ORDERS)
    assert found is not None
    assert found.command.id.offset == 0
    assert log.disabled(ITEMS) is None
    log.add_answer(replace(answer(2), outcome=Outcome.EMIT))
    assert log.disabled(ORDERS) is None
