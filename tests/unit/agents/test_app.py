"""What the Faust app asks of its topics and settings; nothing is started."""

from __future__ import annotations

from pathlib import Path

import pytest

from shardmerge.agents.app import build_app
from shardmerge.agents.runtime.settings import AgentSettings
from shardmerge.schemas.model.errors import ConfigError
from shardmerge.schemas.pipeline.topics import MAX_RECORD_BYTES
from tests.recorded import pipeline


def test_changelogs_are_compacted_long_before_a_gigabyte(tmp_path: Path):
    app = build_app(pipeline(), AgentSettings(data_directory=tmp_path))
    topics = {name: table.changelog_topic for name, table in app.tables.items()}
    assert topics.keys() == {"tracked-tables", "target-states"}
    for topic in topics.values():
        assert topic.compacting
        assert MAX_RECORD_BYTES < int(topic.config["segment.bytes"]) < 2**28
        assert int(topic.config["max.message.bytes"]) == MAX_RECORD_BYTES


def test_a_failpoint_that_is_none_stops_the_start(tmp_path: Path):
    settings = AgentSettings(data_directory=tmp_path, failpoint="tracker.somewhere:1")
    with pytest.raises(ConfigError, match=r"tracker\.somewhere:1"):
        build_app(pipeline(), settings)
