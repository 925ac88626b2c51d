"""A sink's lineage, from the pipeline file to how the process ends."""

from __future__ import annotations

import json
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from shardmerge.schemas.model.errors import ConfigError, StateReplaced, TargetError
from shardmerge.schemas.pipeline.lineage.open_lineage import OpenLineage
from shardmerge.spark_sink.driver.lineage.sink_lineage import sink_lineage
from shardmerge.spark_sink.lineage.reports import RunState
from shardmerge.spark_sink.targets.interface import taken_over
from tests.lineage_schema import faults
from tests.unit.spark_sink.decided import TARGET
from tests.unit.spark_sink.driver.lineage.test_lineage_reports import DECIDED, EXECUTED
from tests.unit.spark_sink.lineage.lined import pipeline


class Driver:
    def __init__(self, reports: Any) -> None:
        self.reports = reports

    def end_lineage(self, state: RunState, error: str = "") -> None:
        self.reports.end(state, {TARGET: 3}, error)


def ended(folder: Path, error: Exception | None) -> tuple[str, str]:
    """How the last event of a sink says that it ended, and why."""
    path = folder / "events.jsonl"
    asked = replace(pipeline(), lineage=OpenLineage("file", path=str(path)))
    lineage = sink_lineage(asked)
    assert lineage.reports is not None
    driver = cast(Any, Driver(lineage.reports))
    with suppress(*([] if error is None else [type(error)])), lineage.told_of(driver):
        lineage.reports.step(DECIDED, EXECUTED, {})
        if error is not None:
            raise error
    lineage.close()
    events = [json.loads(line) for line in path.read_text().splitlines()]
    assert [faults(event) for event in events] == [[], []]
    assert events[0]["eventType"] == "START"
    assert [s.value for s in lineage.samples()] == [2, 0, 0]
    message = events[1]["run"]["facets"].get("errorMessage", {}).get("message", "")
    return events[1]["eventType"], message


def test_a_sink_that_is_told_to_end_completes_its_runs(tmp_path: Path) -> None:
    assert ended(tmp_path, None) == ("COMPLETE", "")


def test_a_state_that_is_read_anew_completes_them_too(tmp_path: Path) -> None:
    assert ended(tmp_path, StateReplaced("rebuilt", code="SM-3103")) == ("COMPLETE", "")


def test_a_sink_that_was_replaced_aborts_them(tmp_path: Path) -> None:
    state, message = ended(tmp_path, taken_over(2, 1))
    assert (state, "SM-3103" in message) == ("ABORT", True)


def test_a_sink_that_cannot_go_on_fails_them(tmp_path: Path) -> None:
    state, message = ended(tmp_path, TargetError("table is full", code="SM-3101"))
    assert (state, "table is full" in message) == ("FAIL", True)


def test_without_the_table_nothing_is_loaded_and_nobody_is_told() -> None:
    lineage = sink_lineage(replace(pipeline(), lineage=OpenLineage()))
    assert (lineage.reports, lineage.samples()) == (None, [])
    lineage.close()


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "shardmerge.connectors.access.lineage_client", None)
    with pytest.raises(ConfigError, match="openlineage-python") as caught:
        sink_lineage(pipeline())
    assert caught.value.code == "SM-7110"
