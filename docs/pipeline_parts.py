"""The generated parts about the pipeline file and the settings of processes."""

from __future__ import annotations

import inspect
from dataclasses import fields
from enum import StrEnum
from typing import Any

from docs.tables import Key, attributes, markdown, parts_of, record_keys, table
from shardmerge.agents.runtime import settings as agents
from shardmerge.connectors.debezium.source_config import connector_config
from shardmerge.connectors.log_lines import LOG_FORMAT
from shardmerge.schemas.model.policies import RowOperation
from shardmerge.schemas.pipeline.connector_properties import REFUSED, TUNABLE
from shardmerge.schemas.pipeline.file import TARGETS, parse_pipeline
from shardmerge.schemas.pipeline.kafka_client import KNOWN
from shardmerge.schemas.pipeline.kafka_client import REFUSED as REFUSED_FOR_KAFKA
from shardmerge.schemas.pipeline.text import pipeline_text
from shardmerge.spark_sink.process import settings as sink
from shardmerge.spark_sink.process.failpoints import SETTING as SINK_FAILPOINT

MINIMAL = """\
[pipeline]
name = "PIPELINE"
[kafka]
bootstrap_servers = "kafka:9092"
[connect]
url = "http://connect:8083"
[[sources]]
name = "SOURCE"
host = "h"
port = 3306
user = "u"
password = "p"
server_id = 1
[[routes]]
database = "app"
table = "t"
target = "merged.t"
[target]
host = "h"
port = 3306
user = "u"
password = "p"
"""


_ROUTE_REQUIRED = ("database", "table", "target")


_ROUTE_WORDS = {
    "target": "The merged table, as `database.table`. Named groups of the three expressions may "
    "stand in it as `\\g<name>`.",
    "origin": "Which origin columns the target gets. Keys: `shard`, `source`, `database`, `table` "
    "and `position`, each with the name of a column; `groups`, with a column for each named group "
    "of the expressions; and `in_keys` (true: the primary key and the "
    "unique keys end with the columns that name the shard).",
} | {
    name: f"Regular expression of the {name}'s name. It must match the whole name."
    for name in ("source", "database", "table")
}


_SINK_VARIABLES = {
    "master": sink.MASTER,
    "driver_memory": sink.DRIVER_MEMORY,
    "ui_port": sink.UI_PORT,
    "log_level": sink.LOG_LEVEL,
    "log_format": LOG_FORMAT,
    "jars": sink.JARS,
    "ivy": sink.IVY,
    "metrics_host": sink.METRICS_HOST,
    "metrics_port": sink.METRICS_PORT,
    "metrics_per_shard": sink.METRICS_PER_SHARD,
    "compiled_code": sink.COMPILED_CODE,
    "standby": sink.STANDBY,
}


_FAILPOINT_MEANING = (
    "Where the sink's driver or one of its tasks kills itself, for tests: `<place>:<passing>`."
)


def route_keys() -> list[Key]:
    """The keys of a route: names and defaults as a written-out file shows them."""
    pipeline = parse_pipeline(MINIMAL, {})
    written = pipeline_text(pipeline).partition("[[routes]]\n")[2].partition("\n\n")[0]
    values: dict[str, Any] = {}
    meanings: dict[str, str] = {}
    for part in parts_of(pipeline.routes[0]):
        values |= {each.name: getattr(part, each.name) for each in fields(part)}
        meanings |= attributes(type(part))
    keys = []
    for line in written.splitlines():
        name, _, text = line.partition(" = ")
        value, kind, default = values.get(name), "str", f"`{text}`".replace("|", "\\|")
        meaning = _ROUTE_WORDS.get(name) or meanings[name]
        if isinstance(value, StrEnum):
            kind = " or ".join(f'`"{each.value}"`' for each in type(value))
            # A policy that two keys share says nothing of either.
            if sum(type(other) is type(value) for other in values.values()) == 1:
                meaning = markdown(inspect.getdoc(type(value)) or "")
        default = "required" if name in _ROUTE_REQUIRED else default
        if name == "mode":
            default = "that of `[pipeline]`"
        if name == "ignore":
            kind = "list of " + ", ".join(f'`"{each}"`' for each in RowOperation)
        if name == "origin":
            kind, default = "table", "none"
        keys.append(Key(name, kind, default, meaning))
    return keys


def refused_properties() -> str:
    """The properties of connectors that are not passed through."""
    rows = []
    for refused in REFUSED:
        names = ", ".join(f"`{name}`" for name in refused.names)
        if refused.values:
            names += f" (the value {', '.join(refused.values)})"
        rows.append((names, markdown(refused.reason), refused.instead or "nothing"))
    return table("properties | reason: the property … | use instead", rows)


def tunable_properties() -> str:
    """The properties that connectors get anyway, and that may be set otherwise."""
    config = connector_config(parse_pipeline(MINIMAL, {}), parse_pipeline(MINIMAL, {}).sources[0])
    return table("property | set to", [(f"`{name}`", f"`{config[name]}`") for name in TUNABLE])


def target_kinds() -> str:
    """The kinds of target, with their versions."""
    rows = [
        (f"`{kind}`", ".".join(map(str, oldest)), f"{newest}.x")
        for kind, (oldest, newest) in TARGETS.items()
    ]
    return table("kind | oldest version | newest version", rows)


def kafka_client() -> str:
    """The properties of ``[kafka.client]``, and why others are refused."""
    known = ", ".join(f"`{name}`" for name in sorted(KNOWN))
    rows = [(f"`{name}`", reason) for name, reason in REFUSED_FOR_KAFKA.items()]
    return f"Taken: {known}.\n\n{table('not taken | why', rows)}"


def environment() -> str:
    """The environment variables of the processes."""
    rows = [
        (f"`{agents.PREFIX}{key.name.upper()}`", key.default, key.meaning)
        for key in record_keys(agents.AgentSettings)
    ]
    rows += [
        (f"`{_SINK_VARIABLES[key.name]}`", key.default, key.meaning)
        for key in record_keys(sink.SinkSettings, ("pipeline_file", "rebuild"))
    ]
    rows.append((f"`{SINK_FAILPOINT}`", '`""`', _FAILPOINT_MEANING))
    return table("variable | default | meaning", rows)
