"""The computed configuration, and the rendered examples that show it."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from shardmerge.connectors.source_config import (
    connector_config,
    connector_name,
    schema_history_topic,
)
from shardmerge.schemas import topics
from shardmerge.schemas.errors import ConfigError
from shardmerge.schemas.names import ShardId
from shardmerge.schemas.pipeline import Pipeline, Source, parse_pipeline

ROOT = Path(__file__).resolve().parents[3]
TEMPLATES = ROOT / "connectors" / "templates"
ENV = {"SOURCE_PASSWORD": "********", "TARGET_PASSWORD": "********"}
PIPELINE = parse_pipeline((ROOT / "docker" / "pipeline.toml").read_text(), ENV)


def source(**changes: object) -> Source:
    return dataclasses.replace(PIPELINE.sources[0], **changes)  # type: ignore[arg-type]


def config(pipeline: Pipeline = PIPELINE, **changes: object) -> dict[str, str]:
    return connector_config(pipeline, source(**changes))


@pytest.mark.parametrize("flavour", ["mysql", "mariadb"])
def test_the_checked_in_example_is_what_is_computed(flavour: str, update_golden: bool) -> None:
    path = TEMPLATES / f"{flavour}-source.json"
    example = {
        "name": connector_name(PIPELINE, source()),
        "config": config(flavour=flavour, tables=r"app\.tbl\d+"),
    }
    text = json.dumps(example, indent=2, ensure_ascii=False) + "\n"
    if update_golden:
        path.write_text(text)

    assert path.read_text() == text, "pytest --update-golden renders it again"


def test_every_value_is_text() -> None:
    assert {type(value) for value in config().values()} == {str}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("exactly.once.support", "required"),
        ("transaction.boundary", "poll"),
        ("skipped.operations", "none"),
        ("decimal.handling.mode", "string"),
        ("value.converter.replace.null.with.default", "false"),
        ("bigint.unsigned.handling.mode", "precise"),
        ("time.precision.mode", "adaptive_time_microseconds"),
        ("binary.handling.mode", "base64"),
        ("include.schema.changes", "true"),
        ("schema.history.internal.skip.unparseable.ddl", "false"),
        ("errors.tolerance", "none"),
    ],
)
def test_a_choice_that_loses_nothing_is_made(key: str, value: str) -> None:
    assert config()[key] == value


def test_row_topics_are_kept_for_ever_and_have_the_pipelines_partitions() -> None:
    connect = dataclasses.replace(PIPELINE.connect, row_partitions=7, replication=3)

    made = config(dataclasses.replace(PIPELINE, connect=connect))

    assert made["topic.creation.default.partitions"] == "7"
    assert made["topic.creation.default.replication.factor"] == "3"
    assert made["topic.creation.default.cleanup.policy"] == "delete"
    assert made["topic.creation.default.retention.ms"] == "-1"
    assert made["topic.creation.default.retention.bytes"] == "-1"


def test_the_prefix_of_the_topics_is_the_sources_name() -> None:
    made = config(name="s7")

    assert topics.schema_changes(PIPELINE, "s7").name == made["topic.prefix"]
    assert topics.row_topic(ShardId("s7", "db", "t")) == f"{made['topic.prefix']}.db.t"


def test_an_open_transaction_of_a_killed_worker_times_out_within_seconds() -> None:
    assert int(config()["producer.override.transaction.timeout.ms"]) <= 15_000


def test_all_tables_of_the_databases_are_read_unless_tables_says_otherwise() -> None:
    assert "table.include.list" not in config(databases="a|b")
    databases = config(databases="a|b", name="s1")["database.include.list"].split(",")
    tables = config(tables=r"a\.t\d+", name="s1")["table.include.list"].split(",")
    # The connector must see the marks that it writes.
    assert databases == ["a|b", "shardmerge_demo_s1"]
    assert tables == [r"a\.t\d+", r"shardmerge_demo_s1\.signals"]


def test_two_sources_never_share_a_place_in_the_signals_topic_or_a_signal_table() -> None:
    one, other = config(name="s1"), config(name="s2")
    assert one["signal.kafka.topic"] == other["signal.kafka.topic"] == "demo.signals"
    for key in ("signal.kafka.groupId", "signal.data.collection"):
        assert one[key] != other[key]


def test_two_pipelines_never_share_a_connector_or_a_schema_history() -> None:
    pipelines = [dataclasses.replace(PIPELINE, name=n) for n in ("a", "a-b")]
    sources = [source(name="b-c"), source(name="c")]

    names = {connector_name(p, s) for p in pipelines for s in sources}
    histories = {schema_history_topic(p, s) for p in pipelines for s in sources}

    assert len(names) == len(histories) == 4


def test_mariadb_is_read_by_its_own_connector() -> None:
    assert config(flavour="mariadb")["connector.class"].endswith("MariaDbConnector")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"databases": "a,b"}, r"databases 'a,b' has a comma"),
        ({"tables": r"a\.t\d{1,3}"}, "tables .* has a comma"),
        ({"databases": "("}, "not a regular expression"),
        ({"snapshot_mode": "sometimes"}, "snapshot_mode 'sometimes' is not known"),
    ],
)
def test_what_debezium_would_misread_is_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        config(**changes)
