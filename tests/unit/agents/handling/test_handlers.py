from __future__ import annotations

import json
from dataclasses import replace

import pytest

from shardmerge.agents.coordination import commands, coordinator
from shardmerge.agents.handling.effects import Effects, SourceRecord
from shardmerge.agents.handling.handlers import CoordinatorHandler, TrackerHandler
from shardmerge.agents.handling.store import TargetStates
from shardmerge.agents.tracking import tracker
from shardmerge.schemas.ddl.apply.stored_texts import with_texts
from shardmerge.schemas.model.errors import ContractError
from shardmerge.schemas.model.names import ShardId, TargetTable
from shardmerge.schemas.pipeline.file import parse_pipeline
from shardmerge.schemas.pipeline.settings import Pipeline
from shardmerge.schemas.records import codec
from shardmerge.schemas.records.decisions import Decision, JoinedSchema, Outcome
from shardmerge.schemas.records.operator_commands import CommandKind, OperatorCommand
from shardmerge.schemas.records.schema_changes import ChangeId, SchemaChange

PIPELINE = parse_pipeline(
    """
[pipeline]
name = "p"
[kafka]
bootstrap_servers = "x"
[connect]
url = "x"
[target]
host = "x"
port = 1
user = "u"
password = "p"
[[routes]]
database = "shop"
table = 'tbl\\d\\d'
target = "merged.tbl"
[[sources]]
name = "s1"
host = "x"
port = 1
user = "u"
password = "p"
server_id = 1
""",
    {},
)
CREATE = "CREATE TABLE tbl00 (ID INT PRIMARY KEY)"


def statement(ddl: str, offset: int = 0, name: str = "s1") -> SourceRecord:
    value = {
        "source": {"name": name, "file": "binlog.000001", "pos": 100 + offset},
        "databaseName": "shop",
        "ddl": ddl,
    }
    return SourceRecord("s1", 0, offset, None, json.dumps(value).encode())


class Rows(dict[bytes, bytes]):
    """An agent's table."""

    def take(self, effects):
        for key, value in effects.puts.items():
            if value is None:
                self.pop(key, None)
            else:
                self[key] = value
        return effects


def log_record(value: bytes, offset: int) -> SourceRecord:
    return SourceRecord("p.schema-log", 0, offset, None, value)


def test_a_routed_change_goes_to_the_schema_log_with_readable_headers():
    (send,) = TrackerHandler(PIPELINE)(Rows(), statement(CREATE)).sends
    assert (send.topic, send.key) == ("p.schema-log", b"merged.tbl")
    assert isinstance(codec.decode(send.value), SchemaChange)
    assert dict(send.headers) == {
        "id": "s1@0.0", "position": "binlog.000001:100", "shard": "s1/shop.tbl00",
        "source": "s1", "target": "merged.tbl",
    }  # fmt: skip


def test_an_ignored_statement_is_answered_straight_away():
    (send,) = TrackerHandler(PIPELINE)(Rows(), statement("FLUSH TABLES", 3)).sends
    assert (send.topic, send.key) == ("p.ddl", b"ignored/s1@3.0")
    assert dict(send.headers)["outcome"] == "ignored"


def test_a_record_of_another_source_stops_the_worker_with_the_remedy():
    with pytest.raises(ContractError, match="of source 's9'") as caught:
        TrackerHandler(PIPELINE)(Rows(), statement(CREATE, name="s9"))
    assert "topic.prefix" in caught.value.hint


def test_a_change_gives_one_decision_and_the_joined_schema():
    (change,) = TrackerHandler(PIPELINE)(Rows(), statement(CREATE)).sends
    rows = Rows()
    fold = CoordinatorHandler(PIPELINE)
    effects = rows.take(fold(rows, log_record(change.value, 0)))
    assert [(s.topic, s.key) for s in effects.sends] == [
        ("p.ddl", b"merged.tbl/1"), ("p.joined-schemas", b"merged.tbl"),
    ]  # fmt: skip
    decision, joined = (codec.decode(s.value) for s in effects.sends)
    assert isinstance(decision, Decision) and decision.version == 1
    assert isinstance(joined, JoinedSchema) and joined.version == 1
    repeated = fold(rows, log_record(change.value, 1))
    assert repeated.sends == () and dict(repeated.puts) == {}


def test_a_defect_of_our_own_holds_one_shard_and_says_where(monkeypatch):
    (change,) = TrackerHandler(PIPELINE)(Rows(), statement(CREATE)).sends
    decide = coordinator.decide

    def broken(state, change, dialect):
        if not change.error:
            raise KeyError("g#1")
        return decide(state, change, dialect)

    monkeypatch.setattr(coordinator, "decide", broken)
    effects = CoordinatorHandler(PIPELINE)(Rows(), log_record(change.value, 0))
    decision = codec.decode(effects.sends[0].value)
    assert isinstance(decision, Decision)
    assert decision.outcome is Outcome.HOLD
    assert "KeyError: 'g#1' (test_handlers.py:" in decision.reason
    assert decision.hint


def command(kind: CommandKind, argument: str = "") -> OperatorCommand:
    """One about the first shard, as the tracker gets it."""
    shard, target = ShardId("s1", "shop", "tbl00"), TargetTable("merged", "tbl")
    return OperatorCommand(ChangeId("p.commands", 7), target, kind, shard, argument)


def decided(*records: bytes, pipeline: Pipeline = PIPELINE) -> list[Decision]:
    """What a coordinator decides about records of the schema-log, one after the other."""
    rows, fold, found = Rows(), CoordinatorHandler(pipeline), []
    for offset, value in enumerate(records):
        effects = rows.take(fold(rows, log_record(value, offset)))
        decision = codec.decode(effects.sends[0].value)
        assert isinstance(decision, Decision)
        found.append(decision)
    return found


def first_change() -> SchemaChange:
    (send,) = TrackerHandler(PIPELINE)(Rows(), statement(CREATE)).sends
    change = codec.decode(send.value)
    assert isinstance(change, SchemaChange)
    return change


def test_a_defect_refuses_the_command_that_brought_it_to_light(monkeypatch):
    def broken(*_):
        raise KeyError("g#1")

    monkeypatch.setattr(commands, "obey", broken)
    paused = codec.encode(command(CommandKind.PAUSE))
    _, refused = decided(codec.encode(first_change()), paused)
    assert (refused.outcome, refused.code) == (Outcome.REFUSED, "SM-9002")
    assert "KeyError: 'g#1' (test_handlers.py:" in refused.reason and refused.hint


def test_a_held_change_of_a_source_that_is_gone_cannot_be_replaced():
    rows, track, changes = Rows(), TrackerHandler(PIPELINE), []
    for offset, ddl in enumerate(
        (
            "CREATE TABLE tbl00 (id INT PRIMARY KEY, a INT)",
            "CREATE TABLE tbl01 (id INT PRIMARY KEY, a INT)",
            "ALTER TABLE tbl00 MODIFY a JSON",
        )
    ):
        changes += [send.value for send in rows.take(track(rows, statement(ddl, offset))).sends]
    others = replace(PIPELINE, sources=(replace(PIPELINE.sources[0], name="s2"),))
    replacing = command(CommandKind.REPLACE, "ALTER TABLE t ADD b INT")
    *_, held, refused = decided(*changes, codec.encode(replacing), pipeline=others)
    assert held.outcome is Outcome.HOLD
    assert (refused.outcome, refused.code) == (Outcome.REFUSED, "SM-1315")
    assert "leave" in refused.hint


def forwarded(given: OperatorCommand) -> tuple[Effects, OperatorCommand]:
    """What the tracker makes of a command when it knows the table."""
    rows, track = Rows(), TrackerHandler(PIPELINE)
    rows.take(track(rows, statement(CREATE)))
    effects = track(rows, SourceRecord("p.commands", 0, 7, None, codec.encode(given)))
    sent = codec.decode(effects.sends[0].value)
    assert isinstance(sent, OperatorCommand)
    return effects, sent


def test_a_told_schema_is_tracked_only_for_a_target_of_its_shard():
    told = command(CommandKind.SET_SCHEMA, "CREATE TABLE t (id INT PRIMARY KEY, b INT)")
    assert forwarded(told)[0].puts
    effects, sent = forwarded(replace(told, target=TargetTable("merged", "other")))
    assert not effects.puts
    assert sent.schema is not None, "the coordinator says why it is refused"


def test_a_defect_in_reading_a_told_schema_refuses_it(monkeypatch):
    def broken(*_):
        raise KeyError("g#1")

    monkeypatch.setattr(tracker, "command_with_schema", broken)
    effects, sent = forwarded(command(CommandKind.SET_SCHEMA, CREATE))
    assert not effects.puts
    assert (sent.schema, sent.code) == (None, "SM-9002") and "KeyError" in sent.error
    _, refused = decided(codec.encode(first_change()), codec.encode(sent))
    assert (refused.outcome, refused.code) == (Outcome.REFUSED, "SM-9002")


@pytest.mark.parametrize(
    ("flavour", "version", "held"),
    [
        ("mysql", "5.7", False),
        ("mariadb", "10.11", False),
        ("mariadb", "11.8", False),
        ("mysql", "8.0", True),
    ],
)
def test_the_default_collation_of_the_sources_servers_tells_whether_keys_can_collide(
    flavour: str, version: str, held: bool
):
    """By default utf8mb4 pads before MySQL 8.0.1 and on MariaDB: no key there ends in spaces."""
    (source,) = PIPELINE.sources
    pipeline = replace(
        PIPELINE,
        sources=(replace(source, flavour=flavour, version=version),),
        target=replace(PIPELINE.target, version="5.7.44"),
    )
    rows, tracked = Rows(), Rows()
    track = TrackerHandler(pipeline)
    outcomes = []
    for number, collate in enumerate(("", " COLLATE utf8mb4_unicode_ci")):
        ddl = f"CREATE TABLE tbl0{number} (c VARCHAR(9) CHARSET utf8mb4{collate} PRIMARY KEY)"
        (change,) = tracked.take(track(tracked, statement(ddl, number))).sends
        # A worker of its own each time: what it knows of defaults comes from the pipeline file.
        effects = rows.take(CoordinatorHandler(pipeline)(rows, log_record(change.value, number)))
        decision = codec.decode(effects.sends[0].value)
        assert isinstance(decision, Decision)
        outcomes.append(decision)
    assert (outcomes[0].outcome is Outcome.HOLD) is held
    assert outcomes[1].outcome is Outcome.EMIT
    if held:
        assert "keys that differ in trailing spaces alone collide" in outcomes[0].reason
    else:
        (modify,) = outcomes[1].statements
        assert "COLLATE utf8mb4_bin" in modify.sql


def test_the_coordinator_reads_what_an_earlier_version_stored_with_the_present_texts():
    columns = "ID INT PRIMARY KEY, G INT AS (ROUND(ID))"
    (first,) = TrackerHandler(PIPELINE)(Rows(), statement(f"CREATE TABLE tbl00 ({columns})")).sends
    (second,) = TrackerHandler(PIPELINE)(
        Rows(), statement(f"CREATE TABLE tbl01 ({columns})", 1)
    ).sends
    change = codec.decode(first.value)
    assert isinstance(change, SchemaChange) and change.after is not None
    earlier = replace(change, after=with_texts(change.after, lambda _: "round(`ID`)"))
    old = coordinator.initial(change.target)
    step = coordinator.decide(old, earlier)
    rows = Rows()
    rows.take(Effects(TargetStates().puts(old, step.state, [change.shard], "s1")))
    assert any(b"round(`ID`)" in row for row in rows.values())

    effects = rows.take(CoordinatorHandler(PIPELINE)(rows, log_record(second.value, 1)))

    decision = codec.decode(effects.sends[0].value)
    assert isinstance(decision, Decision)
    assert (decision.outcome, decision.statements) == (Outcome.NOOP, ())
