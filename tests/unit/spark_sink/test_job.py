"""What the sink's process does, in which order."""

from __future__ import annotations

import socket
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from shardmerge.schemas.model.errors import StackError
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
