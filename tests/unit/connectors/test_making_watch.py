"""Connectors are made and changed source by source, beside a watchdog that goes on watching."""

from __future__ import annotations

import logging
from contextlib import closing
from dataclasses import replace
from typing import cast

import pytest

from shardmerge.connectors import deploy, making_watch
from shardmerge.connectors.connect.connect_rest import ConnectRest
from shardmerge.connectors.debezium.source_config import connector_config
from shardmerge.connectors.deploy import deploy_connectors
from shardmerge.connectors.making_watch import MakingWatch
from shardmerge.connectors.repair.marked_config import MarkedConfig
from shardmerge.connectors.repair.source_repair import repairs_of
from shardmerge.schemas.model.errors import StackError
from shardmerge.schemas.pipeline.settings import Pipeline, Source
from tests.recorded import pipeline

PIPELINE = pipeline()
S1, S2 = PIPELINE.sources
WANTED = {source.name: connector_config(PIPELINE, source) for source in PIPELINE.sources}


class Cluster:
    """Connect with configurations, where a test can look at them."""

    def __init__(self, **configs: dict[str, str]) -> None:
        self.configs = {f"p.{name}": config for name, config in configs.items()}
        self.states = dict.fromkeys(self.configs, "RUNNING")

    def connectors(self) -> tuple[str, ...]:
        return tuple(self.configs)

    def config(self, name: str) -> dict[str, str] | None:
        return self.configs.get(name)

    def offset(self, _: str) -> None:
        return None

    def status(self, _: str) -> None:
        return None

    def wait_running(self, name: str, *_: object, **__: object) -> None:
        assert self.states[name] == "RUNNING"

    def set_config(self, name: str, config: dict[str, str]) -> None:
        self.configs[name] = config

    def create_or_update(self, name: str, config: dict[str, str]) -> bool:
        changed = self.configs.get(name) != config
        self.configs[name] = config
        self.states.setdefault(name, "RUNNING")
        return changed

    @property
    def rest(self) -> ConnectRest:
        return cast(ConnectRest, self)


@pytest.fixture(autouse=True)
def servers(monkeypatch: pytest.MonkeyPatch) -> dict[str, str | None]:
    """Source → its SQL mode, or None while it is away; Kafka and the workers are fine."""
    modes: dict[str, str | None] = {"s1": S1.sql_mode, "s2": S2.sql_mode}

    def reading_settings(_: Pipeline, source: Source) -> tuple[str, str, str, str]:
        if (mode := modes[source.name]) is None:
            raise StackError(f"source {source.name} is away")
        return source.version, mode, "0", "1"

    monkeypatch.setattr(deploy, "reading_settings", reading_settings)
    for name in ("check_values", "check_shared_topics", "create_topics"):
        monkeypatch.setattr(deploy, name, lambda *_: None)
    for name in ("check_worker", "check_connector"):
        monkeypatch.setattr(deploy, name, lambda *_: None)
    monkeypatch.setattr(deploy, "compresses", lambda *_: False)
    for name in ("unread_by_debezium", "refuse_unread", "prepare_signal_table"):
        monkeypatch.setattr(deploy, name, lambda *_: None)
    monkeypatch.setattr(making_watch, "prepare_signal_table", lambda *_: None)
    return modes


class Making:
    """A watch over a cluster, and the repairs that it asks."""

    def __init__(self, cluster: Cluster, pipeline: Pipeline = PIPELINE) -> None:
        self.repairs = repairs_of(pipeline, cluster.rest)
        self.watch = MakingWatch(pipeline, cluster.rest, self.repairs, 1.0)

    def close(self) -> None:
        for repair in self.repairs.values():
            repair.close()


def test_a_source_that_is_away_keeps_nobody_from_the_others_and_is_tried_again(
    servers: dict[str, str | None], caplog: pytest.LogCaptureFixture
) -> None:
    cluster = Cluster()
    servers["s1"] = None
    with closing(Making(cluster)) as making, caplog.at_level(logging.INFO):
        making.watch.look(0.0)
        assert cluster.configs == {"p.s2": WANTED["s2"]}
        assert "connector_made connector=p.s2" in caplog.text
        assert 'connector_delayed connector=p.s1 error="source s1 is away"' in caplog.text

        servers["s1"] = S1.sql_mode
        making.watch.look(0.5)
        assert making.watch.unfinished() == ("s1",), "the pause goes on"
        making.watch.look(1.0)
        assert cluster.configs == {"p.s1": WANTED["s1"], "p.s2": WANTED["s2"]}
        assert making.watch.unfinished() == ()


def test_what_fails_or_is_stopped_gets_its_configuration_and_is_not_waited_for() -> None:
    cluster = Cluster(s1={**WANTED["s1"], "database.hostname": "old"}, s2=WANTED["s2"])
    cluster.states = {"p.s1": "STOPPED", "p.s2": "FAILED"}
    with closing(Making(cluster)) as making:
        making.watch.look(0.0)
        making.watch.look(1.0)
        assert making.watch.unfinished() == ()
    assert cluster.configs == {"p.s1": WANTED["s1"], "p.s2": WANTED["s2"]}


def test_a_marked_connector_is_left_to_its_repair_and_changed_when_that_has_ended(
    servers: dict[str, str | None],
) -> None:
    cluster = Cluster(s1={**WANTED["s1"], "database.hostname": "old"}, s2=WANTED["s2"])
    MarkedConfig(cluster.rest, "p.s1").change({"max.batch.size": "1"})
    marked = cluster.configs["p.s1"]
    servers["s1"] = None
    with closing(Making(cluster)) as making:
        making.watch.look(0.0)
        assert cluster.configs["p.s1"] is marked
        assert making.watch.unfinished() == ("s1",)

        servers["s1"] = S1.sql_mode
        MarkedConfig(cluster.rest, "p.s1").restore()
        making.watch.look(1.0)
        making.watch.look(3.0)
        assert cluster.configs["p.s1"] == WANTED["s1"]
        assert making.watch.unfinished() == ()


def test_a_connector_is_left_alone_while_its_repair_works() -> None:
    cluster = Cluster(s1={**WANTED["s1"], "database.hostname": "old"}, s2=WANTED["s2"])
    with closing(Making(cluster)) as making:
        with making.repairs["p.s1"].alone() as is_ours:
            assert is_ours
            making.watch.look(0.0)
        assert making.watch.unfinished() == ("s1",)
        assert not making.repairs["p.s1"].is_at_work


def test_a_file_from_before_a_move_delays_one_source_and_its_repair_leaves_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    ahead = connector_config(PIPELINE, replace(S1, host="new", epoch=1))
    cluster = Cluster(s1=ahead)
    with closing(Making(cluster)) as making:
        making.watch.look(0.0)
        assert cluster.configs == {"p.s1": ahead, "p.s2": WANTED["s2"]}
        assert "connector_delayed connector=p.s1" in caplog.text and "SM-6611" in caplog.text
        for _ in range(2):
            assert making.repairs["p.s1"].take_in() == ()
            assert not making.repairs["p.s1"].set_aside()
            assert making.repairs["p.s1"].is_under_repair()
        assert caplog.text.count("connector_ahead connector=p.s1 epoch=1 file_epoch=0") == 1


def test_without_kafka_nothing_is_made_until_it_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = iter([StackError("no broker answers"), None])

    def create_topics(*_: object) -> None:
        if (error := next(answers)) is not None:
            raise error

    monkeypatch.setattr(deploy, "create_topics", create_topics)
    cluster = Cluster()
    with closing(Making(cluster)) as making:
        with pytest.raises(StackError, match="no broker"):
            making.watch.look(0.0)
        making.watch.look(0.5)
        assert cluster.configs == {}
        making.watch.look(1.0)
        assert set(cluster.configs) == {"p.s1", "p.s2"}


def test_apply_leaves_a_marked_connector_deploys_the_others_and_says_so() -> None:
    cluster = Cluster(s1=WANTED["s1"])
    MarkedConfig(cluster.rest, "p.s1").change({"max.batch.size": "1"})
    marked = cluster.configs["p.s1"]
    cluster.states["p.s1"] = "STOPPED"
    with pytest.raises(StackError, match=r"the watchdog repairs p\.s1, or was ended") as raised:
        deploy_connectors(PIPELINE, cluster.rest)
    assert raised.value.code == "SM-4312"
    assert cluster.configs == {"p.s1": marked, "p.s2": WANTED["s2"]}


def test_a_source_that_compresses_its_binlog_gets_no_connector(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(deploy, "compresses", lambda _, source: source.name == "s1")
    cluster = Cluster()
    with closing(Making(cluster)) as making:
        making.watch.look(0.0)
        assert making.watch.unfinished() == ("s1",)
    assert "SM-6114" in caplog.text and "log_bin_compress is ON" in caplog.text
