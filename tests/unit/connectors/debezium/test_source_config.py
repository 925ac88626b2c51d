"""The computed configuration, and the rendered examples that show it."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path
from typing import Any

import pytest

from shardmerge.connectors.debezium.connector_names import connector_name
from shardmerge.connectors.debezium.signals import signal_database
from shardmerge.connectors.debezium.source_config import (
    connector_config,
    keeping_snapshot,
    schema_history_topic,
)
from shardmerge.connectors.formats.avro_names import avro_name
from shardmerge.schemas.model.errors import ConfigError
from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.pipeline import topics
from shardmerge.schemas.pipeline.file import parse_pipeline
from shardmerge.schemas.pipeline.routing import RoutingRule
from shardmerge.schemas.pipeline.settings import Pipeline, Source

ROOT = Path(__file__).resolve().parents[4]
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
        ("event.processing.failure.handling.mode", "fail"),
        ("event.converting.failure.handling.mode", "fail"),
    ],
)
def test_a_choice_that_loses_nothing_is_made(key: str, value: str) -> None:
    assert config()[key] == value


def test_the_json_of_mysql_57_is_read_as_that_server_writes_it() -> None:
    def json_of(version: str, flavour: str = "mysql") -> str | None:
        return config(flavour=flavour, version=version).get("exact.json")

    assert json_of("5.7.22") == json_of("5.7") == "mysql57"
    assert [json_of("8.0.15"), json_of("9.7"), json_of("10.11", "mariadb")] == [None] * 3


def test_values_are_exact_where_the_workers_have_the_converter_for_it() -> None:
    made = config()
    assert made["exact.type"] == "shardmerge.connect.ExactValues"
    assert made["exact.binary.handling.mode"] == made["binary.handling.mode"]

    without = dataclasses.replace(PIPELINE.connect, exact_values=False)
    plain = config(dataclasses.replace(PIPELINE, connect=without))
    assert {k for k in made if k not in plain} == {
        "converters",
        "exact.type",
        "exact.binary.handling.mode",
        "transforms",
        "transforms.once.type",
        "driver.tinyInt1isBit",
        "driver.yearIsDateType",
        "schema.history.internal",
    }


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


def test_a_broker_or_worker_that_stands_for_a_minute_ends_no_transaction() -> None:
    timeout_ms = int(config()["producer.override.transaction.timeout.ms"])
    # Of the broker: transaction.max.timeout.ms, by default.
    assert 60_000 < timeout_ms < 15 * 60_000


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


def test_mariadb_is_not_read_without_the_schema_history_of_ours() -> None:
    without = dataclasses.replace(PIPELINE.connect, exact_values=False)
    pipeline = dataclasses.replace(PIPELINE, connect=without)
    assert config(pipeline)["connector.class"].endswith("MySqlConnector")
    with pytest.raises(ConfigError, match="loses rows when it is restarted"):
        config(pipeline, flavour="mariadb")


def test_mysqls_ddl_is_read_by_the_grammar_that_takes_more_of_it() -> None:
    assert config()["ddl.parser.type"] == "legacy"
    assert "ddl.parser.type" not in config(flavour="mariadb")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"databases": "a,b"}, r"databases 'a,b' has a comma"),
        ({"tables": r"a\.t\d{1,3}"}, "tables .* has a comma"),
        ({"databases": "("}, "not a regular expression"),
    ],
)
def test_what_debezium_would_misread_is_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        config(**changes)


def test_a_connector_only_describes_the_tables_that_the_sink_loads() -> None:
    assert config(snapshot="debezium")["snapshot.mode"] == "initial"
    assert config(snapshot="spark")["snapshot.mode"] == "no_data"


@pytest.mark.parametrize(
    ("had", "wanted", "gets"),
    [
        ("initial", "spark", "initial"),
        ("when_needed", "spark", "when_needed"),
        ("recovery", "spark", "no_data"),
        ("no_data", "spark", "no_data"),
        ("", "spark", "no_data"),
        # Else nobody would read the rows.
        ("no_data", "debezium", "initial"),
    ],
)
def test_a_first_snapshot_that_is_under_way_keeps_its_mode(
    had: str, wanted: str, gets: str
) -> None:
    new = config(snapshot=wanted)
    kept = keeping_snapshot(new, {"snapshot.mode": had} if had else {})
    assert kept == {**new, "snapshot.mode": gets}


def test_columns_that_a_route_leaves_out_are_not_read() -> None:
    rules = (
        RoutingRule("s1", "app", r"(?P<kind>t)_\d+", "merged", "t", leave_out="secret|card_.*"),
        RoutingRule("other", "app", ".*", "merged", "u", leave_out="x"),
    )
    pipeline = dataclasses.replace(PIPELINE, routes=rules)
    found = config(pipeline, name="s1")["column.exclude.list"]

    assert found == r"(?:app)\.(?:(?:t)_\d+)\.(?:secret|card_.*)"
    assert re.fullmatch(found, "app.t_12.card_number")
    assert not re.fullmatch(found, "app.t_12.a_secret")
    assert "column.exclude.list" not in config()


def test_shards_that_share_a_topic_are_moved_there_and_nothing_else_is() -> None:
    rule = RoutingRule(".*", "(?P<db>app|.*)", r"t_\d+", "m", "t", row_topic="m.t")
    own = RoutingRule(".*", "app", "u", "m", "u")
    away = dataclasses.replace(rule, source="s8", row_topic="m.away")
    pipeline = dataclasses.replace(PIPELINE, routes=(own, away, rule))
    made = config(pipeline, name="s7")
    assert made["transforms"] == "once,rows3"
    moved = {k.removeprefix("transforms.rows3."): v for k, v in made.items() if "rows3." in k}
    pattern = moved.pop("topic.regex")
    assert moved == {
        "type": "io.debezium.transforms.ByLogicalTableRouter",
        "topic.replacement": "m.t",
        "key.enforce.uniqueness": "true",
        "logical.table.cache.size": "65536",
    }
    assert re.fullmatch(pattern, "s7.app.t_1")
    signals = topics.row_topic(
        ShardId("s7", signal_database(pipeline, source(name="s7")), "signals")
    )
    wide = dataclasses.replace(rule, table=".*")
    everything = config(dataclasses.replace(pipeline, routes=(wide,)), name="s7")
    pattern = everything["transforms.rows1.topic.regex"]
    assert re.fullmatch(pattern, "s7.app.t_1")
    for topic in ("s7", "s8.app.t_1", "__debezium-heartbeat.s7", signals, "m.t", "s7.app._t_gho"):
        assert not re.fullmatch(pattern, topic)
    assert config()["transforms"] == "once"


def test_an_epoch_is_written_into_every_record() -> None:
    rule = RoutingRule(".*", "app", r"t_\d+", "m", "t", row_topic="m.t")
    pipeline = dataclasses.replace(PIPELINE, routes=(rule,))
    made = config(pipeline, name="s7", epoch=2)
    assert made["transforms"] == "once,rows1,epoch"
    assert {k: v for k, v in made.items() if k.startswith("transforms.epoch.")} == {
        "transforms.epoch.type": "org.apache.kafka.connect.transforms.InsertField$Value",
        "transforms.epoch.static.field": "shardmerge_epoch",
        "transforms.epoch.static.value": "2",
    }
    assert config(epoch=2)["transforms"] == "once,epoch"


def formatted(row_format: str, **kafka: Any) -> dict[str, str]:
    if row_format == "avro":
        kafka.setdefault("avro_converter", "confluent")
    changed = dataclasses.replace(PIPELINE.kafka, row_format=row_format, **kafka)
    return config(dataclasses.replace(PIPELINE, kafka=changed))


def test_keys_have_no_schema_in_any_format_because_their_bytes_choose_the_partition() -> None:
    for made in (
        formatted("json"), formatted("json-schemas"),
        formatted("avro", schema_registry="http://r:8081"),
    ):  # fmt: skip
        keys = {key: value for key, value in made.items() if key.startswith("key.converter")}
        assert keys == {
            "key.converter": "org.apache.kafka.connect.json.JsonConverter",
            "key.converter.schemas.enable": "false",
            "key.converter.decimal.format": "NUMERIC",
        }


def test_json_with_schemas_differs_from_json_in_one_key() -> None:
    one, other = formatted("json"), formatted("json-schemas")
    assert {k for k in one | other if one.get(k) != other.get(k)} == {
        "value.converter.schemas.enable"
    }


def test_apicurios_converter_writes_confluents_framing() -> None:
    made = formatted(
        "avro",
        schema_registry="https://r:8080/apis/ccompat/v7",
        avro_converter="apicurio",
        schema_registry_user="u",
        schema_registry_password="p",
    )
    prefix = "value.converter.apicurio."
    assert made["value.converter"] == "io.apicurio.registry.utils.converter.AvroConverter"
    assert made[f"{prefix}registry.url"] == "https://r:8080/apis/registry/v2"
    assert made[f"{prefix}registry.as-confluent"] == "true"


def test_apicurios_converter_gets_the_user_by_the_names_of_2_and_of_3() -> None:
    """Source: ``SchemaResolverConfig`` of 2.6.13 and 3.2.5; the latter is in Debezium's image."""
    address = {"schema_registry": "http://r/apis/ccompat/v7", "avro_converter": "apicurio"}
    made = formatted("avro", schema_registry_user="u", schema_registry_password="p", **address)

    assert {key: value for key, value in made.items() if ".auth." in key} == {
        "value.converter.apicurio.auth.username": "u",
        "value.converter.apicurio.auth.password": "p",
        "value.converter.apicurio.registry.auth.username": "u",
        "value.converter.apicurio.registry.auth.password": "p",
    }
    assert not [key for key in formatted("avro", **address) if ".auth." in key]


def test_what_apicurios_versions_call_differently_is_left_to_their_defaults() -> None:
    """What 2 calls RETURN_OR_UPDATE is FIND_OR_CREATE_VERSION in 3; each knows its own alone."""
    made = formatted("avro", schema_registry="http://r/apis/ccompat/v7", avro_converter="apicurio")
    assert "value.converter.apicurio.registry.auto-register.if-exists" not in made


def test_any_other_registry_is_used_by_confluents_converter() -> None:
    made = formatted(
        "avro",
        schema_registry="http://r:8081",
        schema_registry_user="u",
        schema_registry_password="p",
    )
    assert made["value.converter"] == "io.confluent.connect.avro.AvroConverter"
    assert made["value.converter.schema.registry.url"] == "http://r:8081"
    assert made["value.converter.ignore.default.for.nullables"] == "true"
    # Source: Confluent's "Using Kafka Connect with Schema Registry"; a value of its own says
    # where the user is, and what is elsewhere is not looked at.
    assert {key: value for key, value in made.items() if ".auth." in key} == {
        "value.converter.basic.auth.credentials.source": "USER_INFO",
        "value.converter.basic.auth.user.info": "u:p",
    }


def test_in_avro_bytes_are_bytes_and_no_two_columns_get_one_name() -> None:
    made = formatted("avro", schema_registry="http://r:8081")
    assert made["binary.handling.mode"] == "bytes"
    assert made["field.name.adjustment.mode"] == "avro_unicode"
    assert "value.converter.decimal.format" not in made


@pytest.mark.parametrize(
    ("column", "name"),
    [
        ("id", "id"), ("a_b", "a_u005fb"), ("a-b", "a_u002db"), ("1st", "_u0031st"),
        ("_x", "_u005fx"), ("ÿ", "_u00ff"), ("ā", "_u101"), ("€", "_u20ac"), ("a1", "a1"),
    ],
)  # fmt: skip
def test_a_column_is_called_as_debezium_calls_it(column: str, name: str) -> None:
    assert avro_name(column) == name
