"""The stack's ports and pipeline file; the stack itself runs in the integration tests."""

from __future__ import annotations

import socket
from dataclasses import asdict
from pathlib import Path

import pytest

from shardmerge.local.install.artifacts import Artifacts
from shardmerge.local.servers import stack as module
from shardmerge.local.servers.stack import LocalStack, Ports, main
from shardmerge.schemas.model.errors import StackError
from shardmerge.schemas.pipeline.file import parse_pipeline

ROUTE = """
[[routes]]
database = "app"
table = "tbl.*"
target = "merged.tbl"
"""


def test_free_ports_are_distinct_and_none_is_occupied(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without ports of this machine, where another process may take one meanwhile."""

    def odd_ones_are_occupied(port: int, name: str) -> None:
        if port % 2:
            raise StackError(f"port {port}, needed by {name}, is occupied")

    monkeypatch.setattr(module, "require_free_port", odd_ones_are_occupied)

    ports = list(asdict(Ports.free()).values())

    assert len(set(ports)) == len(ports)
    assert not any(port % 2 for port in ports)


def test_without_enough_free_ports_there_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def occupied(port: int, name: str) -> None:
        raise StackError(f"port {port}, needed by {name}, is occupied")

    monkeypatch.setattr(module, "require_free_port", occupied)

    with pytest.raises(StackError, match="no free ports between 20000 and 32000"):
        Ports.free()


def test_the_pipeline_file_of_a_stack_is_valid(tmp_path: Path) -> None:
    stack = LocalStack(tmp_path, Ports(kafka=1, connect=2, source1=3, source2=4, target=5))

    pipeline = parse_pipeline(
        stack.pipeline_text("demo", ROUTE, extra="[sink]\npoll_interval_ms = 7"), {}
    )

    assert pipeline.kafka.bootstrap_servers == "127.0.0.1:1"
    assert pipeline.connect.url == "http://127.0.0.1:2"
    assert [(s.name, s.port) for s in pipeline.sources] == [("source1", 3), ("source2", 4)]
    assert pipeline.target.port == 5
    assert pipeline.sink.poll_interval_ms == 7


def test_a_stack_with_an_occupied_port_is_refused_before_anything_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nothing = Artifacts(*[tmp_path / "none"] * 6)
    monkeypatch.setattr(module, "resolve", lambda *_: nothing)
    ports = Ports.free()
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", ports.connect))
        holder.listen()

        with pytest.raises(StackError, match=f"port {ports.connect} .* needed by connect"):
            LocalStack(tmp_path / "stack", ports).up()

    assert LocalStack(tmp_path / "stack").status() == {}
    assert LocalStack(tmp_path / "stack").ports == Ports(), "ports of a failed start are not kept"


def test_an_unknown_part_cannot_be_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "resolve", lambda *_: Artifacts(*[tmp_path] * 6))

    with pytest.raises(StackError, match="'zookeeper' is not part of this stack"):
        LocalStack(tmp_path).start("zookeeper")


def test_the_status_of_a_directory_without_a_stack_is_empty(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["status", "--directory", str(tmp_path / "none")]) == 0
    assert capsys.readouterr().out == ""
    assert not (tmp_path / "none").exists(), "looking makes nothing"
