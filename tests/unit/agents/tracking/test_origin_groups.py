"""A shard whose names give no fitting value to an origin column is held from the first."""

from __future__ import annotations

import json

from shardmerge.agents.tracking.tracker import track
from shardmerge.connectors.debezium.envelope import schema_change_event
from shardmerge.schemas.ddl.grammar import ServerContext
from shardmerge.schemas.model.origin import Origin, OriginColumn, OriginPart
from shardmerge.schemas.model.policies import RoutePolicies
from shardmerge.schemas.pipeline.routing import RoutingRule
from shardmerge.schemas.records.schema_changes import SchemaChange

NUMBER = OriginColumn(OriginPart.GROUP, "_n", "n", "tinyint")
RULE = RoutingRule(
    ".*", r"shop_(?P<n>\w+)", "t", "m", "t", policies=RoutePolicies(origin=Origin((NUMBER,)))
)


def created(database: str) -> SchemaChange:
    ddl = "CREATE TABLE t (id INT PRIMARY KEY)"
    source = {"name": "s1", "file": "binlog.000001", "pos": 4, "db": database, "snapshot": "false"}
    value = {"source": source, "databaseName": database, "ddl": ddl, "tableChanges": []}
    event = schema_change_event("s1", 0, None, json.dumps(value).encode())
    (change,) = track({}, event, (RULE,), ServerContext()).changes
    return change


def test_a_value_that_fits_goes_on() -> None:
    change = created("shop_7")
    assert (change.error, change.after is None) == ("", False)
    assert RULE.group_values(change.shard) == {"n": "7"}


def test_a_value_that_does_not_fit_holds_the_shard_and_says_what_to_change() -> None:
    for database, told in (("shop_eu", "'eu' is no whole number"), ("shop_200", "200 is not from")):
        change = created(database)
        assert change.after is None
        assert f"s1/{database}.t: group n for origin column '_n': " in change.error
        assert told in change.error
        assert "let the group's expression match less" in change.hint
        assert RULE.group_values(change.shard) == {}
