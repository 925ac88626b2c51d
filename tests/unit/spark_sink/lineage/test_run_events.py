"""Reports as OpenLineage's events; each event of these tests is held against its JSON schema."""

from __future__ import annotations

from dataclasses import replace

from shardmerge.schemas.model.actions import Adoption
from shardmerge.schemas.model.tables import Column
from shardmerge.schemas.records.decisions import Decision, StatementKind
from shardmerge.spark_sink.lineage.reports import (
    RunState,
    ShardFeed,
    StatementReport,
    TargetReport,
    TargetTableNow,
)
from tests.unit.spark_sink.decided import decision, key
from tests.unit.spark_sink.lineage.lined import (
    BIG,
    INT,
    OTHER_RUN,
    RUN,
    TARGET,
    addition,
    column,
    creation,
    events,
    shard,
)

TABLE = TargetTableNow((Column("id", BIG), Column("c", INT)), {"id#1": "id", "b#1": "c"})
FEED = ShardFeed(shard("a"), (column("id"), column("b")))
STARTED = TargetReport(TARGET, RUN, RunState.START, 1_700_000_000_123, 0, TABLE, (FEED,))


def executed(
    statement_, decided: Decision | None = None, feed: ShardFeed | None = None
) -> StatementReport:
    return StatementReport(
        TARGET, OTHER_RUN, RUN, key(3), statement_, 1000, 2500, decided, TABLE, feed
    )


def test_a_start_names_job_servers_and_tables() -> None:
    [event] = events(STARTED)
    assert (event["eventType"], event["eventTime"]) == ("START", "2023-11-14T22:13:20.123+00:00")
    assert (event["job"]["namespace"], event["job"]["name"]) == ("shardmerge", "shop.merged.t")
    kind = event["job"]["facets"]["jobType"]
    assert (kind["processingType"], kind["emissionPattern"]["eventContentMode"]) == (
        "STREAMING", "ACCUMULATIVE",
    )  # fmt: skip
    assert event["run"]["facets"]["processing_engine"]["version"] == "1.2.3"
    [source], [target] = event["inputs"], event["outputs"]
    assert (source["namespace"], source["name"]) == ("mysql://db1:3306", "app.a")
    assert (target["namespace"], target["name"]) == ("mysql://dwh:3307", "merged.t")
    assert [(f["name"], f["type"]) for f in target["facets"]["schema"]["fields"]] == [
        ("id", "bigint"), ("c", "int"),
    ]  # fmt: skip


def test_a_column_comes_from_the_shards_column_of_its_identity() -> None:
    """The shard's column is still named ``b``, the target's is ``c`` by now."""
    [event] = events(STARTED)
    found = event["outputs"][0]["facets"]["columnLineage"]["fields"]
    place = {"namespace": "mysql://db1:3306", "name": "app.a"}
    same = {"type": "DIRECT", "subtype": "IDENTITY", "masking": False}
    assert found["c"]["inputFields"] == [{**place, "field": "b", "transformations": [same]}]
    [wider] = found["id"]["inputFields"][0]["transformations"]
    assert (wider["subtype"], wider["description"]) == ("TRANSFORMATION", "int as bigint")


def test_a_column_without_a_source_has_no_inputs() -> None:
    """An origin column, a column that no shard has, and one whose values are left out."""
    table = replace(
        TABLE,
        columns=(*TABLE.columns, Column("shard", INT)),
        names={**TABLE.names, "@shard": "shard"},
    )
    columns = (column("id"), column("shard", id_="@shard"), column("b"), column("x", id_=""))
    feed = ShardFeed(shard("a"), columns, ("b#1",))
    [event] = events(replace(STARTED, table=table, feeds=(feed,)))
    lineage = event["outputs"][0]["facets"]["columnLineage"]["fields"]
    assert [len(lineage[name]["inputFields"]) for name in ("id", "c", "shard")] == [1, 0, 0]
    told = [field["name"] for field in event["inputs"][0]["facets"]["schema"]["fields"]]
    assert told == ["id", "b", "x"]


def test_a_condition_of_the_route_filters_the_whole_table() -> None:
    [event] = events(STARTED, where="b > 3")
    [found] = event["outputs"][0]["facets"]["columnLineage"]["dataset"]
    assert (found["field"], found["transformations"][0]["subtype"]) == ("b", "FILTER")


def test_an_event_has_no_more_shards_than_the_pipeline_file_says() -> None:
    feeds = tuple(replace(FEED, shard=shard(f"a{n}")) for n in range(5))
    found = list(events(replace(STARTED, feeds=feeds)))
    assert [event["eventType"] for event in found] == ["START", "RUNNING", "RUNNING"]
    assert [len(event["inputs"]) for event in found] == [2, 2, 1]
    assert len({event["run"]["runId"] for event in found}) == 1


def test_rows_are_told_without_what_was_told_before() -> None:
    report = TargetReport(TARGET, RUN, RunState.RUNNING, 5000, 42)
    [event] = events(report)
    [target] = event["outputs"]
    assert target["outputFacets"]["outputStatistics"]["rowCount"] == 42
    assert (event["inputs"], target["facets"]) == ([], {})


def test_a_failed_run_says_why() -> None:
    [event] = events(TargetReport(TARGET, RUN, RunState.FAIL, 5000, 42, error="no way"))
    assert event["eventType"] == "FAIL"
    assert event["run"]["facets"]["errorMessage"]["message"] == "no way"


def test_a_statement_is_a_run_below_the_targets() -> None:
    decided = decision(3, shard("a"), 5, columns=("id", "c"))
    began, ended = events(executed(addition("c"), decided, FEED))
    assert (began["eventType"], ended["eventType"]) == ("START", "COMPLETE")
    assert began["eventTime"] < ended["eventTime"]
    assert ended["job"]["name"] == "shop.merged.t.ddl"
    sql = ended["job"]["facets"]["sql"]
    assert (sql["query"], sql["dialect"]) == ("ALTER TABLE … ADD `c`", "mysql")
    parent = ended["run"]["facets"]["parent"]
    assert (parent["run"]["runId"], parent["job"]["name"]) == (RUN, "shop.merged.t")
    tags = {tag["key"]: tag["value"] for tag in ended["run"]["facets"]["tags"]["tags"]}
    assert (tags["decision"], tags["change"]) == ("3", "s1@3.0")
    assert ended["inputs"][0]["name"] == "app.a"
    facets = ended["outputs"][0]["facets"]
    assert facets["lifecycleStateChange"]["lifecycleStateChange"] == "ALTER"
    assert [field["name"] for field in facets["schema"]["fields"]] == ["id", "c"]
    # The shard's column b has another name in the target.
    [source] = facets["columnLineage"]["fields"]["c"]["inputFields"]
    assert (source["name"], source["field"]) == ("app.a", "b")


def test_a_statement_that_makes_the_table_creates_it() -> None:
    _, ended = events(executed(creation(Column("id", INT))))
    change = ended["outputs"][0]["facets"]["lifecycleStateChange"]
    assert (change["lifecycleStateChange"], ended["inputs"]) == ("CREATE", [])


def test_what_changes_rows_only_changes_no_table() -> None:
    rows = replace(addition("c"), kind=StatementKind.ROWS, actions=())
    adopted = replace(addition("c"), actions=(Adoption("column:c", ""),))
    for statement in (rows, adopted):
        _, ended = events(executed(statement))
        assert "lifecycleStateChange" not in ended["outputs"][0]["facets"]
