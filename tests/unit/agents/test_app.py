"""What the Faust app asks of its topics and settings; nothing is started."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from shardmerge.agents.app import build_app, main, viewed_topics
from shardmerge.agents.runtime.recovery import changelogs
from shardmerge.agents.runtime.settings import AgentSettings
from shardmerge.schemas.model.errors import ConfigError
from shardmerge.schemas.pipeline import topics
from shardmerge.schemas.pipeline.text import pipeline_text
from shardmerge.schemas.pipeline.topics import MAX_RECORD_BYTES, TopicSpec
from shardmerge.schemas.pipeline.web import OFF, TOKEN
from tests.access_pages import IVAN, with_tokens
from tests.recorded import pipeline


def test_changelogs_are_compacted_long_before_a_gigabyte(tmp_path: Path):
    app = build_app(pipeline(), AgentSettings(data_directory=tmp_path))
    changelogs = {name: table.changelog_topic for name, table in app.tables.items()}
    assert changelogs.keys() == {"tracked-tables", "target-states"}
    for topic in changelogs.values():
        assert topic.compacting
        assert MAX_RECORD_BYTES < int(topic.config["segment.bytes"]) < 2**28
        assert int(topic.config["max.message.bytes"]) == MAX_RECORD_BYTES


def test_changelogs_are_made_as_faust_would_make_them(tmp_path: Path):
    app = build_app(pipeline(), AgentSettings(data_directory=tmp_path))
    made: dict[str, Any] = {}

    async def create_topic(topic: str, partitions: int, replication: int, **more: Any) -> None:
        policies = [name for name in ("compacting", "deleting") if more[name]]
        assert policies == ["compacting"]
        config = {"cleanup.policy": "compact", **more["config"]}
        made[topic] = TopicSpec(topic, partitions, replication, config)

    async def declare() -> None:
        app.producer = SimpleNamespace(maybe_start=_nothing, create_topic=create_topic)
        for table in app.tables.values():
            await table.changelog_topic.declare()

    asyncio.run(declare())
    assert {spec.name: spec for spec in changelogs(app)} == made


async def _nothing() -> None: ...


@pytest.mark.parametrize("commands", [OFF, TOKEN])
def test_a_worker_makes_every_topic_that_its_pages_are_made_of(commands: str):
    of = replace(pipeline(), web=replace(pipeline().web, commands=commands))
    made = {spec.name for spec in (*topics.own_topics(of), *topics.page_topics(of))}
    assert {spec.name for spec in viewed_topics(of)} <= made


class Producer:
    """Keeps the values that it is given."""

    def __init__(self) -> None:
        self.values: list[bytes] = []

    async def maybe_start(self) -> None:
        pass

    async def send(self, topic: str, key: bytes, value: bytes, **_: object) -> asyncio.Future[None]:
        self.values.append(value)
        return asyncio.get_running_loop().create_future()


def test_records_that_are_sent_together_come_to_the_producer_in_one_turn_of_the_loop(
    tmp_path: Path,
):
    """Else the producer makes a request of each."""

    async def sent() -> tuple[list[bytes], int]:
        app = build_app(pipeline(), AgentSettings(data_directory=tmp_path))
        app.producer = producer = Producer()
        topic = app.tables["tracked-tables"].changelog_topic
        await topic.send(key=b"k", value=b"0")
        turns: list[int] = []
        asyncio.get_running_loop().call_soon(turns.append, 1)
        for value in (b"1", b"2", b"3"):
            await topic.send(key=b"k", value=value)
        return producer.values, len(turns)

    assert asyncio.run(sent()) == ([b"0", b"1", b"2", b"3"], 0)


def test_a_failpoint_that_is_none_stops_the_start(tmp_path: Path):
    settings = AgentSettings(data_directory=tmp_path, failpoint="tracker.somewhere:1")
    with pytest.raises(ConfigError, match=r"tracker\.somewhere:1"):
        build_app(pipeline(), settings)


def test_tokens_that_cannot_be_used_stop_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    file = tmp_path / "pipeline.toml"
    file.write_text(pipeline_text(with_tokens(tmp_path)), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert main(["--pipeline", str(file), "--web-host", "0.0.0.0"]) == 2
    assert "SM-6901: [web]: with commands = 'token'" in capsys.readouterr().err
    (tmp_path / "olga").unlink()
    assert main(["--pipeline", str(file)]) == 2
    told = capsys.readouterr().err
    assert "SM-5705" in told
    assert IVAN not in told
