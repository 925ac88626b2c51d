"""A target's stored state: the rows of every format of which there is a file stay readable."""

from __future__ import annotations

import json
from pathlib import Path

from shardmerge.agents.coordination import coordinator
from shardmerge.agents.coordination.state import state_rows
from shardmerge.agents.coordination.state.target_state import TargetState
from shardmerge.agents.handling.store import TargetStates
from shardmerge.schemas.model.frozen import replace
from shardmerge.schemas.model.names import ShardId, TargetTable
from shardmerge.schemas.model.origin import Origin, OriginColumn, OriginPart
from shardmerge.schemas.model.policies import (
    ExistingRows,
    Keyless,
    Mode,
    RenamePolicy,
    RoutePolicies,
    RowsPolicy,
    TypePolicy,
)
from shardmerge.schemas.records.operator_commands import CommandKind, OperatorCommand
from shardmerge.schemas.records.schema_changes import ChangeId, SchemaChange

FOLDER = Path(__file__).parent / "state"
TARGET = TargetTable("merged", "t")
POLICIES = RoutePolicies(
    mode=Mode.OPTIMISTIC,  # set by an operator; the route says pessimistic
    renames=RenamePolicy.HOLD,  # likewise; the route says copy
    origin=Origin((OriginColumn(OriginPart.SHARD, "_shard"),)),
    existing_rows=ExistingRows.HOLD,
    keyless=Keyless.REFUSE,
    types=TypePolicy.PUBLISHED,
)


def read(number: int) -> tuple[dict[bytes, bytes], TargetState]:
    text = (FOLDER / f"format_{number}.json").read_text(encoding="utf-8")
    rows = {key.encode(): row.encode() for key, row in json.loads(text).items()}
    return rows, TargetStates().get(rows, TARGET)


def test_a_state_of_format_9_has_the_policies_that_counted_and_those_that_were_set() -> None:
    rows, state = read(9)
    assert json.loads(rows[state_rows.header_key(TARGET)])["format"] == 9
    assert state.policies == POLICIES
    assert state.policies.on_drop is RowsPolicy.KEEP  # format 9 has none: the next change has
    assert (state.mode_is_set, state.set_policies) == (True, {"renames": "hold"})
    assert (state.version, state.propagates, sorted(state.seen)) == (
        7,
        True,
        ["p.commands", "s0", "s1"],
    )
    held = state.shards[ShardId("s1", "app", "t")]
    assert (held.paused, held.hold is not None, len(state.shards)) == (True, True, 2)


def test_a_state_of_format_9_is_decided_on_and_written_in_the_format_of_now() -> None:
    rows, state = read(9)
    said = OperatorCommand(
        ChangeId("p.commands", 8), TARGET, CommandKind.SET_POLICY, None, "renames="
    )
    step = coordinator.obey(state, said)
    puts = TargetStates().puts(state, step.state, [], "p.commands")
    now = rows | {key: row for key, row in puts.items() if row is not None}
    assert json.loads(now[state_rows.header_key(TARGET)])["format"] == state_rows.FORMAT
    again = TargetStates().get(now, TARGET)
    assert again == step.state
    assert (again.policies, again.set_policies) == (POLICIES, {})
    assert step.decision is not None
    assert step.decision.warning_codes == ("SM-1715",), "format 9 does not have the route's value"
    hold = again.shards[ShardId("s1", "app", "t")].hold
    assert hold is not None
    assert hold.code == "SM-9003", "the shard's row is of format 9 still"


def test_what_a_route_says_is_known_with_the_next_change_after_a_state_of_format_9() -> None:
    _, state = read(9)
    assert state.route_says == {}
    route = replace(POLICIES, mode=Mode.PESSIMISTIC, renames=RenamePolicy.COPY)
    held = state.shards[ShardId("s1", "app", "t")]
    change = SchemaChange(
        ChangeId("s1", state.seen["s1"][0] + 1), TARGET, held.shard, held.position,
        held.table, held.table, (), ("COMMENT = 'x'",), "", policies=route,
    )  # fmt: skip
    known = coordinator.decide(state, change).state
    assert known.route_says == {"mode": "pessimistic", "renames": "copy"}
    for number, (kind, argument) in enumerate(
        [(CommandKind.SET_POLICY, "renames="), (CommandKind.SET_MODE, "")], start=8
    ):
        said = OperatorCommand(ChangeId("p.commands", number), TARGET, kind, None, argument)
        step = coordinator.obey(known, said)
        assert step.decision is not None and step.decision.warnings == ()
        known = step.state
    assert (known.policies, known.route_says) == (route, {})
