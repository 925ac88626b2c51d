"""Properties of connectors: which ones a pipeline file passes through, and which it may not."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from shardmerge.connectors.debezium.source_config import connector_config
from shardmerge.schemas.model.errors import ConfigError
from shardmerge.schemas.pipeline.connector_properties import (
    ONLY_MYSQL,
    REFUSED,
    TUNABLE,
    connector_properties,
)
from shardmerge.schemas.pipeline.file import parse_pipeline
from shardmerge.schemas.pipeline.routing import RoutingRule
from shardmerge.schemas.pipeline.text import pipeline_text

from .test_file import ENV, GOOD

CONNECT = "[connect.connector]\nmax.queue.size = 100\n"
OF_SOURCE = '[sources.connector]\n"max.queue.size" = "200"\nconnect.timeout.ms = 5\n[[routes]]'
BOTH = GOOD.replace("[target]", f"{CONNECT}[target]").replace("[[routes]]", OF_SOURCE)


def test_properties_reach_the_connector_and_those_of_the_source_win() -> None:
    pipeline = parse_pipeline(BOTH, ENV)

    assert pipeline.connect.connector == (("max.queue.size", "100"),)
    config = connector_config(pipeline, pipeline.sources[0])
    assert config["max.queue.size"] == "200"
    assert config["connect.timeout.ms"] == "5"
    assert parse_pipeline(pipeline_text(pipeline), {}) == pipeline
    bare = connector_config(parse_pipeline(GOOD, ENV), pipeline.sources[0])
    assert config.keys() - bare.keys() == set()
    assert config | {"max.queue.size": "100"} == connector_config(
        pipeline, replace(pipeline.sources[0], connector=(("connect.timeout.ms", "5"),))
    )


@pytest.mark.parametrize("flavour", ["mysql", "mariadb"])
@pytest.mark.parametrize("row_format", ["json", "json-schemas", "avro"])
def test_every_key_that_a_connector_gets_is_refused_or_known_to_be_harmless(
    flavour: str, row_format: str
) -> None:
    pipeline = parse_pipeline(GOOD, ENV)
    kafka = replace(
        pipeline.kafka,
        row_format=row_format,
        schema_registry="http://127.0.0.1:1/apis/ccompat/v7" if row_format == "avro" else "",
        avro_converter="apicurio" if row_format == "avro" else "",
    )
    shared = RoutingRule("s1", "shared", "t", "m", "s", leave_out="x", row_topic="shared.t")
    pipeline = replace(pipeline, kafka=kafka, routes=(shared, *pipeline.routes))
    source = replace(pipeline.sources[0], flavour=flavour, epoch=1, tables=r"app\.t")
    config = connector_config(pipeline, source)

    open_keys = {
        key
        for key, value in config.items()
        if not any(refused.concerns(key, value) for refused in REFUSED if not refused.values)
    }

    assert open_keys == set(TUNABLE) - ({ONLY_MYSQL} if flavour == "mariadb" else set())


def test_no_refusal_hides_another_or_lacks_its_reason() -> None:
    names = [name for refused in REFUSED for name in refused.names]
    assert len(set(names)) == len(names)
    for refused in REFUSED:
        assert refused.reason[0].islower()
        for name in refused.names:
            value = refused.values[0] if refused.values else "x"
            first = next(r for r in REFUSED if r.concerns(name.replace("*", "more"), value))
            assert first is refused, name


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        (
            'skipped.operations = "t"',
            "skipped.operations = 't' cannot be set: it decides which row events come "
            "(use the route's key ignore)",
        ),
        ("transforms.mine.type = 1", "transforms.mine.type = '1' cannot be set"),
        ('"exactly.once.support" = "requested"', "makes delivery exact"),
        ('snapshot.locking.mode = "NONE"', "none lets the schema change"),
        ("max.queue.size = [1]", "must be a text, a number, true or false"),
        ('"a b" = 1', "is no name of a property"),
    ],
)
def test_what_delivery_needs_is_refused_with_the_reason(lines: str, told: str) -> None:
    text = GOOD.replace("[target]", f"[connect.connector]\n{lines}\n[target]")
    with pytest.raises(ConfigError, match=re.escape(told)) as refused:
        parse_pipeline(text, ENV)
    assert "[connect] connector" in refused.value.message


def test_values_are_written_as_connect_reads_them() -> None:
    entry = {"a": True, "b": 1.5, "c": "x", "snapshot": {"locking": {"mode": "minimal"}}}
    assert connector_properties(entry, "w") == (
        ("a", "true"), ("b", "1.5"), ("c", "x"), ("snapshot.locking.mode", "minimal"),
    )  # fmt: skip
    with pytest.raises(ConfigError, match="must be a table"):
        connector_properties("x", "w")
