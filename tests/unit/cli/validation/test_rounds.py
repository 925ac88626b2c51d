"""Comparing again and again: what ends a round, and what the metrics say."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from shardmerge.cli.main import main
from shardmerge.cli.validation.report_shapes import RowDifference, ValidatedTarget
from shardmerge.cli.validation.rounds import keep_comparing
from shardmerge.cli.validation.validation_meter import ValidationMeter
from shardmerge.schemas.model.errors import ConfigError, StackError


class Ended(BaseException):
    """The process is ended."""


def report(*kinds: str, complete: bool = True, obstacles: int = 0) -> ValidatedTarget:
    found = tuple(RowDifference(kind, ("1",), "", (), 0, 0) for kind in kinds)
    return ValidatedTarget(
        "m.t", 1, complete, "", (), ("id",), (), 50, 1, 10, found, 0, (), obstacles, ()
    )


def values(meter: ValidationMeter) -> dict[tuple[str, ...], object]:
    names = ((s.family.name.removeprefix("shardmerge_validate_"), s) for s in meter.samples())
    return {(name, *sample.labels): sample.value for name, sample in names}


def run(rounds: list[list[ValidatedTarget] | Exception], meter: ValidationMeter) -> list[float]:
    """Play these rounds; the pauses that were made."""
    pauses: list[float] = []
    left = iter(rounds)

    def compare() -> Iterator[ValidatedTarget]:
        each = next(left)
        if isinstance(each, Exception):
            raise each
        yield from each

    def sleep(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == len(rounds):
            raise Ended

    with pytest.raises(Ended):
        keep_comparing(compare, meter, 60, sleep=sleep, now_s=lambda: 1_000.0 + len(pauses))
    return pauses


def test_each_round_replaces_what_the_one_before_found() -> None:
    meter = ValidationMeter()
    assert run([[report("extra", "extra", "missing")], [report("missing")]], meter) == [60, 60]
    found = values(meter)
    assert [found["differences", "m.t", kind] for kind in ("missing", "extra", "differs")] == [
        1, 0, 0,
    ]  # fmt: skip
    assert found["rows_total", "m.t"] == 100
    assert found["completed_timestamp_seconds", "m.t"] == 1_001
    assert found["failures_total",] == 0


def test_what_does_not_answer_ends_only_its_round() -> None:
    meter = ValidationMeter()
    away = StackError("Kafka does not answer", code="SM-4101")
    assert run([[report("extra")], away, [report()]], meter) == [60, 60, 60]
    assert values(meter)["failures_total",] == 1
    assert values(meter)["differences", "m.t", "extra"] == 0


def test_a_comparison_that_is_not_complete_keeps_the_time_of_the_latest_one() -> None:
    meter = ValidationMeter()
    run([[report()], [report(complete=False, obstacles=2)]], meter)
    assert values(meter)["completed_timestamp_seconds", "m.t"] == 1_000
    assert values(meter)["uncompared_shards", "m.t"] == 2


def test_a_wrong_pipeline_file_ends_the_process() -> None:
    def compare() -> Iterator[ValidatedTarget]:
        raise ConfigError("no target is called x", code="SM-5601")

    with pytest.raises(ConfigError):
        keep_comparing(compare, ValidationMeter(), 60)


@pytest.mark.parametrize("option", [["--resume", "state"], ["--repair", "sql"]])
def test_what_makes_no_sense_again_and_again_is_refused(option: list[str], tmp_path: Path) -> None:
    text = Path("docker/pipeline.toml").read_text(encoding="utf-8")
    file = tmp_path / "pipeline.toml"
    file.write_text(text, encoding="utf-8")
    told = CliRunner().invoke(
        main, ["validate", "--continuous", *option, "--pipeline", str(file)],
        env={"MYSQL_PASSWORD": "x"},
    )  # fmt: skip
    assert told.exit_code == 2
    assert "--continuous takes neither" in told.output
