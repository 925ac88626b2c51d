"""What the sink's process does, in which order."""

from __future__ import annotations

import socket
import urllib.error
import urllib.request
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest

from shardmerge.schemas.model.errors import StackError, StateReplaced, TargetLost, WriterReplaced
from shardmerge.spark_sink import job
from shardmerge.spark_sink.barrier.closing import Marks
from shardmerge.spark_sink.driver.lineage.sink_lineage import SinkLineage
from shardmerge.spark_sink.driver.sink_role import SinkRole
from shardmerge.spark_sink.process.settings import settings_from
from shardmerge.spark_sink.rebuilding.merge import Merge
from shardmerge.spark_sink.targets.interface import taken_over
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


@pytest.mark.parametrize(
    ("epoch", "swaps", "expected"),
    [(8, 1, StateReplaced), (8, 0, WriterReplaced), (9, 1, WriterReplaced)],
)
def test_a_writer_epoch_that_a_rebuild_has_ended_makes_the_sink_read_its_state_anew(
    monkeypatch: pytest.MonkeyPatch, epoch: int, swaps: int, expected: type[TargetLost]
) -> None:
    def replaced(*_: object) -> None:
        raise taken_over(epoch, 7)

    for name in ("TopicTail", "Arrivals", "ProgressPublisher", "Intake", "OffsetReader"):
        monkeypatch.setattr(job, name, MagicMock())
    monkeypatch.setattr(job, "Driver", lambda *_, **__: MagicMock(swaps=0))
    monkeypatch.setattr(job, "_run_steps", replaced)
    target, settings = MagicMock(), settings_from(["--pipeline", "f"], {})
    target.state.epoch.return_value = epoch
    target.state.marks.return_value = Marks({}, swaps)
    merge, role, lineage = Merge(pipeline(), "p"), SinkRole(), SinkLineage()
    driving = job._Driving(settings, merge, target, MagicMock(), role, 7, lineage)
    with pytest.raises(expected) as raised:
        driving.run(MagicMock(), job.Stopped())
    assert type(raised.value) is expected


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
