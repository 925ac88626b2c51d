"""``shardmerge up``: where the started stack is, for people and for machines."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from shardmerge.cli.deployment import local_stack as module
from shardmerge.cli.main import main
from shardmerge.cli.views.call_shapes import StackServer, StartedStack
from shardmerge.schemas.pipeline.settings import Source, Target
from shardmerge.schemas.records.plain import from_plain
from tests.recorded import pipeline


class Line:
    """A local stack without processes."""

    web_url = "http://127.0.0.1:6066"

    def __init__(self, directory: Path, **_: Any) -> None:
        self.directory, self.pipeline = directory.absolute(), pipeline()
        self.pipeline_path = self.directory / "pipeline.toml"

    def is_running(self) -> bool:
        return self.directory.exists()

    def clear(self) -> None:
        pass

    def start(self, prepare: Callable[[], None], say: Callable[[str], None], outlive: bool) -> None:
        assert outlive
        say("starting")

    def leave(self) -> None:
        pass


@pytest.fixture(autouse=True)
def line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "Line", Line)


def test_a_started_stack_is_told_as_json_and_its_start_aside(tmp_path: Path) -> None:
    place = tmp_path / "demo"
    found = CliRunner().invoke(main, ["up", "--json", "--directory", str(place)])
    made = pipeline()
    servers: list[tuple[str, Source | Target]] = [(each.name, each) for each in made.sources]
    assert found.stderr == "starting\n"
    assert from_plain(StartedStack, json.loads(found.stdout)) == StartedStack(
        directory=str(place),
        pipeline_file=str(place / "pipeline.toml"),
        status_pages="http://127.0.0.1:6066/",
        kafka=made.kafka.bootstrap_servers,
        connect=made.connect.url,
        servers=tuple(
            StackServer(name, server.host, server.port, server.user, server.password)
            for name, server in (*servers, ("target", made.target))
        ),
    )


def test_a_started_stack_is_told_as_text(tmp_path: Path) -> None:
    found = CliRunner().invoke(main, ["up", "--directory", str(tmp_path / "demo")])
    assert found.stdout.startswith("starting\n")
    assert "Status pages    http://127.0.0.1:6066/" in found.stdout


def test_a_stack_that_runs_is_not_started_again(tmp_path: Path) -> None:
    found = CliRunner().invoke(main, ["up", "--directory", str(tmp_path)])
    assert (found.exit_code, "already runs" in found.stdout) == (1, True)
