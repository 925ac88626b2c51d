"""Shards without a primary key, by the policy of their route."""

from __future__ import annotations

from dataclasses import replace

import pytest

from shardmerge.schemas.model.policies import Keyless, Mode, RoutePolicies
from shardmerge.schemas.records.decisions import Outcome
from shardmerge.schemas.records.operator_commands import CommandKind
from tests.unit.agents.sql_line import SqlLine, shard_of
from tests.unit.agents.tracking.tracked_source import RULES, Source

modes = pytest.mark.parametrize("mode", Mode)


def line(
    *sources: str, mode: Mode = Mode.OPTIMISTIC, create: str = "id INT PRIMARY KEY"
) -> SqlLine:
    return SqlLine(mode, *sources, create=create, keyless=Keyless.REFUSE)


@modes
def test_a_table_without_a_primary_key_is_merged_unless_its_route_refuses(mode: Mode) -> None:
    assert SqlLine(mode).create("s1", "a INT").outcome is Outcome.EMIT
    refusing = line(mode=mode)
    decision = refusing.create("s1", "a INT")
    assert (decision.outcome, decision.shard) == (Outcome.HOLD, shard_of("s1"))
    assert "no primary key" in decision.reason and "keyless = 'refuse'" in decision.reason
    assert "add a primary key" in decision.hint and "set-policy keyless=count" in decision.hint
    assert refusing.state.schema is None


@modes
def test_a_primary_key_ends_the_hold(mode: Mode) -> None:
    shards = line(mode=mode)
    shards.create("s1", "a INT NOT NULL, b INT")
    assert shards.alter("s1", "ADD COLUMN c INT").outcome is Outcome.HOLD
    decision = shards.alter("s1", "ADD PRIMARY KEY (a)")
    assert decision.outcome is Outcome.EMIT
    assert decision.released == (shard_of("s1"),)
    assert shards.target is not None
    assert [column.name for column in shards.target.columns] == ["a", "b", "c"]


@modes
def test_the_policy_that_takes_such_tables_in_ends_the_hold(mode: Mode) -> None:
    shards = line(mode=mode)
    shards.create("s1", "a INT")
    decision = shards.command(CommandKind.SET_POLICY, argument="keyless=count")
    assert (decision.outcome, decision.released) == (Outcome.EMIT, (shard_of("s1"),))
    assert shards.create("s2", "a INT").outcome is Outcome.NOOP


@modes
def test_shards_that_all_drop_their_key_are_held_and_go_back_to_it(mode: Mode) -> None:
    shards = line("s1", "s2", mode=mode)
    first = shards.alter("s1", "DROP PRIMARY KEY")
    last = shards.alter("s2", "DROP PRIMARY KEY")
    assert (first.outcome, last.outcome) == (Outcome.HOLD, Outcome.HOLD)
    assert "no primary key" in last.reason
    shards.alter("s1", "ADD PRIMARY KEY (id)")
    shards.alter("s2", "ADD PRIMARY KEY (id)")
    assert not shards.state.held


@modes
def test_other_shards_flow_while_one_is_refused(mode: Mode) -> None:
    shards = line("s1", mode=mode)
    assert shards.create("s2", "id INT").outcome is Outcome.HOLD
    decision = shards.alter("s1", "ADD COLUMN a INT")
    assert decision.outcome is Outcome.EMIT
    assert set(shards.state.held) == {shard_of("s2")}


def test_a_target_that_is_without_a_key_already_goes_on() -> None:
    shards = SqlLine(Mode.OPTIMISTIC, "s1", create="a INT")
    shards.keyless = Keyless.REFUSE
    assert shards.alter("s1", "ADD COLUMN b INT").outcome is Outcome.EMIT
    assert shards.create("s2", "a INT, b INT").outcome is Outcome.NOOP


def test_a_change_says_what_its_route_says() -> None:
    for keyless in Keyless:
        source = Source(
            tuple(replace(rule, policies=RoutePolicies(keyless=keyless)) for rule in RULES)
        )
        [change] = source.run("CREATE TABLE tbl00 (a INT)").changes
        assert change.policies.keyless is keyless
