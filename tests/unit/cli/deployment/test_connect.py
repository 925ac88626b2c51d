"""``shardmerge connect``: which connectors a call is about, and what it ends with."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from shardmerge.cli.bundles import without_passwords
from shardmerge.cli.deployment import connect as module
from shardmerge.cli.main import main
from shardmerge.cli.views.call_shapes import ConnectorAction
from shardmerge.connectors.debezium.connector_resources import ConnectorResource
from shardmerge.connectors.formats.connector_status import (
    ConnectorState,
    ConnectorStatus,
    TaskStatus,
)
from shardmerge.schemas.model.errors import StackError
from shardmerge.schemas.pipeline.settings import Pipeline
from shardmerge.schemas.pipeline.text import pipeline_text
from shardmerge.schemas.records.plain import from_plain
from tests.recorded import pipeline


class Cluster:
    """A Connect cluster without Connect."""

    url = "http://connect:8083"

    def __init__(self) -> None:
        self.states = {"p.s1": "RUNNING", "p.s2": "RUNNING", "p.s1.whole.0123456789ab": "RUNNING"}
        self.done: list[str] = []
        self.away = False

    def connectors(self) -> tuple[str, ...]:
        return tuple(sorted(self.states))

    def status(self, name: str) -> ConnectorStatus | None:
        if self.away:
            raise StackError("Kafka Connect is away", code="SM-4304")
        if name not in self.states:
            return None
        trace = "java.lang.X: no binlog" if self.states[name] == "FAILED" else ""
        return ConnectorStatus(name, "RUNNING", (TaskStatus(0, self.states[name], trace),))

    def restart(self, name: str) -> None:
        self.done.append(f"restart {name}")

    def restart_failed(self, name: str) -> None:
        self.done.append(f"restart failed of {name}")

    def delete(self, name: str) -> None:
        del self.states[name]

    def close(self) -> None:
        self.done.append("close")


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    made = Cluster()
    monkeypatch.setattr(module, "connect_rest", lambda *_: made)
    return made


def connect(tmp_path: Path, *words: str, text: str = "") -> Result:
    file = tmp_path / "pipeline.toml"
    file.write_text(pipeline_text(without_passwords(pipeline())), encoding="utf-8")
    return CliRunner().invoke(main, ["connect", *words, "--pipeline", str(file)], input=text)


def test_status_ends_with_1_when_a_connector_does_not_run(tmp_path: Path, cluster: Cluster) -> None:
    found = connect(tmp_path, "status")
    assert (found.exit_code, found.stdout) == (0, "p.s1: RUNNING\np.s2: RUNNING\n")
    cluster.states["p.s2"] = "FAILED"
    found = connect(tmp_path, "status")
    assert (found.exit_code, found.stdout) == (
        1, "p.s1: RUNNING\np.s2: FAILED: java.lang.X: no binlog\n",
    )  # fmt: skip
    assert connect(tmp_path, "status", "s1").exit_code == 0
    del cluster.states["p.s2"]
    found = connect(tmp_path, "status", "s2", "--json")
    assert from_plain(ConnectorState, json.loads(found.stdout)).state == "missing"


def test_a_source_that_there_is_not_ends_with_2(tmp_path: Path, cluster: Cluster) -> None:
    found = connect(tmp_path, "restart", "s9")
    assert (found.exit_code, "no source 's9'" in found.stderr) == (2, True)
    assert cluster.done == ["close"]


def test_a_cluster_that_does_not_answer_ends_with_3(tmp_path: Path, cluster: Cluster) -> None:
    cluster.away = True
    found = connect(tmp_path, "status")
    assert (found.exit_code, found.stderr) == (3, "error: SM-4304: Kafka Connect is away\n")


def test_restart_is_about_all_or_the_named_ones(tmp_path: Path, cluster: Cluster) -> None:
    assert connect(tmp_path, "restart").exit_code == 0
    assert connect(tmp_path, "restart", "s2", "--failed").exit_code == 0
    assert cluster.done == [
        "restart p.s1", "restart p.s2", "close", "restart failed of p.s2", "close",
    ]  # fmt: skip


def actions(found: Result) -> list[ConnectorAction]:
    lines = found.stdout.splitlines()
    # The runner echoes what is typed, as a terminal does.
    return [from_plain(ConnectorAction, json.loads(line)) for line in lines if line != " y"]


def test_what_was_done_to_each_connector_is_told_as_json(tmp_path: Path, cluster: Cluster) -> None:
    restarted = connect(tmp_path, "restart", "s2", "--json")
    assert actions(restarted) == [ConnectorAction("s2", "p.s2", "restarted")]
    assert cluster.done[0] == "restart p.s2"

    deleted = connect(tmp_path, "delete", "s1", "--json", text="y\n")

    assert "delete p.s1 at http://connect:8083?" in deleted.stderr
    assert actions(deleted) == [
        ConnectorAction("s1", "p.s1.whole.0123456789ab", "deleted"),
        ConnectorAction("s1", "p.s1", "deleted"),
    ]
    again = connect(tmp_path, "delete", "s1", "--json", "--yes")
    assert actions(again) == [ConnectorAction("s1", "p.s1", "there was none")]


def test_apply_tells_each_connector_that_runs(
    tmp_path: Path, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[float] = []

    def deploy(pipeline: Pipeline, rest: Cluster, timeout_s: float) -> tuple[str, ...]:
        made.append(timeout_s)
        return tuple(f"p.{source.name}" for source in pipeline.sources)

    monkeypatch.setattr(module, "deploy_connectors", deploy)

    plain, as_json = connect(tmp_path, "apply"), connect(tmp_path, "apply", "--json")

    assert (plain.exit_code, plain.stdout) == (0, "p.s1: RUNNING\np.s2: RUNNING\n")
    assert [from_plain(ConnectorState, json.loads(x)) for x in as_json.stdout.splitlines()] == [
        ConnectorState("s1", "p.s1", "RUNNING"),
        ConnectorState("s2", "p.s2", "RUNNING"),
    ]
    assert made == [120.0, 120.0]


def test_delete_asks_and_takes_connectors_that_read_whole_tables_along(
    tmp_path: Path, cluster: Cluster
) -> None:
    assert connect(tmp_path, "delete", text="n\n").exit_code == 1
    assert len(cluster.states) == 3
    found = connect(tmp_path, "delete", "s1", "--yes")
    assert found.exit_code == 0
    assert set(cluster.states) == {"p.s2"}
    assert "p.s1: there was none" in connect(tmp_path, "delete", "s1", "--yes").stdout


@pytest.fixture
def guarded_file(tmp_path: Path) -> Path:
    given = without_passwords(pipeline())
    sources = tuple(replace(s, password="env:SOURCE_PASSWORD") for s in given.sources)
    file = tmp_path / "guarded.toml"
    file.write_text(pipeline_text(replace(given, sources=sources)))
    return file


def rendered(file: Path, *words: str) -> Result:
    return CliRunner().invoke(main, ["connect", "render", "--pipeline", str(file), *words])


def test_the_connectors_are_printed_as_values_resources_or_json(guarded_file: Path) -> None:
    values = yaml.safe_load(rendered(guarded_file).stdout)["strimzi"]["connectors"]
    of_cluster = rendered(guarded_file, "--form", "resources", "--cluster", "line")
    resources = list(yaml.safe_load_all(of_cluster.stdout))
    lines = [json.loads(line) for line in rendered(guarded_file, "--json").stdout.splitlines()]
    names = ["p.s1", "p.s2"]
    assert [each["name"] for each in values] == names
    assert [each["metadata"]["name"] for each in resources] == names
    assert [from_plain(ConnectorResource, line).name for line in lines] == names
    [one] = yaml.safe_load(rendered(guarded_file, "s2").stdout)["strimzi"]["connectors"]
    assert one == values[1]


@pytest.mark.parametrize("words", [("--form", "resources"), ("--cluster", "line")])
def test_resources_need_the_cluster_that_runs_them(
    guarded_file: Path, words: tuple[str, ...]
) -> None:
    assert rendered(guarded_file, *words).exit_code == 2


def test_what_connectors_need_is_made_without_a_connector(
    cluster: Cluster, guarded_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepared: list[Pipeline] = []
    monkeypatch.setattr(module, "prepare_sources", prepared.append)
    words = ["connect", "prepare", "--pipeline", str(guarded_file), "--json"]
    found = CliRunner().invoke(main, words)
    assert [action.done for action in actions(found)] == ["prepared", "prepared"]
    assert [each.name for each in prepared] == ["p"]
    assert cluster.done == []
