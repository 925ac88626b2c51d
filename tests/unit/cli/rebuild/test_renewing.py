"""Whether a rebuild's table has been put in its target's place, as the topics say."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from shardmerge.cli.rebuild import renewing
from shardmerge.cli.rebuild.renewing import renewal_of
from shardmerge.cli.views.picture import Decided, Picture
from shardmerge.schemas.model.errors import StackError
from shardmerge.schemas.model.origin import NO_ORIGIN
from shardmerge.schemas.model.position import BEGINNING
from shardmerge.schemas.pipeline import topics
from shardmerge.schemas.records.decisions import Decision, Outcome
from shardmerge.schemas.records.operator_commands import CommandKind, OperatorCommand, Renewal
from shardmerge.schemas.records.schema_changes import ChangeId
from tests.example_pages import pipeline
from tests.unit.spark_sink.rebuilding.test_rebuild_record import RECORD, TARGET

PIPELINE = pipeline()
COMMANDS = topics.commands(PIPELINE).name


def command(offset: int, rebuild: int) -> OperatorCommand:
    argument = str(Renewal(rebuild, 40, NO_ORIGIN))
    return OperatorCommand(ChangeId(COMMANDS, offset), TARGET, CommandKind.RENEW, None, argument)


def answer(offset: int, outcome: Outcome) -> Decision:
    return Decision(ChangeId(COMMANDS, offset), TARGET, offset, None, BEGINNING, outcome)


def picture(commands: list[OperatorCommand], *answers: Decision) -> Picture:
    decided = tuple(Decided.of(each, 0) for each in answers)
    return Picture(PIPELINE, 0, decided, {}, {}, {each.id.offset: each for each in commands})


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[Picture]:
    """What the topics say, one look after the other; the last look is repeated."""
    found: list[Picture] = []

    def looks() -> Iterator[Picture]:
        yield from found
        while True:
            yield found[-1]

    each = looks()
    monkeypatch.setattr(renewing, "picture_of", lambda _: next(each))
    monkeypatch.setattr(renewing, "_PAUSE_S", 0.0)
    return found


def test_without_a_command_of_this_rebuild_nothing_is_decided(seen: list[Picture]) -> None:
    seen.append(picture([command(5, RECORD.number - 1)], answer(5, Outcome.EMIT)))
    assert renewal_of(PIPELINE, RECORD) is None


def test_a_refused_command_decides_nothing(seen: list[Picture]) -> None:
    seen.append(picture([command(5, RECORD.number)], answer(5, Outcome.REFUSED)))
    assert renewal_of(PIPELINE, RECORD) is None


def test_a_command_that_is_not_answered_yet_is_waited_for(seen: list[Picture]) -> None:
    given = [command(5, RECORD.number), command(6, RECORD.number)]
    refused, decided = answer(5, Outcome.REFUSED), answer(6, Outcome.EMIT)
    seen += [picture(given, refused), picture(given, refused, decided)]
    assert renewal_of(PIPELINE, RECORD) == decided


def test_without_agents_the_call_ends(seen: list[Picture], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(renewing, "_ANSWER_S", -1.0)
    seen.append(picture([command(5, RECORD.number)]))
    with pytest.raises(StackError, match="not answered") as raised:
        renewal_of(PIPELINE, replace(RECORD, origin=NO_ORIGIN))
    assert raised.value.code == "SM-6525"
