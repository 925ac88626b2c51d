"""What operators say: checked against the state, carried out, answered."""

from __future__ import annotations

import pytest

from shardmerge.agents.coordination import coordinator
from shardmerge.schemas.model.policies import Keyless, Mode, RenamePolicy
from shardmerge.schemas.records.decisions import FixupKind, Outcome, Release, StatementKind
from shardmerge.schemas.records.operator_commands import CommandKind, OperatorCommand
from shardmerge.schemas.records.schema_changes import ChangeId
from tests.unit.agents.sql_line import (
    BASE,
    SHARD_COLUMN,
    TARGET,
    SqlLine,
    in_conflict,
    shard_of,
    sql,
)

OF_NO_SHARD = (CommandKind.RELOADED, CommandKind.ADOPT, CommandKind.RENEW)


def under_a_lock() -> SqlLine:
    """Shard s0 has added ``c`` and ``d``, s1 has added ``c``, s2 nothing."""
    shards = SqlLine(Mode.PESSIMISTIC, "s0", "s1", "s2", create=BASE)
    shards.alter("s0", "ADD COLUMN c INT")
    shards.alter("s0", "ADD COLUMN d INT")
    shards.alter("s1", "ADD COLUMN c INT")
    return shards


def test_an_unreadable_change_is_left_by_telling_the_schema() -> None:
    shards = SqlLine(Mode.OPTIMISTIC, "s0", "s1", create=BASE)
    shards.unreadable("s1")
    assert shards.command(CommandKind.SKIP, "s1").outcome is Outcome.REFUSED

    answer = shards.command(
        CommandKind.SET_SCHEMA, "s1", "CREATE TABLE t (id INT PRIMARY KEY, a INT, x INT)"
    )

    assert answer.shard == shard_of("s1")
    assert answer.position == shards.decisions[2].position
    assert [column.id for column in answer.columns] == ["id#1", "a#1", "x#1"]
    assert sql(answer) == ["ADD COLUMN `x` int"]
    assert answer.released == (shard_of("s1"),)


def test_a_schema_that_cannot_be_read_is_refused() -> None:
    shards = SqlLine(Mode.OPTIMISTIC, "s0", "s1", create=BASE)
    shards.unreadable("s1")

    answer = shards.command(CommandKind.SET_SCHEMA, "s1", "CREATE TABLE t (id INT,")

    assert (answer.outcome, shards.held) == (Outcome.REFUSED, ["s1"])


def test_a_lock_is_executed_without_a_shard_that_will_never_make_it() -> None:
    shards = under_a_lock()

    answer = shards.command(CommandKind.UNLOCK_EXECUTE, "s1")

    assert sql(answer) == ["ADD COLUMN `c` int"]
    assert answer.releases == (Release(shard_of("s0"), 4), Release(shard_of("s1"), 6))
    assert shards.held == ["s0"]
    late = shards.alter("s2", "ADD COLUMN c INT")
    assert (late.outcome, late.statements) == (Outcome.NOOP, ())


def test_a_discarded_lock_leaves_the_target() -> None:
    shards = under_a_lock()

    answer = shards.command(CommandKind.UNLOCK_DISCARD, "s0")

    assert answer.statements == ()
    assert answer.released == (shard_of("s0"), shard_of("s1"))
    assert shards.held == ["s0"]
    assert shards.columns == ["a", "id"]
    shards.alter("s1", "ADD COLUMN d INT")
    assert sql(shards.alter("s2", "ADD COLUMN d INT")) == ["ADD COLUMN `d` int"]


def test_nothing_is_emitted_while_propagation_is_disabled_and_all_of_it_afterwards() -> None:
    shards = SqlLine(Mode.OPTIMISTIC, "s0", "s1", create=BASE)
    shards.command(CommandKind.DISABLE)

    added = shards.alter("s0", "ADD COLUMN b INT")
    renamed = [shards.alter(source, "RENAME COLUMN a TO z") for source in ("s0", "s1")]

    assert [d.outcome for d in (added, *renamed)] == [Outcome.NOOP] * 3
    assert "ADD COLUMN `b`" in added.warnings[0]
    assert shards.columns == ["a", "id"]
    answer = shards.command(CommandKind.ENABLE)
    assert sorted(sql(answer)) == ["ADD COLUMN `b` int", "RENAME COLUMN `a` TO `z`"] or sorted(
        sql(answer)
    ) == ["ADD COLUMN `b` int", "CHANGE COLUMN `a` `z` int"]
    assert shards.columns == ["b", "id", "z"]


def test_a_shard_is_paused_and_resumed_once() -> None:
    shards = SqlLine(Mode.OPTIMISTIC, "s0", "s1", create=BASE)

    answers = [
        shards.command(kind, "s1")
        for kind in (CommandKind.PAUSE, CommandKind.PAUSE, CommandKind.RESUME, CommandKind.RESUME)
    ]

    assert [a.pauses for a in answers] == [(shard_of("s1"),), (), (), ()]
    assert [a.resumes for a in answers] == [(), (), (shard_of("s1"),), ()]
    assert [a.outcome for a in answers] == [Outcome.NOOP, Outcome.REFUSED] * 2


def test_a_shard_that_is_taken_out_counts_no_more_until_it_changes_again() -> None:
    shards = SqlLine(Mode.OPTIMISTIC, "s0", "s1", create=BASE)
    shards.alter("s1", "ADD COLUMN b INT")

    answer = shards.command(CommandKind.LEAVE, "s1")
    again = shards.command(CommandKind.LEAVE, "s1")

    assert sql(answer) == ["DROP COLUMN `b`"]
    assert (answer.leaves, answer.shard) == ((shard_of("s1"),), None)
    assert answer.warnings[0].startswith("rows of s1/")
    assert "no live shard" in again.reason
    assert set(shards.state.shards) == {shard_of("s0")}
    # It speaks again: a shard as on its first day.
    back = shards.alter("s1", "ADD COLUMN c INT")
    assert sorted(sql(back)) == ["ADD COLUMN `b` int", "ADD COLUMN `c` int"]
    assert "taken out" in back.warnings[0]
    assert set(shards.state.shards) == {shard_of("s0"), shard_of("s1")}
    assert set(shards.columns) == {"id", "a", "b", "c"}


def test_the_others_go_on_without_the_shard_that_is_taken_out() -> None:
    shards = SqlLine(Mode.PESSIMISTIC, "s0", "s1", "s2", create=BASE)
    shards.alter("s0", "ADD COLUMN b INT")
    last = shards.alter("s1", "ADD COLUMN b INT")
    assert last.outcome is Outcome.HOLD

    answer = shards.command(CommandKind.LEAVE, "s2")

    assert sql(answer) == ["ADD COLUMN `b` int"]
    assert set(answer.released) == {shard_of("s0"), shard_of("s1")}


def test_a_shard_is_taken_out_only_as_its_rows_allow() -> None:
    plain = SqlLine(Mode.OPTIMISTIC, "s0", "s1", create=BASE)
    unknown = plain.command(CommandKind.LEAVE, "s1", "all")
    alike = plain.command(CommandKind.LEAVE, "s1", "delete")
    assert [a.outcome for a in (unknown, alike)] == [Outcome.REFUSED] * 2
    assert "cannot be told from others" in alike.reason
    assert set(plain.state.shards) == {shard_of("s0"), shard_of("s1")}


def test_a_held_shard_can_be_taken_out_and_comes_back_with_its_next_change() -> None:
    shards = in_conflict()

    answer = shards.command(CommandKind.LEAVE, "s1")

    assert (answer.leaves, answer.released) == ((shard_of("s1"),), (shard_of("s1"),))
    assert "its rows after that are passed over" in answer.warnings[0]
    assert shards.held == []
    assert shards.alter("s1", "MODIFY a INT").outcome is Outcome.NOOP


def test_the_rows_of_a_shard_that_is_taken_out_go_where_they_are_known() -> None:
    shards = SqlLine(Mode.OPTIMISTIC, "s0", "s1", create=BASE, origin=SHARD_COLUMN)

    answer = shards.command(CommandKind.LEAVE, "s1", "delete")

    assert [s.kind for s in answer.statements] == [StatementKind.ROWS]
    assert answer.leaves == (shard_of("s1"),)


def test_the_mode_is_set_until_it_is_unset() -> None:
    shards = SqlLine(Mode.OPTIMISTIC, "s0", "s1", create=BASE)

    shards.command(CommandKind.SET_MODE, argument="pessimistic")
    assert shards.alter("s0", "ADD COLUMN b INT").outcome is Outcome.HOLD
    freed = shards.command(CommandKind.SET_MODE, argument="optimistic")
    assert sql(freed) == ["ADD COLUMN `b` int"]
    assert freed.released == (shard_of("s0"),)
    assert shards.command(CommandKind.SET_MODE, argument="brave").outcome is Outcome.REFUSED
    shards.command(CommandKind.SET_MODE)
    assert shards.alter("s1", "ADD COLUMN e INT").outcome is Outcome.EMIT


def test_a_policy_is_set_until_it_is_unset() -> None:
    shards = SqlLine(Mode.OPTIMISTIC, "s0", "s1", create=BASE)

    assert shards.command(CommandKind.SET_POLICY, argument="renames=hold").outcome is Outcome.NOOP
    assert shards.alter("s0", "RENAME COLUMN a TO z").outcome is Outcome.HOLD
    freed = shards.command(CommandKind.SET_POLICY, argument="renames=map")
    assert freed.released == (shard_of("s0"),)
    shards.command(CommandKind.SET_POLICY, argument="renames=")
    shards.renames = RenamePolicy.HOLD
    assert shards.alter("s1", "RENAME COLUMN id TO i").outcome is Outcome.HOLD


def test_a_policy_that_is_unset_is_at_once_as_the_route_says() -> None:
    shards = SqlLine(Mode.OPTIMISTIC, "s0", "s1", create=BASE)
    for argument in ("renames=copy", "keyless=refuse", "renames=hold"):
        shards.command(CommandKind.SET_POLICY, argument=argument)
    assert shards.alter("s0", "RENAME COLUMN a TO z").outcome is Outcome.HOLD

    freed = shards.command(CommandKind.SET_POLICY, argument="renames=")

    assert freed.released == (shard_of("s0"),)
    assert freed.warnings == ()
    policies = shards.state.policies
    assert (policies.renames, policies.keyless) == (RenamePolicy.MAP, Keyless.REFUSE)
    shards.command(CommandKind.SET_POLICY, argument="keyless=")
    assert shards.state.policies.keyless is Keyless.COUNT


def test_a_policy_that_is_unset_is_as_the_route_said_last() -> None:
    shards = SqlLine(Mode.OPTIMISTIC, "s0", "s1", create=BASE)
    shards.command(CommandKind.SET_POLICY, argument="renames=map")
    shards.renames = RenamePolicy.HOLD
    assert shards.alter("s0", "RENAME COLUMN a TO z").outcome is Outcome.EMIT

    shards.command(CommandKind.SET_POLICY, argument="renames=")

    assert shards.state.policies.renames is RenamePolicy.HOLD


def test_a_policy_that_was_not_set_stays_as_it_is_when_it_is_unset() -> None:
    shards = SqlLine(Mode.OPTIMISTIC, "s0", create=BASE)
    shards.command(CommandKind.SET_POLICY, argument="renames=hold")

    answer = shards.command(CommandKind.SET_POLICY, argument="keyless=")

    assert (answer.outcome, answer.warnings) == (Outcome.NOOP, ())
    assert shards.state.policies.renames is RenamePolicy.HOLD


def test_the_mode_that_is_unset_is_at_once_as_the_route_says() -> None:
    free = SqlLine(Mode.OPTIMISTIC, "s0", "s1", create=BASE)
    free.command(CommandKind.SET_MODE, argument="pessimistic")
    free.alter("s0", "ADD COLUMN b INT")
    freed = free.command(CommandKind.SET_MODE)
    assert (sql(freed), freed.released) == (["ADD COLUMN `b` int"], (shard_of("s0"),))

    locked = SqlLine(Mode.PESSIMISTIC, "s0", "s1", create=BASE)
    locked.command(CommandKind.SET_MODE, argument="optimistic")
    locked.alter("s1", "MODIFY a DATE")
    locked.command(CommandKind.SET_MODE)
    assert locked.state.policies.mode is Mode.PESSIMISTIC
    assert len(locked.state.heads) == 1
    assert locked.alter("s0", "MODIFY a DATE").released == (shard_of("s1"),)


def test_the_rows_of_a_dropped_shard_go_as_the_policy_was_set() -> None:
    shards = SqlLine(Mode.OPTIMISTIC, "s0", "s1", "s2", create=BASE, origin=SHARD_COLUMN)
    shards.command(CommandKind.SET_POLICY, argument="on_drop=delete")
    assert [s.kind for s in shards.drop("s1").statements] == [StatementKind.ROWS]
    shards.command(CommandKind.SET_POLICY, argument="on_drop=")
    assert shards.drop("s2").statements == ()


@pytest.mark.parametrize("argument", ["", "renames", "renames=never", "mode=optimistic", "=map"])
def test_a_policy_that_there_is_not_is_refused(argument: str) -> None:
    shards = SqlLine(Mode.OPTIMISTIC, "s0", create=BASE)
    answer = shards.command(CommandKind.SET_POLICY, argument=argument)
    assert answer.outcome is Outcome.REFUSED
    assert "renames=" in answer.hint


def test_shards_that_a_conflict_held_wait_for_the_lock_when_the_mode_changes() -> None:
    shards = in_conflict()
    shards.command(CommandKind.SET_MODE, argument="pessimistic")

    last = shards.alter("s0", "MODIFY a DATE")

    assert (last.outcome, shards.held) == (Outcome.EMIT, [])


@pytest.mark.parametrize(
    "kind",
    [k for k in CommandKind if "set-" not in k and "able" not in k and k not in OF_NO_SHARD]
    + [CommandKind.SET_SCHEMA],
)
def test_a_command_about_a_shard_that_there_is_not_is_refused(kind: CommandKind) -> None:
    shards = SqlLine(Mode.OPTIMISTIC, "s0", create=BASE)

    answers = [shards.command(kind, "s9"), shards.command(kind)]

    assert [a.outcome for a in answers] == [Outcome.REFUSED] * 2
    assert "no live shard" in answers[0].reason
    assert "needs a shard" in answers[1].reason


def test_a_repeated_command_is_answered_once() -> None:
    shards = in_conflict()
    said = OperatorCommand(ChangeId("p.commands", 3), TARGET, CommandKind.SKIP, shard_of("s1"))

    first = coordinator.obey(shards.state, said)
    again = coordinator.obey(first.state, said)

    assert first.decision is not None
    assert (again.decision, again.state) == (None, first.state)


@pytest.mark.parametrize("mode", Mode)
def test_a_table_is_read_again(mode: Mode) -> None:
    line = SqlLine(mode, "s1", "s2", create="id INT PRIMARY KEY, a INT")
    decision = line.command(CommandKind.REREAD, "s1")
    (fixup,) = decision.fixups
    assert (fixup.shard, fixup.kind) == (shard_of("s1"), FixupKind.SNAPSHOT)
    assert fixup.columns == ("id", "a")
    assert decision.outcome is Outcome.NOOP
    assert "they are read again: an operator asked for it" in decision.warnings[0]


def test_what_cannot_be_read_again_is_refused() -> None:
    line = SqlLine(Mode.OPTIMISTIC, "s1", create="id INT PRIMARY KEY")
    decision = line.command(CommandKind.REREAD, "s9")
    assert (decision.outcome, decision.fixups) == (Outcome.REFUSED, ())
    assert "no live shard" in decision.reason


def test_a_renamed_column_whose_name_was_used_again_meanwhile_is_renamed_when_enabled() -> None:
    shards = SqlLine(Mode.OPTIMISTIC, "s0", "s1", create=BASE)
    shards.command(CommandKind.DISABLE)
    shards.alter("s0", "RENAME COLUMN a TO c")
    assert shards.alter("s0", "ADD COLUMN a DATE").outcome is Outcome.HOLD

    answer = shards.command(CommandKind.ENABLE)

    assert answer.released == (shard_of("s0"),)
    assert sql(answer) == ["RENAME COLUMN `a` TO `c`", "ADD COLUMN `a` date"]
    assert shards.held == []
