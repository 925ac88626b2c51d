from __future__ import annotations

import json
from dataclasses import replace

import pytest

from shardmerge.agents.coordination import coordinator
from shardmerge.agents.handling.effects import SourceRecord
from shardmerge.agents.handling.handlers import CoordinatorHandler, TrackerHandler
from shardmerge.schemas.model.errors import ContractError
from shardmerge.schemas.pipeline.file import parse_pipeline
from shardmerge.schemas.records import codec
from shardmerge.schemas.records.decisions import Decision, JoinedSchema, Outcome
from shardmerge.schemas.records.schema_changes import SchemaChange

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
    assert outcomes[0].outcome is Outcome.EMIT
    assert (outcomes[1].outcome is Outcome.HOLD) is held
    if held:
        assert "keys that differ in trailing spaces alone collide" in outcomes[1].reason
    else:
        (modify,) = outcomes[1].statements
        assert "COLLATE utf8mb4_bin" in modify.sql
