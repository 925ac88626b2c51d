"""A target's state as rows: what a decision writes, and what is read after a restart."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from shardmerge.agents.coordination import coordinator
from shardmerge.agents.coordination.state import state_rows
from shardmerge.agents.coordination.state.target_state import TargetState
from shardmerge.agents.handling.store import TargetStates
from shardmerge.schemas.model.errors import ContractError
from shardmerge.schemas.model.names import ShardId, TargetTable
from shardmerge.schemas.model.policies import Mode
from tests.unit.agents.coordination.test_coordinator import TARGET, Line, column, table
from tests.unit.agents.sql_line import SqlLine


class Stored(Line):
    """A line whose state goes through rows at each change."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: dict[bytes, bytes] = {}
        self.states = TargetStates()
        self.puts: dict[bytes, bytes | None] = {}

    def change(self, source, after, **more):
        old = self.states.get(self.rows, TARGET)
        assert old == self.state
        decision = super().change(source, after, **more)
        shards = {ShardId(source, "app", "t"), *decision.released}
        self.puts = self.states.puts(old, self.state, shards, source)
        for key, row in self.puts.items():
            if row is None:
                del self.rows[key]
            else:
                self.rows[key] = row
        return decision

    def read_again(self) -> TargetState:
        return TargetStates().get(self.rows, TARGET)


def kinds(puts: dict[bytes, bytes | None]) -> list[str]:
    found = []
    for key, row in puts.items():
        parsed = state_rows.parsed_key(key)
        kind = parsed[1] if parsed else "header"
        found.append(kind if row is not None else f"no {kind}")
    return sorted(found)


def test_a_state_is_read_back_as_it_was_with_equal_schemas_stored_once() -> None:
    line = Stored()
    for source in ("s0", "s1", "s2", "s3"):
        line.change(source, table(column("c", "int")))
    line.change("s3", table(column("c", "date")))
    line.change("s2", None, error="cannot parse it")

    again = line.read_again()

    assert again == line.state
    assert set(again.held) == set(line.state.held)
    assert sum(row.count(b'"date"') for row in line.rows.values()) == 1
    one, other = (again.shards[ShardId(s, "app", "t")] for s in ("s0", "s1"))
    assert one.effective is other.effective


def test_a_decision_writes_the_rows_that_it_touches_and_no_others() -> None:
    line = Stored()
    wrote = []
    for source in ("s0", "s1", "s2", "s3"):
        line.change(source, table())
        wrote.append(kinds(line.puts))
    assert wrote[0] == ["header", "schema", "shard", "source", "target"]
    assert wrote[1:] == [["header", "shard", "source"]] * 3

    line.change("s0", table(column("c")))
    assert kinds(line.puts) == ["header", "schema", "shard", "source", "target"]
    line.change("s1", table(column("c")))
    assert kinds(line.puts) == ["header", "shard", "source"]
    line.change("s2", table(column("c")))
    line.change("s3", table(column("c")))
    assert kinds(line.puts) == ["header", "no schema", "shard", "source"]


def test_the_rows_of_a_shard_go_with_it() -> None:
    line = Stored()
    line.change("s0", table())
    line.change("s1", table(column("c")))
    line.change("s1", None)
    assert {"no shard", "no schema"} <= set(kinds(line.puts))
    assert line.read_again() == line.state


def test_the_end_of_a_conflict_writes_every_shard_that_it_releases() -> None:
    line = Stored()
    for source in ("s0", "s1", "s2"):
        line.change(source, table(column("c", "int")))
    for source in ("s0", "s1", "s2"):
        line.change(source, table(column("c", "date")))
    assert kinds(line.puts).count("shard") == 3
    assert line.read_again() == line.state


class OnePartition(dict[bytes, bytes]):
    """Rows as a worker of several partitions sees them: all keys, but one partition's values."""

    looked_through = 0
    readable: tuple[str, ...] = ()

    def keys(self):
        self.looked_through += 1
        return super().keys()

    def get(self, key, default=None):
        return super().get(key, default) if any(t.encode() in key for t in self.readable) else None


def stored(*targets: TargetTable) -> dict[bytes, bytes]:
    """Rows of targets with one shard each."""
    line = Line()
    line.change("s0", table(column("c")))
    rows: dict[bytes, bytes] = {}
    for target in targets:
        change = replace(line.changes[0], target=target)
        old = coordinator.initial(target)
        new = coordinator.decide(old, change).state
        puts = TargetStates().puts(old, new, [change.shard], "s0")
        rows.update({key: row for key, row in puts.items() if row is not None})
    return rows


def test_targets_with_similar_names_keep_their_rows_apart() -> None:
    targets = [TargetTable("a", "b"), TargetTable("a", 'b","shard'), TargetTable("a/b", "c")]
    rows, states = stored(*targets), TargetStates()
    for target in targets:
        state = states.get(rows, target)
        assert (state.target, len(state.shards)) == (target, 1)


def test_the_table_is_looked_through_once_per_partition_however_the_targets_come() -> None:
    targets = [TargetTable("merged", name) for name in ("a1", "b1", "a2", "b2")]
    rows, states = OnePartition(stored(*targets)), TargetStates()
    for target in targets:
        partition = target.table[0]
        rows.readable = (f"{partition}1", f"{partition}2")
        assert len(states.get(rows, target).shards) == 1
    assert rows.looked_through == 2


def test_a_state_that_changed_elsewhere_meanwhile_is_read_anew() -> None:
    line = Stored()
    line.change("s0", table())
    other = TargetStates()
    assert other.get(line.rows, TARGET) == line.state
    line.change("s1", table(column("c")))
    assert other.get(line.rows, TARGET) == line.state


def test_another_format_is_an_error_that_says_which() -> None:
    old = {b"target/merged.t": json.dumps({"format": 1, "shards": []}).encode()}
    with pytest.raises(ContractError, match=r"merged\.t has format 1, not 13") as caught:
        TargetStates().get(old, TARGET)
    assert "run that version" in caught.value.hint


def test_changes_that_wait_in_rows_of_an_earlier_format_have_no_effect() -> None:
    rollout = SqlLine(Mode.PESSIMISTIC, "s0", "s1")
    rollout.alter("s0", "ADD COLUMN c INT")
    (shard,) = rollout.state.held
    made = rollout.state.shards[shard].head
    assert made is not None
    assert made.effect is not None
    rows = dict(rollout.rows)
    header = json.loads(rows[state_rows.header_key(TARGET)])
    rows[state_rows.header_key(TARGET)] = json.dumps({**header, "format": 6}).encode()
    (key,) = (key for key, row in rows.items() if b'"effect":' in row)
    stored = json.loads(rows[key])
    del stored["hold"]["queue"][0]["effect"]
    rows[key] = json.dumps(stored).encode()

    again = TargetStates().get(rows, TARGET)

    assert again.shards[shard].head == replace(made, effect=None)


@pytest.mark.parametrize("kind", ["shard", "schema"])
def test_a_row_that_is_missing_is_an_error(kind: str) -> None:
    line = Stored()
    line.change("s0", table())
    for key in list(line.rows):
        parsed = state_rows.parsed_key(key)
        if parsed and parsed[1] == kind:
            del line.rows[key]
    with pytest.raises(ContractError, match=r"state of merged\.t") as caught:
        line.read_again()
    assert "data directory" in caught.value.hint


def test_a_hold_of_a_format_without_codes_says_that_an_earlier_version_wrote_it() -> None:
    line = Stored()
    line.change("s0", table(column("c", "int")))
    line.change("s1", table(column("c", "date")))
    held = ShardId("s1", "app", "t")
    hold = line.read_again().shards[held].hold
    assert hold is not None
    assert hold.code == "SM-1201"
    for key, row in line.rows.items():
        plain = json.loads(row)
        if isinstance(plain, dict) and plain.get("format") == state_rows.FORMAT:
            plain["format"] = 10
        if isinstance(plain, dict) and plain.get("hold"):
            del plain["hold"]["code"]
        line.rows[key] = json.dumps(plain).encode()
    hold = line.read_again().shards[held].hold
    assert hold is not None
    assert hold.code == "SM-9003"


def test_a_fixup_for_effects_of_a_format_without_codes_says_so_too() -> None:
    codes = {}
    for earlier in (False, True):
        rollout = SqlLine(Mode.OPTIMISTIC, "s0", "s1", create="id INT PRIMARY KEY, a VARCHAR(9)")
        rollout.alter("s0", "ADD COLUMN c INT")
        assert rollout.alter("s1", "ADD COLUMN c DATE, MODIFY a VARCHAR(5)").outcome == "hold"
        (key,) = (key for key, row in rollout.rows.items() if b'"effects":[{' in row)
        row = json.loads(rollout.rows[key])
        if earlier:
            for effect in row["hold"]["effects"]:
                del effect["code"]
            rollout.rows[key] = json.dumps(row).encode()
            rollout.state = TargetStates().get(rollout.rows, TARGET)
        (fixup,) = rollout.alter("s1", "DROP COLUMN c").fixups
        codes[earlier] = fixup.code
    assert codes == {False: "SM-1803", True: "SM-9003"}
