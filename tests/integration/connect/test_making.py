"""A watchdog that makes connectors starts while others are failed, or stopped for a repair."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from shardmerge.connectors.binlog.source_offset import SourceOffset
from shardmerge.connectors.connect.connect_rest import ConnectRest
from shardmerge.connectors.debezium.connector_names import connector_name
from shardmerge.connectors.deploy import deploy_connectors
from shardmerge.connectors.repair.marked_config import MarkedConfig
from shardmerge.local.servers.stack import LocalStack
from shardmerge.schemas.model.errors import StackError
from shardmerge.schemas.pipeline.text import pipeline_text

from .conftest import Play, make_play
from .test_connectors import wait_for
from .watchdog_process import start_watchdog


@pytest.mark.timeout(600)
def test_a_watchdog_starts_and_watches_whatever_state_its_connectors_are_in(
    rest: ConnectRest, stack: LocalStack, tmp_path: Path
) -> None:
    """One source is away and its task failed, one is within a repair, one is new, one is well."""
    ports = stack.ports
    well, marked, new = (make_play(stack, ports.source1) for _ in range(3))
    away = make_play(stack, ports.source2)
    plays = (away, marked, new, well)
    pipeline = replace(well.pipeline, sources=tuple(p.pipeline.sources[0] for p in plays))
    names = {p.source: connector_name(pipeline, p.pipeline.sources[0]) for p in plays}
    for play in plays:
        with play.sql() as run:
            run("CREATE TABLE t (id INT PRIMARY KEY)")
    old = tuple(source for source in pipeline.sources if source.name != new.source)
    deploy_connectors(replace(pipeline, sources=old), rest)
    for play in (away, marked, well):
        wait_for(partial(_streams, rest, names[play.source]))
    config = rest.config(names[marked.source])

    def state(play: Play) -> str:
        status = rest.status(names[play.source])
        if status is None:
            return "ABSENT"
        return "RUNNING" if status.is_running else "FAILED" if status.is_failed else status.state

    # As a watchdog leaves a connector that is killed while it brings it past a statement.
    rest.stop(names[marked.source])
    MarkedConfig(rest, names[marked.source]).change({"max.batch.size": "1", "max.queue.size": "2"})
    in_repair = rest.config(names[marked.source])
    with pytest.raises(StackError, match="the watchdog repairs"):
        deploy_connectors(replace(pipeline, sources=(marked.pipeline.sources[0],)), rest)
    assert rest.config(names[marked.source]) == in_repair
    stack.kill("source2")
    rest.restart(names[away.source])  # a task that starts while its server is down fails at once
    wait_for(lambda: state(away) == "FAILED")

    path = tmp_path / "pipeline.toml"
    path.write_text(pipeline_text(pipeline), encoding="utf-8")
    log = start_watchdog(stack, path, "--create", "--interval", "1")
    try:
        pid = stack.status()["watchdog"]
        wait_for(lambda: state(new) == "RUNNING")
        wait_for(lambda: state(marked) == "RUNNING" and rest.config(names[marked.source]) == config)
        assert f"connector_delayed connector={names[away.source]}" in log.read_text()
        stack.kill("source1")
        rest.restart(names[well.source])
        wait_for(lambda: state(well) == "FAILED")
        stack.start("source1")
        stack.start("source2")
        for play in plays:
            with play.sql() as run, play.reader(play.topic("t")) as rows:
                run("INSERT INTO t VALUES (1)")
                assert rows.ids(1) == [1]
        assert stack.status()["watchdog"] == pid
    finally:
        stack.stop("watchdog")


def _streams(rest: ConnectRest, name: str) -> bool:
    """Whether a connector has ended its first snapshot."""
    offset = rest.offset(name)
    return offset is not None and not SourceOffset(offset).is_snapshot
