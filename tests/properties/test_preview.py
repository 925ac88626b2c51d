"""What ``plan`` says is what the agents decide, byte for byte; and no shorter safe order exists."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shardmerge.agents.handling.handlers import CoordinatorHandler, TrackerHandler
from shardmerge.agents.preview.plan import Plan, left_held, numbered, planned
from shardmerge.agents.preview.present import line_state
from shardmerge.agents.preview.rollout import RolloutStep, TableFile
from shardmerge.agents.preview.safe_order import safe_order
from shardmerge.agents.preview.simulated_agents import AgentsState, SimulatedAgents
from shardmerge.agents.preview.upstream import SourcePlace, changes, described
from shardmerge.agents.replay.log import Refold
from shardmerge.connectors.debezium.envelope import SchemaChangeEvent, schema_change_event
from shardmerge.connectors.formats.stored_record import StoredRecord
from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.pipeline import topics
from shardmerge.schemas.pipeline.file import parse_pipeline
from shardmerge.schemas.pipeline.server_differences import server_context
from shardmerge.schemas.pipeline.settings import Pipeline
from shardmerge.schemas.records import codec
from tests.e2e.runner.rollouts import rollout

_PIPELINE = """
[pipeline]
name = "p"
mode = "{mode}"
[kafka]
bootstrap_servers = "kafka:9092"
[connect]
url = "http://connect:8083"
[target]
host = "target"
port = 1
user = "u"
password = ""
[[routes]]
database = 'app\\d+'
table = 't_\\d+'
target = "merged.t"
renames = "{renames}"
{more}
"""
_SOURCE = """
[[sources]]
name = "s{number}"
host = "h"
port = 1
user = "u"
password = ""
server_id = {number}
version = "{version}"
charset = "utf8mb4"
"""
_VERSIONS = (("8.0.36", "8.0.36"), ("5.7.44", "8.0.36"))
"""Of the sources: utf8mb4 has another default collation in 5.7."""
_MORE = (
    "",
    'origin = { shard = "_shard" }\non_drop = "delete"',
    'existing_rows = "hold"',
    'existing_rows = "accept"\ntypes = "published"',
    'leave_out = "b"',
)


def pipeline(
    mode: str,
    renames: str,
    more: str = "",
    kind: str = "mysql",
    versions: tuple[str, str] = _VERSIONS[0],
) -> Pipeline:
    text = _PIPELINE.format(mode=mode, renames=renames, more=more)
    for number, version in enumerate(versions, 1):
        text += _SOURCE.format(number=number, version=version)
    read = parse_pipeline(text, {})
    return replace(read, target=replace(read.target, kind=kind))


def shard(entry: dict[str, Any]) -> ShardId:
    database, table = entry["table"].split(".")
    return ShardId(entry["source"], database, table)


def tables(document: dict[str, Any]) -> list[TableFile]:
    return [
        TableFile(shard(entry), entry["create"].replace("create table", "CREATE TABLE", 1))
        for entry in document["sources"]
    ]


def steps(document: dict[str, Any]) -> list[RolloutStep]:
    return [RolloutStep(shard(entry), entry["sql"]) for entry in document["steps"]]


def odd_steps(random: Random, document: dict[str, Any]) -> list[RolloutStep]:
    """The rollout's steps, with others among them that go wrong or concern several tables."""
    found = steps(document)
    first, *_ = [shard(entry) for entry in document["sources"]]
    for _ in range(random.randint(0, 4)):
        sql = random.choice((
            f"DROP TABLE {first.table}",
            f"DROP TABLE IF EXISTS {first.table}, nothing",
            f"RENAME TABLE {first.table} TO t_90, t_90 TO {first.table}",
            f"ALTER TABLE {first.table} ADD COLUMN odd DATE",
            f"ALTER TABLE {first.table} MODIFY a DATE",
            f"ALTER TABLE {first.table} DROP PRIMARY KEY",
            f"ALTER TABLE {first.table} WOBBLE a",
            "CREATE TABLE t_91 (id INT PRIMARY KEY, a DATE)",
            "CREATE TABLE unrouted (a INT)",
            "CREATE VIEW v AS SELECT 1",
            "SET NAMES utf8mb4",
            f"TRUNCATE TABLE {first.table}",
        ))  # fmt: skip
        found.insert(random.randint(0, len(found)), RolloutStep(first, sql))
    return found


class Agents:
    """Both agents with stored rows, fed with the bytes that Debezium would write."""

    def __init__(self, of: Pipeline) -> None:
        self.tracker = Refold(TrackerHandler(of))
        self.coordinator = Refold(CoordinatorHandler(of))
        self._log, self._ddl = topics.schema_log(of).name, topics.ddl(of).name
        self._offset = itertools.count()

    def decide(self, event: SchemaChangeEvent) -> list[bytes]:
        record = StoredRecord(event.source, 0, event.offset, b"{}", _debezium(event))
        effects = self.tracker.effects(record)
        self.tracker.rows.take(effects)
        found = [send.value for send in effects.sends if send.topic == self._ddl]
        for send in effects.sends:
            if send.topic == self._log:
                logged = StoredRecord(self._log, 0, next(self._offset), send.key, send.value)
                answer = self.coordinator.effects(logged)
                self.coordinator.rows.take(answer)
                found += [s.value for s in answer.sends if s.topic == self._ddl]
        return found


def _debezium(event: SchemaChangeEvent) -> bytes:
    source = {
        "name": event.source, "snapshot": str(event.snapshot).lower(), "table": event.table,
        "file": event.position.file, "pos": event.position.pos, "row": event.position.row,
    }  # fmt: skip
    value = {
        "source": source, "databaseName": event.database, "ddl": event.ddl, "ts_ms": event.ts_ms,
        "tableChanges": [],
    }  # fmt: skip
    data = json.dumps(value).encode()
    assert schema_change_event(event.source, event.offset, b"{}", data) == event
    return data


def fed(
    agents: Agents, of: Pipeline, executed: list[RolloutStep], places: dict[str, SourcePlace]
) -> list[bytes]:
    """The agents' decisions about statements; moves the sources' places."""
    contexts = {source.name: server_context(source) for source in of.sources}
    found: list[bytes] = []
    for step in executed:
        place = places[step.shard.source]
        events = changes(step.shard, step.sql, place, contexts[step.shard.source])
        for event in events:
            found += agents.decide(event)
        if events:
            places[step.shard.source] = place.after(events)
    return found


def fed_with_tables(
    agents: Agents, of: Pipeline, described_as: list[TableFile]
) -> tuple[list[bytes], dict[str, SourcePlace]]:
    """The agents' decisions about described tables, and the sources' places after them."""
    places = {source.name: SourcePlace.beginning(source.epoch) for source in of.sources}
    found: list[bytes] = []
    for table in described_as:
        place = places[table.shard.source]
        found += agents.decide(described(table.shard, table.sql, place))
        places[table.shard.source] = replace(place, offset=place.offset + 1)
    return found, places


def begun(
    simulated: SimulatedAgents, described_as: list[TableFile]
) -> tuple[AgentsState, list[bytes]]:
    state = AgentsState()
    found: list[bytes] = []
    for table in described_as:
        state, answers = simulated.described(state, table)
        found += [codec.encode(answer.decision) for answer in answers]
    return state, found


def decisions_of(plan: Plan) -> list[bytes]:
    return [codec.encode(a.decision) for step in plan.steps for a in step.answers]


@settings(max_examples=30, deadline=None)
@given(
    st.integers(0, 10**9),
    st.sampled_from(_MORE),
    st.sampled_from(("mysql", "mariadb", "tidb", "iceberg")),
    st.sampled_from(_VERSIONS),
)
def test_a_plan_has_the_decisions_of_the_agents_byte_for_byte(
    seed: int, more: str, kind: str, versions: tuple[str, str]
) -> None:
    document = rollout(seed)
    of = pipeline(document["mode"], document["renames"], more, kind, versions)
    executed = odd_steps(Random(seed), document)

    simulated, agents = SimulatedAgents(of), Agents(of)
    state, told = begun(simulated, tables(document))
    plan = planned(simulated, state, numbered(executed))
    told += decisions_of(plan)
    decided, places = fed_with_tables(agents, of, tables(document))
    decided += fed(agents, of, executed, places)

    assert told == decided
    assert len(told) > len(document["sources"])
    assert simulated.tables_after(state, executed) == plan.after.tables


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10**9), st.floats(0, 1))
def test_so_has_a_plan_that_begins_where_the_agents_stand(seed: int, share: float) -> None:
    document = rollout(seed)
    of = pipeline(document["mode"], document["renames"])
    executed = odd_steps(Random(seed), document)
    begin = int(share * len(executed))
    agents = Agents(of)
    _, places = fed_with_tables(agents, of, tables(document))
    fed(agents, of, executed[:begin], places)

    ends = {topics.schema_changes(of, name).name: place.offset for name, place in places.items()}
    present = line_state(of, agents.tracker.rows, agents.coordinator.rows, ends)
    told = decisions_of(planned(SimulatedAgents(of), present, numbered(executed[begin:])))

    assert told == fed(agents, of, executed[begin:], dict(present.places))


_WAYS = (
    ("DROP COLUMN a", "ADD COLUMN a DATE", "ADD COLUMN k INT"),
    ("DROP COLUMN a", "ADD COLUMN a DATE"),
    ("RENAME COLUMN a TO z", "ADD COLUMN a DATE"),
    ("MODIFY a DATE",),
    ("ADD COLUMN m JSON", "MODIFY a BIGINT"),
    ("DROP COLUMN a", "ADD COLUMN k INT"),
)
_THREE = [ShardId("s1", "app1", "t_1"), ShardId("s2", "app1", "t_1"), ShardId("s2", "app1", "t_2")]


_PAUSING_WAYS = (
    ("DROP COLUMN a", "ADD COLUMN a INT"),
    ("DROP COLUMN a", "ADD COLUMN a INT", "ADD COLUMN k INT"),
    ("DROP COLUMN a, ADD COLUMN a INT", "MODIFY a BIGINT"),
    ("DROP COLUMN a", "ADD COLUMN a DATE"),
    ("ADD COLUMN k INT NOT NULL DEFAULT 5", "ALTER COLUMN k SET DEFAULT 7"),
)
_STOPS: dict[str, Callable[[Plan], object]] = {
    "holds": lambda plan: plan.holds,
    "holds and pauses": lambda plan: plan.holds or plan.pauses,
}


def small_rollout(
    seed: int, ways: tuple[tuple[str, ...], ...] = _WAYS, more: str = ""
) -> tuple[SimulatedAgents, Plan]:
    """Two or three shards that go similar ways, in a random order that keeps each shard's own."""
    random = Random(seed)
    renames = random.choice(("map", "hold", "copy"))
    simulated = SimulatedAgents(pipeline("optimistic", renames, more))
    way = random.choice(ways)
    lanes = []
    for name in _THREE[: 2 if len(way) > 2 else random.choice((2, 2, 3))]:
        own = way if random.random() < 0.8 else random.choice(ways)
        lanes.append([RolloutStep(name, f"ALTER TABLE {name.table} {action}") for action in own])
    files = [
        TableFile(name, f"CREATE TABLE {name.table} (id INT PRIMARY KEY, a INT)")
        for name in {steps[0].shard for steps in lanes}
    ]
    state, _ = begun(simulated, sorted(files, key=lambda file: file.shard))
    order: list[RolloutStep] = []
    while any(lanes):
        order.append(random.choice([steps for steps in lanes if steps]).pop(0))
    return simulated, planned(simulated, state, numbered(order))


def fewest_moves(
    simulated: SimulatedAgents, given_plan: Plan, without: str = "holds"
) -> int | None:
    """By trying every order that keeps each shard's own; None: every one leads to a stop."""
    all_steps = [step.step for step in given_plan.steps]
    found: list[int] = []

    def go_on(plan: Plan, numbers: list[int]) -> None:
        if _STOPS[without](plan):
            return
        if len(numbers) == len(all_steps):
            if not left_held(given_plan.before, plan.after):
                assert plan.after.tables == given_plan.after.tables
                found.append(len(numbers) - longest_ascending(numbers))
            return
        begun_shards = set()
        for number, step in numbered(all_steps):
            if number not in numbers and step.shard not in begun_shards:
                begun_shards.add(step.shard)
                go_on(planned(simulated, plan.after, [(number, step)]), [*numbers, number])

    go_on(Plan(given_plan.before, (), given_plan.before), [])
    return min(found, default=None)


def longest_ascending(numbers: list[int]) -> int:
    lengths: list[int] = []
    for at, number in enumerate(numbers):
        before = [lengths[n] for n in range(at) if numbers[n] < number]
        lengths.append(1 + max(before, default=0))
    return max(lengths)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10**9))
def test_the_safe_order_moves_the_fewest_steps(seed: int) -> None:
    simulated, plan = small_rollout(seed)

    found = safe_order(simulated, plan, bound=100_000)
    best = fewest_moves(simulated, plan)

    assert (best is None) == (not found.numbers)
    if best is not None:
        assert found.moved == best
        assert found.shortest
        again = planned(
            simulated, plan.before, [(n, plan.steps[n - 1].step) for n in found.numbers]
        )
        assert not again.holds
        assert not again.left_held


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10**9))
def test_the_safe_order_pauses_a_shard_only_if_every_order_without_a_hold_does(seed: int) -> None:
    simulated, plan = small_rollout(seed, _PAUSING_WAYS, 'existing_rows = "hold"')

    found = safe_order(simulated, plan, bound=100_000)
    best = fewest_moves(simulated, plan, "holds and pauses")
    unavoidable = best is None
    if unavoidable and plan.holds:
        best = fewest_moves(simulated, plan)

    assert found.unavoidable == unavoidable
    assert (best is None) == (not found.numbers)
    if best is not None:
        assert (found.moved, found.shortest) == (best, True)
        again = planned(
            simulated, plan.before, [(n, plan.steps[n - 1].step) for n in found.numbers]
        )
        assert not again.holds
        assert not again.left_held
        assert again.pauses == found.pauses
        assert bool(again.pauses) == unavoidable


@pytest.mark.parametrize("bound", [0, 3])
def test_without_enough_bound_what_holds_is_put_off(bound: int) -> None:
    simulated = SimulatedAgents(pipeline("optimistic", "map"))
    state, _ = begun(
        simulated,
        [TableFile(s, f"CREATE TABLE {s.table} (id INT PRIMARY KEY, a INT)") for s in _THREE],
    )
    order = [
        RolloutStep(s, f"ALTER TABLE {s.table} {action}")
        for s in _THREE
        for action in ("DROP COLUMN a", "ADD COLUMN a DATE")
    ]
    plan = planned(simulated, state, numbered(order))
    assert plan.holds

    found = safe_order(simulated, plan, bound)

    assert found.numbers == (1, 3, 5, 6, 2, 4)
    assert not found.shortest
    assert safe_order(simulated, plan).shortest
