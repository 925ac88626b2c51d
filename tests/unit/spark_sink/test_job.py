"""What the sink's process does, in which order."""

from __future__ import annotations

import socket
import urllib.error
import urllib.request
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from shardmerge.schemas.model.errors import StackError, TargetLost
from shardmerge.spark_sink import job
from shardmerge.spark_sink.process.settings import settings_from
from tests.recorded import pipeline


def test_the_metrics_are_served_while_the_registry_is_awaited(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "pipeline.toml"
    file.write_text("")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings = settings_from(["--pipeline", str(file), "--metrics-port", str(port)], {})
    seen: list[int] = []

    def ask(path: str) -> int:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as error:
            return error.code

    def awaited(*_: object) -> None:
        seen.extend(ask(path) for path in ("/metrics", "/ready"))
        raise StackError("the registry does not answer")

    monkeypatch.setattr(job, "check_admitted", lambda _: None)
    monkeypatch.setattr(job, "awaited_record_format", awaited)
    with pytest.raises(StackError, match="the registry does not answer"):
        job.run(settings, pipeline(), job.Stopped())
    assert seen == [200, 503]
    with pytest.raises(urllib.error.URLError, match="refused"):
        ask("/metrics")


class Away:
    """A target that does not answer; who asks it is told to end."""

    def __init__(self, stopped: job.Stopped) -> None:
        self.stopped, self.is_closed = stopped, False
        self.batches = SimpleNamespace(start=lambda: None)

    def check_server(self) -> None:
        self.stopped.requested = True
        raise TargetLost("away", retryable=True, code="SM-3111")

    def close(self) -> None:
        self.is_closed = True


def test_a_sink_that_is_told_to_end_while_its_target_is_away_ends_well(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "pipeline.toml"
    file.write_text("")
    stopped = job.Stopped()
    target = Away(stopped)
    for name, replacement in {
        "check_admitted": lambda _: None,
        "awaited_record_format": lambda *_: None,
        "open_target": lambda *_: target,
        "create_topics": lambda *_: None,
    }.items():
        monkeypatch.setattr(job, name, replacement)
    job.run(settings_from(["--pipeline", str(file)], {}), pipeline(), stopped)
    assert target.is_closed


def test_a_target_is_closed_when_its_sink_cannot_begin(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "pipeline.toml"
    file.write_text("")
    target = Away(job.Stopped())

    def refused(*_: Any) -> None:
        raise StackError("two partitions")

    for name, replacement in {
        "check_admitted": lambda _: None,
        "awaited_record_format": lambda *_: None,
        "open_target": lambda *_: target,
        "create_topics": refused,
    }.items():
        monkeypatch.setattr(job, name, replacement)
    with pytest.raises(StackError, match="two partitions"):
        job.run(settings_from(["--pipeline", str(file)], {}), pipeline(), target.stopped)
    assert target.is_closed
