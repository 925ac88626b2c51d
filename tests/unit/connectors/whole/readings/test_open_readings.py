"""Which shards have to be read as a whole."""

from __future__ import annotations

import itertools
from typing import Any

from shardmerge.connectors.whole.readings.open_readings import OpenReadings, Wanted
from shardmerge.schemas.model.names import ShardId, TargetTable
from shardmerge.schemas.model.position import BEGINNING
from shardmerge.schemas.records.decisions import Decision, Fixup, FixupKind, Outcome
from shardmerge.schemas.records.operator_commands import CommandKind, OperatorCommand
from shardmerge.schemas.records.reloads import Reload
from shardmerge.schemas.records.schema_changes import ChangeId

TARGET, OTHER = TargetTable("m", "t"), TargetTable("m", "u")
A, B = ShardId("s1", "app", "t"), ShardId("s2", "app", "t")
COMMANDS = "p.commands"


def decision(
    version: int,
    change: ChangeId | None = None,
    *,
    shard: ShardId | None = None,
    target: TargetTable | None = TARGET,
    outcome: Outcome = Outcome.EMIT,
    **more: Any,
) -> Decision:
    id_ = change or ChangeId("s1", version)
    return Decision(id_, target, version, shard, BEGINNING, outcome, **more)


def asking(version: int, *shards: ShardId, kind: FixupKind = FixupKind.WHOLE) -> Decision:
    fixups = tuple(Fixup(shard, kind, ("c",), "no key") for shard in shards)
    return decision(version, shard=A, fixups=fixups)


def reloads(*shards: ShardId) -> tuple[Reload, ...]:
    return tuple(Reload(shard, BEGINNING, 7) for shard in shards)


def command(target: TargetTable = TARGET, kind: CommandKind = CommandKind.RELOADED):
    return OperatorCommand(ChangeId(COMMANDS, 0), target, kind)


def folded(*records: Decision) -> OpenReadings:
    readings = OpenReadings(COMMANDS)
    for record in records:
        readings.take(record)
    return readings


def wanted(readings: OpenReadings) -> list[tuple[ShardId, int]]:
    return [(w.shard, w.version) for w in readings.wanted()]


def test_only_fix_ups_of_the_kind_whole_ask() -> None:
    others = [asking(n, A, kind=k) for n, k in enumerate(FixupKind, 1) if k is not FixupKind.WHOLE]
    assert folded(*others).wanted() == ()
    assert folded(asking(3, B, A)).wanted() == (Wanted(TARGET, A, 3), Wanted(TARGET, B, 3))


def test_a_later_decision_with_its_reload_answers_a_shard() -> None:
    assert wanted(folded(asking(3, A, B), decision(4, reloads=reloads(A)))) == [(B, 3)]
    assert wanted(folded(asking(3, A), decision(2, reloads=reloads(A)))) == [(A, 3)]
    of_other = decision(4, target=OTHER, reloads=reloads(A))
    assert wanted(folded(asking(3, A), of_other)) == [(A, 3)]


def test_a_decision_that_answers_a_shard_and_asks_again_leaves_it_open() -> None:
    both = decision(4, reloads=reloads(A), fixups=asking(4, A).fixups)
    assert wanted(folded(asking(3, A), both)) == [(A, 4)]


def test_a_shard_that_is_gone_or_taken_out_is_not_read() -> None:
    assert wanted(folded(asking(3, A, B), decision(4, shard=A, live=False))) == [(B, 3)]
    assert wanted(folded(asking(3, A, B), decision(4, leaves=(B,)))) == [(A, 3)]
    again = folded(asking(3, A), decision(4, shard=A, live=False), asking(6, A))
    assert wanted(again) == [(A, 6)]


def test_the_last_decision_that_asks_counts() -> None:
    assert wanted(folded(asking(3, A), asking(5, A))) == [(A, 5)]


def test_neither_order_nor_repetition_matters() -> None:
    records = [
        asking(1, A, B),
        decision(2, reloads=reloads(A, B)),
        asking(3, A),
        decision(4, shard=B, live=False),
    ]
    for order in itertools.permutations(records):
        assert wanted(folded(*order, *order[:2])) == [(A, 3)]


def test_nothing_of_a_target_is_read_while_its_command_is_unanswered() -> None:
    readings = folded(asking(3, A))
    readings.take_command(7, command(OTHER))
    readings.take_command(8, command(TARGET, CommandKind.REREAD))
    assert wanted(readings) == [(A, 3)]
    readings.take_command(9, command())
    assert wanted(readings) == []
    assert readings.unanswered() == {7: OTHER, 9: TARGET}
    readings.take(
        decision(4, ChangeId(COMMANDS, 9), outcome=Outcome.REFUSED, reason="it was changed")
    )
    assert wanted(readings) == [(A, 3)]
    assert (readings.refused(9), readings.refused(7)) == ("it was changed", None)


def test_an_answer_that_is_read_before_its_command_counts() -> None:
    readings = folded(asking(3, A), decision(4, ChangeId(COMMANDS, 9), reloads=reloads(A)))
    readings.take_command(9, command())
    assert readings.unanswered() == {}
    assert readings.wanted() == ()


def test_a_schema_change_is_decided_when_all_its_decisions_are_there() -> None:
    readings = folded(decision(1, ChangeId("s1", 5, 0, 2)))
    assert not readings.is_decided("s1", 5)
    readings.take(decision(1, ChangeId("s1", 5, 0, 2)))
    assert not readings.is_decided("s1", 5)
    readings.take(decision(0, ChangeId("s1", 5, 1, 2), target=None, outcome=Outcome.IGNORED))
    assert readings.is_decided("s1", 5)
    assert not readings.is_decided("s2", 5)
