"""Requests for snapshots of single tables, and what connectors say about them."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from shardmerge.connectors.debezium.signals import (
    Notice,
    can_be_asked_for,
    notice,
    signal_database,
    signal_table_ddl,
    snapshot_signal,
)
from shardmerge.schemas.model.errors import ConfigError, ContractError
from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.pipeline import topics
from shardmerge.schemas.pipeline.file import parse_pipeline

ROOT = Path(__file__).resolve().parents[4]
ENV = {"SOURCE_PASSWORD": "x", "TARGET_PASSWORD": "x"}
PIPELINE = parse_pipeline((ROOT / "docker" / "pipeline.toml").read_text(), ENV)
SOURCE = PIPELINE.sources[0]


def test_a_request_names_one_table_and_is_recognised_when_it_is_repeated() -> None:
    key, value = snapshot_signal("s1@7.0", ShardId("s1", "app", "t_1"))
    assert key == b"s1"
    assert json.loads(value) == {
        "id": "s1@7.0/app.t_1",
        "type": "execute-snapshot",
        "data": {"type": "incremental", "data-collections": [r"\Qapp.t_1\E"]},
    }
    assert snapshot_signal("s1@7.0", ShardId("s1", "app", "t_1")) == (key, value)
    assert snapshot_signal("s1@7.0", ShardId("s1", "app", "t_2"))[1] != value


@pytest.mark.parametrize(
    ("table", "can"),
    [
        ("t_1", True),
        ("größe", True),
        ("a-(b)", True),
        ("a b", False),
        ("a.b", False),
        ("a`b", False),
        ("a'b", False),
    ],
)
def test_a_table_whose_name_debezium_cannot_tell_is_not_asked_for(table: str, can: bool) -> None:
    assert can_be_asked_for(ShardId("s1", "app", table)) is can


def test_a_signal_table_is_of_one_pipeline_and_source() -> None:
    assert signal_database(PIPELINE, SOURCE) == "shardmerge_demo_s1"
    assert signal_table_ddl(PIPELINE, SOURCE)[1].startswith(
        "CREATE TABLE IF NOT EXISTS `shardmerge_demo_s1`.signals "
    )
    with pytest.raises(ConfigError, match="longer than 64 characters"):
        signal_database(PIPELINE, dataclasses.replace(SOURCE, name="s" * 60))


def test_the_topics_have_one_partition_and_forget_nothing() -> None:
    for spec in (topics.signals(PIPELINE), topics.notifications(PIPELINE)):
        assert spec in topics.own_topics(PIPELINE)
        assert spec.partitions == 1 and spec.config["retention.ms"] == "-1"


def test_a_notification_about_an_incremental_snapshot_is_read() -> None:
    value = {
        "id": "s1@7.0/app.t_1",
        "type": "TABLE_SCAN_COMPLETED",
        "aggregate_type": "Incremental Snapshot",
        "additional_data": {
            "connector_name": "s1", "status": "SUCCEEDED", "scanned_collection": "app.t_1",
        },
        "timestamp": 1,
    }  # fmt: skip
    assert notice(json.dumps(value).encode()) == Notice(
        "s1", "s1@7.0/app.t_1", "TABLE_SCAN_COMPLETED", "SUCCEEDED", "app.t_1"
    )
    value |= {"type": "COMPLETED", "additional_data": {"connector_name": "s1"}}
    assert notice(json.dumps(value).encode()) == Notice("s1", "s1@7.0/app.t_1", "COMPLETED")
    assert notice(json.dumps(value | {"aggregate_type": "Initial Snapshot"}).encode()) is None
    embedded = {"schema": {"type": "struct"}, "payload": value}
    assert notice(json.dumps(embedded).encode()) == notice(json.dumps(value).encode())


@pytest.mark.parametrize("value", [None, b"", b"{}", b"[1]", b"x"])
def test_what_is_no_notification_is_an_error(value: bytes | None) -> None:
    with pytest.raises(ContractError, match="not a notification"):
        notice(value)
