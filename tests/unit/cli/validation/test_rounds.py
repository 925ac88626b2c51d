"""Comparing again and again: what ends a round, and what the metrics say."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import pytest
from click.testing import CliRunner

from shardmerge.cli.main import main
from shardmerge.cli.validation.report import lines
from shardmerge.cli.validation.report_shapes import RowDifference, ValidatedTarget
from shardmerge.cli.validation.rounds import Round, keep_comparing
from shardmerge.cli.validation.saved_state import StateFile
from shardmerge.cli.validation.validation_meter import ValidationMeter
from shardmerge.schemas.model.errors import ConfigError, StackError
from shardmerge.schemas.model.names import TargetTable

from .silent_servers import SilentServers
from .test_target_run import ROWS, run_of


class Ended(BaseException):
    """The process is ended."""


def report(
    *kinds: str, target: str = "m.t", complete: bool = True, obstacles: int = 0
) -> ValidatedTarget:
    found = tuple(RowDifference(kind, ("1",), "", (), 0, 0) for kind in kinds)
    return ValidatedTarget(
        target, 1, complete, "", (), ("id",), (), 50, 1, 10, found, 0, (), obstacles, ()
    )


def values(meter: ValidationMeter) -> dict[tuple[str, ...], object]:
    names = ((s.family.name.removeprefix("shardmerge_validate_"), s) for s in meter.samples())
    return {(name, *sample.labels): sample.value for name, sample in names}


Outcome = ValidatedTarget | Exception
AWAY = StackError("Kafka does not answer", code="SM-4101")


def run(
    rounds: list[dict[str, Outcome] | Exception],
    meter: ValidationMeter,
    told: list[ValidatedTarget] | None = None,
) -> list[float]:
    """Play these rounds; the pauses that were made."""
    pauses: list[float] = []
    failed = list[ValidatedTarget]() if told is None else told
    left = iter(rounds)

    @contextmanager
    def begin() -> Iterator[Round]:
        each = next(left)
        if isinstance(each, Exception):
            raise each

        def compare(target: TargetTable) -> ValidatedTarget:
            outcome = each[str(target)]
            if isinstance(outcome, Exception):
                raise outcome
            return outcome

        targets = [TargetTable(*name.split(".")) for name in each]
        yield Round(targets, compare, failed.append)

    def sleep(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == len(rounds):
            raise Ended

    with pytest.raises(Ended):
        keep_comparing(begin, meter, 60, sleep=sleep, now_s=lambda: 1_000.0 + len(pauses))
    return pauses


def test_each_round_replaces_what_the_one_before_found() -> None:
    meter = ValidationMeter()
    assert run(
        [{"m.t": report("extra", "extra", "missing")}, {"m.t": report("missing")}], meter
    ) == [60, 60]
    found = values(meter)
    assert [found["differences", "m.t", kind] for kind in ("missing", "extra", "differs")] == [
        1, 0, 0,
    ]  # fmt: skip
    assert found["rows_total", "m.t"] == 100
    assert found["completed_timestamp_seconds", "m.t"] == 1_001
    assert found["failures_total",] == 0


def test_a_difference_is_known_since_it_was_first_found_until_it_is_gone() -> None:
    meter = ValidationMeter()

    def since(now_s: float, *kinds: str, complete: bool = True) -> list[str]:
        found = meter.dated(report(*kinds, complete=complete), now_s)
        meter.compared(found, now_s)
        return [each.since for each in found.differences]

    def oldest() -> object:
        return values(meter).get(("differing_since_timestamp_seconds", "m.t"))

    first, later = "1970-01-01T00:16:40", "1970-01-01T00:33:20"
    assert [text[:19] for text in since(1_000, "extra")] == [first]
    assert [text[:19] for text in since(2_000, "extra", "missing")] == [first, later]
    assert oldest() == 1_000
    assert [text[:19] for text in since(3_000, "missing", complete=False)] == [later]
    assert oldest() == 1_000  # the part with the other row was not compared
    assert [text[:19] for text in since(4_000, "missing")] == [later]
    assert oldest() == 2_000
    since(5_000)
    assert oldest() is None


def test_a_process_that_resumes_knows_since_when_a_difference_is_there(tmp_path: Path) -> None:
    file, meter = tmp_path / "state", ValidationMeter()
    state = StateFile(file, "p", ())
    meter.dated(report("extra", "missing"), 1_000)
    state.keep_known(meter.known)
    state.end_run()
    state = StateFile(file, "p", ())  # of the next process
    meter = ValidationMeter.of(state.known)
    assert values(meter)["differing_since_timestamp_seconds", "m.t"] == 1_000
    [found] = meter.dated(report("extra"), 2_000).differences
    assert found.since[:19] == "1970-01-01T00:16:40"
    meter.dated(report(), 3_000)
    state.keep_known(meter.known)
    state.end_run()
    assert not file.exists()


def test_a_round_that_cannot_begin_ends_only_itself() -> None:
    meter = ValidationMeter()
    assert run([{"m.t": report("extra")}, AWAY, {"m.t": report()}], meter) == [60, 60, 60]
    assert values(meter)["failures_total",] == 1
    assert values(meter)["differences", "m.t", "extra"] == 0


def test_a_target_that_fails_stops_no_target_behind_it_and_is_told_with_its_code() -> None:
    meter, told = ValidationMeter(), list[ValidatedTarget]()
    other = report("missing", target="m.u")
    run([{"m.t": report("extra")}, {"m.t": AWAY, "m.u": other}], meter, told)
    found = values(meter)
    assert found["differences", "m.u", "missing"] == 1
    assert found["failing", "m.t", "SM-4101"] == 1
    assert found["failures_total",] == 1
    assert found["differences", "m.t", "extra"] == 1
    assert found["completed_timestamp_seconds", "m.t"] == 1_000
    assert all("since" not in line for line in lines(other))
    [dated] = meter.dated(other, 1_000.0).differences
    assert f", since {dated.since}" in "".join(lines(replace(other, differences=(dated,))))
    [failed] = told
    assert (failed.target, failed.code, failed.complete) == ("m.t", "SM-4101", False)
    assert list(lines(failed)) == ["m.t: not compared: SM-4101: Kafka does not answer"]


def test_a_target_that_is_compared_again_fails_no_more() -> None:
    meter = ValidationMeter()
    run([{"m.t": AWAY}, {"m.t": report()}], meter)
    assert not [name for name in values(meter) if name[0] == "failing"]


def test_a_target_that_does_not_exist_any_more_leaves_the_metrics() -> None:
    meter = ValidationMeter()
    run([{"m.t": report("extra"), "m.u": AWAY}, {"m.v": report(target="m.v")}], meter)
    assert {name[1] for name in values(meter) if len(name) > 1} == {"m.v"}


@pytest.mark.parametrize(
    ("counts", "rows"), [([(1, 0), (0, 1)], 1), ([(3, 1)], 2), ([(0, 2), (1, 0)], 2), ([], 0)]
)
def test_without_a_key_a_changed_row_counts_once(counts: list[tuple[int, int]], rows: int) -> None:
    meter = ValidationMeter()
    found = tuple(RowDifference("count", ("7",), "", (), a, b) for a, b in counts)
    meter.compared(replace(report(), differences=found), 1.0)
    assert values(meter)["differences", "m.t", "count"] == rows


def test_a_comparison_that_is_not_complete_keeps_the_time_of_the_latest_one() -> None:
    meter = ValidationMeter()
    run([{"m.t": report()}, {"m.t": report(complete=False, obstacles=2)}], meter)
    assert values(meter)["completed_timestamp_seconds", "m.t"] == 1_000
    assert values(meter)["uncompared_shards", "m.t"] == 2


def test_a_wrong_pipeline_file_ends_the_process() -> None:
    def begin() -> NoReturn:
        raise ConfigError("no target is called x", code="SM-5601")

    with pytest.raises(ConfigError):
        keep_comparing(begin, ValidationMeter(), 60)


def test_what_makes_no_sense_again_and_again_is_refused(tmp_path: Path) -> None:
    text = Path("docker/pipeline.toml").read_text(encoding="utf-8")
    file = tmp_path / "pipeline.toml"
    file.write_text(text, encoding="utf-8")
    told = CliRunner().invoke(
        main, ["validate", "--continuous", "--repair", "sql", "--pipeline", str(file)],
        env={"MYSQL_PASSWORD": "x"},
    )  # fmt: skip
    assert told.exit_code == 2
    assert "--continuous does not take --repair" in told.output


def test_a_killed_round_goes_on_and_the_next_one_begins_anew(tmp_path: Path) -> None:
    file = tmp_path / "state"
    left = run_of(SilentServers(ROWS, dict(ROWS)), state=StateFile(file, "p", ()))
    left.validation.compare_next()
    StateFile(file, "p", ()).save(left.validation)  # and here the process is killed
    state, firsts = StateFile(file, "p", ()), list[int]()

    @contextmanager
    def begin() -> Iterator[Round]:
        def compare(_: TargetTable) -> ValidatedTarget:
            before = len(asked)
            made = run_of(SilentServers(ROWS, dict(ROWS), lambda: asked.append(1)), state=state)
            made.run()
            firsts.append(len(asked) - before)
            assert made.validation.rows == len(ROWS)
            return report()

        yield Round([TargetTable("m", "t")], compare, lambda _: None)

    asked = list[int]()
    pauses = list[float]()

    def sleep(seconds: float) -> None:
        assert not file.exists()
        pauses.append(seconds)
        if len(pauses) == 2:
            raise Ended

    with pytest.raises(Ended):
        keep_comparing(begin, ValidationMeter(), 60, ended=state.end_run, sleep=sleep)
    resumed, anew = firsts
    assert 0 < resumed < anew
