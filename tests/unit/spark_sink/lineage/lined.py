"""Targets, shards and reports, as the tests of lineage write them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from openlineage.client.serde import Serde

from shardmerge.schemas.model.actions import ColumnAddition, ColumnRename, TableCreation
from shardmerge.schemas.model.names import ShardId, TargetTable
from shardmerge.schemas.model.shard_columns import ShardColumn
from shardmerge.schemas.model.tables import Column, Index, IndexKind, IndexPart, TableSchema
from shardmerge.schemas.model.types import ColumnType
from shardmerge.schemas.pipeline.file import parse_pipeline
from shardmerge.schemas.pipeline.settings import Pipeline
from shardmerge.schemas.records.decisions import Binding, StatementKind, TargetStatement
from shardmerge.spark_sink.lineage.reports import Report
from shardmerge.spark_sink.lineage.run_events import RunEvents
from tests.lineage_schema import faults

TARGET = TargetTable("merged", "t")
INT, BIG = ColumnType("int"), ColumnType("bigint")
RUN, OTHER_RUN = (f"00000000-0000-4000-8000-00000000000{n}" for n in "12")
FILE = """
[pipeline]
name = "shop"
[kafka]
bootstrap_servers = "kafka:9092"
[connect]
url = "http://connect:8083"
[[sources]]
name = "s1"
host = "db1"
port = 3306
user = "u"
password = "p"
server_id = 1
[[routes]]
database = "app"
table = ".*"
target = "merged.t"
WHERE
[target]
host = "dwh"
port = 3307
user = "u"
password = "p"
[lineage]
transport = "http"
url = "http://lineage:5000"
max_inputs = 2
"""


def pipeline(where: str = "") -> Pipeline:
    return parse_pipeline(FILE.replace("WHERE", f'where = "{where}"' if where else ""), {})


def shard(name: str) -> ShardId:
    return ShardId("s1", "app", name)


def column(name: str, kind: ColumnType = INT, id_: str | None = None) -> ShardColumn:
    return ShardColumn(f"{name}#1" if id_ is None else id_, Column(name, kind))


def creation(*columns: Column) -> TargetStatement:
    key = Index("PRIMARY", IndexKind.PRIMARY, (IndexPart(columns[0].name),))
    first = replace(columns[0], nullable=False)
    schema = TableSchema(columns=(first, *columns[1:]), indexes=(key,))
    binds = tuple(Binding(f"{c.name}#1", c.name) for c in columns)
    return TargetStatement(
        "CREATE TABLE …", StatementKind.EXPANDING, "", ("table",), binds,
        actions=(TableCreation(schema),),
    )  # fmt: skip


def addition(name: str) -> TargetStatement:
    return TargetStatement(
        f"ALTER TABLE … ADD `{name}`", StatementKind.EXPANDING, "", (f"column:{name}",),
        (Binding(f"{name}#1", name),), actions=(ColumnAddition(Column(name, INT)),),
    )  # fmt: skip


def rename(name: str, to: str) -> TargetStatement:
    return TargetStatement(
        f"ALTER TABLE … RENAME `{name}`", StatementKind.SWITCHING, "", (f"column:{name}",),
        (Binding(f"{name}#1", to),), actions=(ColumnRename(name, to),),
    )  # fmt: skip


def events(report: Report, where: str = "") -> Iterator[dict[str, Any]]:
    """The events of a report as a server gets them; each is one that the specification allows."""
    for event in RunEvents(pipeline(where), "1.2.3").of(report):
        found = json.loads(Serde.to_json(event))
        assert faults(found) == []
        yield found
