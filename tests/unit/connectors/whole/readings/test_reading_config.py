"""The connector of a reading: what it reads, and how another process knows it."""

from __future__ import annotations

import json
import re

import pytest

from shardmerge.connectors.debezium.connector_names import reading_name, readings_among
from shardmerge.connectors.debezium.source_config import connector_config
from shardmerge.connectors.whole.readings.open_readings import Wanted
from shardmerge.connectors.whole.readings.reading_config import (
    READING,
    reading_config,
    reading_history,
    reading_offsets,
    reading_topics_among,
    runs_of,
    wanted_of,
)
from shardmerge.schemas.ddl.changes import TableName
from shardmerge.schemas.model.errors import ContractError
from shardmerge.schemas.model.names import ShardId, TargetTable
from tests.unit.connectors.debezium.test_source_config import PIPELINE, source

OWN = f"{PIPELINE.name}.{source().name}"
NAME = reading_name(PIPELINE, source(), "0123456789ab")
TARGET = TargetTable("m", "t")


def want(database: str, table: str) -> Wanted:
    return Wanted(TARGET, ShardId(source().name, database, table), 3)


def config(*wanted: Wanted) -> dict[str, str]:
    return reading_config(PIPELINE, source(), NAME, wanted or (want("app", "t"),))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("snapshot.mode", "initial_only"),
        ("topic.prefix", source().name),
        ("include.schema.changes", "false"),
        ("exactly.once.support", "required"),
        ("offsets.storage.topic", f"{NAME}.offsets"),
        ("schema.history.internal.kafka.topic", f"{NAME}.schema-history"),
        ("topic.heartbeat.prefix", f"__debezium-heartbeat.{NAME}"),
        # Without heartbeats the offset of a complete snapshot is never stored.
        ("heartbeat.interval.ms", "30000"),
        ("custom.metric.tags", "reading=whole"),
        ("errors.max.retries", "0"),
    ],
)
def test_a_reading_is_once_and_keeps_to_itself(key: str, value: str) -> None:
    assert config()[key] == value


def test_its_rows_are_made_as_those_of_the_sources_own_connector() -> None:
    own, reading = connector_config(PIPELINE, source()), config()
    begins = (
        "transforms",
        "key.",
        "value.",
        "producer.",
        "converters",
        "exact",
        "decimal",
        "time.",
    )
    kept = {key for key in own if key.startswith(begins)}
    assert len(kept) > 10
    assert {key: reading.get(key) for key in kept} == {key: own[key] for key in kept}
    assert not [key for key in reading if key.startswith(("signal.", "notification."))]


@pytest.mark.parametrize("table", ["t", "t.2", "a$b", "Größe", "x,y", "(?i)t", r"\Qt\E", "😀"])
def test_no_other_table_is_read(table: str) -> None:
    found = config(want("app.x", table), want("app.x", "other"), want("b", table))
    # Python writes these otherwise than Java.
    tables, databases = (
        [
            re.sub(r"\\x\{([0-9a-f]+)\}", lambda m: re.escape(chr(int(m[1], 16))), pattern)
            .replace("(?-i)", "")
            for pattern in found[f"{kind}.include.list"].split(",")
        ]
        for kind in ("table", "database")
    )  # fmt: skip
    names = {f"app.x.{table}", "app.x.other", f"b.{table}"}
    others = {"app.x.t2", "app_x.t", "app.x.tt", f"c.{table}", "b.other"} - names
    for name in names:
        assert sum(re.fullmatch(pattern, name) is not None for pattern in tables) == 1
    assert not [n for n in others for pattern in tables if re.fullmatch(pattern, n)]
    assert len(databases) == 2
    assert re.fullmatch(databases[0], "app.x")
    assert not re.fullmatch(databases[0], "app_x")
    assert found["table.include.list"].count("(?-i)") == 3, "letters are told apart"


def test_another_process_finds_what_is_read() -> None:
    wanted = (want("app", "t_ä"), want("app", "t"))
    assert wanted_of(config(*wanted)) == tuple(sorted(wanted))
    for broken in ({}, {READING: "7"}, {READING: "no JSON"}, {READING: '[{"shard": 1}]'}):
        with pytest.raises(ContractError):
            wanted_of(broken)


def test_a_reading_is_known_by_its_name_and_its_topics_by_theirs() -> None:
    assert readings_among([OWN, NAME, f"{OWN}.whole", f"{OWN}2.whole.0123456789ab"], OWN) == (NAME,)
    topics = [
        reading_history(NAME),
        reading_offsets(PIPELINE, source(), NAME).name,
        f"__debezium-heartbeat.{NAME}.{source().name}",
    ]
    other = [name.replace("0123456789ab", "ffffffffffff") for name in topics]
    foreign = [
        f"{OWN}.offsets", f"{OWN}.schema-history", f"__debezium-heartbeat.{source().name}",
        f"{source().name}.app.t", f"{OWN}.whole.0123456789ab.t", NAME,
    ]  # fmt: skip
    assert reading_topics_among([*topics, *other, *foreign], OWN) == tuple(sorted(topics + other))


def record(ts_ms: int, *changes: tuple[str, str]) -> bytes:
    told = [{"type": kind, "id": number} for kind, number in changes]
    return json.dumps({"ts_ms": ts_ms, "tableChanges": told}).encode()


HOUR_MS = 3_600_000
SET, DROP = record(5 * HOUR_MS), record(6 * HOUR_MS, ("DROP", '"app"."t"'))
T, U = record(6 * HOUR_MS, ("CREATE", '"app"."t"')), record(7 * HOUR_MS, ("CREATE", '"app"."u"'))
SHARDS = [ShardId("s1", "app", "t"), ShardId("s1", "app", "u")]


def test_a_reading_counts_where_one_run_has_read_each_table() -> None:
    runs = runs_of([SET, DROP, T, None, U])
    assert runs.tables == {TableName("app", "t"): 1, TableName("app", "u"): 1}
    assert runs.is_one_of(SHARDS)
    assert runs.rows_from_ms == 4 * HOUR_MS


def test_a_table_that_no_run_has_read_is_named() -> None:
    assert runs_of([SET, DROP, T]).lacking(SHARDS) == [SHARDS[1]]
    assert runs_of([SET, T, U]).lacking(SHARDS) == []


@pytest.mark.parametrize(
    "history",
    [
        [],
        [SET, DROP, T],
        [SET, T, U, T, U],
        [SET, T, T, U],
        [T, U, record(8, ("CREATE", '"app"."v"'))],
    ],
)
def test_it_does_not_where_a_run_began_again_or_read_something_else(history: list[bytes]) -> None:
    assert not runs_of(history).is_one_of(SHARDS)


@pytest.mark.parametrize("value", [b"no JSON", b"[]", b'{"tableChanges": [7]}'])
def test_what_is_no_schema_history_is_refused(value: bytes) -> None:
    with pytest.raises(ContractError):
        runs_of([value])
