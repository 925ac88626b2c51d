"""The command over recorded topics, with servers that are given their answers."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from shardmerge.cli.main import main
from shardmerge.cli.validation import page_records, repairs, whole_target
from shardmerge.cli.validation import validate as module
from shardmerge.cli.validation.inputs.table_facts import Readings, facts_of
from shardmerge.cli.validation.report import lines
from shardmerge.cli.validation.report_shapes import ValidatedTarget
from shardmerge.schemas.model.errors import StackError
from shardmerge.schemas.pipeline.text import pipeline_text
from shardmerge.schemas.records.plain import from_plain
from shardmerge.schemas.records.progress import ShardProgress, SinkProgress
from shardmerge.schemas.records.validations import TargetValidation
from shardmerge.spark_sink.validation.doubts import Difference, DifferenceKind
from shardmerge.spark_sink.validation.table_validation import TableValidation
from tests.recorded import Recorded
from tests.unit.cli.views.pictures import ONE, TARGET, TWO, conflicting, picture, recorded, reported

from .silent_servers import SilentServers


class Answering(SilentServers):
    """The first shard has all the rows."""

    def range_digests(self, sides, of):
        found = super().range_digests(sides, of)
        return [*found[:2], *((0, 0) for _ in found[2:])]

    def ask(self, side: object, sql: str) -> list[tuple[str, int]]:
        return [("30", 0)] if "TABLE_ROWS" in sql else []

    def close(self) -> None:
        pass


@pytest.fixture(autouse=True)
def sent(monkeypatch: pytest.MonkeyPatch) -> list[TargetValidation]:
    """What the command has sent to the pages."""
    found: list[TargetValidation] = []
    monkeypatch.setattr(page_records, "send_validation", lambda *of: found.append(of[-1]))
    return found


@pytest.fixture
def servers() -> Answering:
    return Answering({n: n for n in range(30)}, {n: n for n in range(30)})


def call(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, servers: Answering, made: Recorded, *words: str
) -> Result:
    progress = SinkProgress(TARGET, 2, 0, shards=(ShardProgress(ONE, 0), ShardProgress(TWO, 0)))
    shown = picture(reported(made, progress))

    class Topics:
        def __init__(self, _: object) -> None:
            pass

        def picture(self) -> object:
            return shown

        def of(self, target):
            return lambda: facts_of(shown, target, Readings())

    monkeypatch.setattr(module, "TopicFacts", Topics)
    monkeypatch.setattr(module, "ServerRows", lambda *_: servers)
    monkeypatch.setattr(whole_target, "LinePassing", lambda *_: servers)
    path = tmp_path / "pipeline.toml"
    path.write_text(pipeline_text(made.pipeline))
    return CliRunner().invoke(main, ["validate", *words, "--pipeline", str(path)])


def test_equal_tables_end_with_0(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    servers: Answering,
    sent: list[TargetValidation],
) -> None:
    found = call(monkeypatch, tmp_path, servers, recorded())
    assert found.exit_code == 0, found.output
    assert found.stdout.startswith("merged.tbl: 30 rows of 2 shards, 1 ranges, ")
    assert found.stdout.endswith("  0 differences\n")
    [record] = sent
    assert (record.record_key, record.is_clean, record.rows) == ("merged.tbl", True, 30)
    assert 0 < record.began_ms <= record.ended_ms <= time.time() * 1000


def test_a_difference_ends_with_1_and_has_the_documented_shape(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, servers: Answering
) -> None:
    servers.merged[99] = 1
    found = call(monkeypatch, tmp_path, servers, recorded(), "--json", "--repair", "sql")
    assert found.exit_code == 1, found.output
    assert isinstance(found.exception, SystemExit), found.exception
    report = from_plain(ValidatedTarget, json.loads(found.stdout))
    assert [(d.kind, d.key) for d in report.differences] == [("extra", ("99",))]
    assert report.differences[0].repair == "DELETE FROM `merged`.`tbl` WHERE `id` IN (99) LIMIT 1;"


def test_the_pages_are_told_which_rows_the_connectors_were_asked_for(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    servers: Answering,
    sent: list[TargetValidation],
) -> None:
    del servers.merged[7]
    monkeypatch.setattr(repairs, "ask", lambda *_: 1)
    found = call(monkeypatch, tmp_path, servers, recorded(), "--repair", "reread")
    assert found.exit_code == 1, found.output
    [record] = sent
    assert (record.missing, record.readings) == (1, 1)
    assert [(str(d.shard), d.keys) for d in record.differing] == [(str(ONE), (("7",),))]


def test_requests_that_kafka_does_not_take_hide_no_difference_from_the_pages(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    servers: Answering,
    sent: list[TargetValidation],
) -> None:
    def fail(*_: object) -> None:
        raise StackError("Kafka did not take 1 requests", code="SM-4107")

    del servers.merged[7]
    monkeypatch.setattr(repairs, "ask", fail)
    found = call(monkeypatch, tmp_path, servers, recorded(), "--repair", "reread")
    assert found.exit_code == 3, found.output
    told = {record.record_key: (record.missing, record.code) for record in sent}
    assert told == {"merged.tbl": (1, ""), "merged.tbl/part": (0, "SM-4107")}


def test_a_comparison_of_one_shard_does_not_stand_for_all(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    servers: Answering,
    sent: list[TargetValidation],
) -> None:
    call(monkeypatch, tmp_path, servers, recorded(), "--shard", str(ONE))
    [record] = sent
    assert (record.record_key, record.only) == ("merged.tbl/part", (ONE,))


def test_no_statement_for_rows_without_a_key_is_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, servers: Answering
) -> None:
    compare = whole_target.compare_target

    def counted(*args, **kwargs):
        run, seconds = compare(*args, **kwargs)
        run.validation.differences = [Difference(DifferenceKind.COUNT, ("99",), counts=(2, 1))]
        return run, seconds

    monkeypatch.setattr(module, "compare_target", counted)
    found = call(monkeypatch, tmp_path, servers, recorded(), "--repair", "sql")
    assert (
        "1 differences of rows without a key have no statement: `shardmerge command reread`"
        in found.stderr
    )


def test_a_server_that_is_lost_when_rows_are_read_hides_no_difference(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, servers: Answering
) -> None:
    def fail(*_: object) -> None:
        raise StackError("source s1: it does not answer", code="SM-4411")

    servers.merged[99] = 1
    monkeypatch.setattr(repairs, "samples", fail)
    found = call(monkeypatch, tmp_path, servers, recorded(), "--repair", "sql")
    assert found.exit_code == 1, found.output
    assert "  1 difference\n" in found.stdout
    assert (
        "rows that differ could not be read: SM-4411: source s1: it does not answer" in found.stderr
    )


def test_a_held_shard_ends_with_1(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, servers: Answering
) -> None:
    patience = ("--patience", "0.01")
    found = call(monkeypatch, tmp_path, servers, conflicting(), "--json", *patience)
    assert found.exit_code == 1, found.output
    assert isinstance(found.exception, SystemExit), found.exception
    assert from_plain(ValidatedTarget, json.loads(found.stdout)).obstacles == 1


def test_a_server_that_does_not_answer_ends_with_3_and_keeps_no_target_from_its_report(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, servers: Answering
) -> None:
    def fail() -> None:
        raise StackError("source s1: it does not answer", code="SM-4411")

    servers.fail = fail
    found = call(monkeypatch, tmp_path, servers, recorded(), "--json")
    assert found.exit_code == 3, found.output
    report = from_plain(ValidatedTarget, json.loads(found.stdout))
    assert (report.target, report.code, report.complete) == ("merged.tbl", "SM-4411", False)


def test_what_was_found_before_a_server_fell_silent_is_told(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    servers: Answering,
    sent: list[TargetValidation],
) -> None:
    del servers.merged[1]

    def fail() -> None:
        raise StackError("source s1: it does not answer", code="SM-4411")

    def settle(_: TableValidation) -> bool:
        servers.fail = fail
        servers.fail()
        return False

    monkeypatch.setattr(TableValidation, "settle", settle)
    found = call(monkeypatch, tmp_path, servers, recorded(), "--json")
    assert found.exit_code == 3, found.output
    report = from_plain(ValidatedTarget, json.loads(found.stdout))
    assert (report.rows, report.in_doubt, report.complete) == (30, 1, False)
    assert (report.code, report.stopped) == ("SM-4411", "source s1: it does not answer")
    told = "\n".join(lines(report))
    assert "not complete: SM-4411: source s1: it does not answer" in told
    assert "1 rows look different" in told
    [record] = sent
    assert (record.rows, record.in_doubt, record.code) == (30, 1, "SM-4411")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["other.t"], "no target is called other.t"),
        (["--shard", "s9/other.x"], "no route leads from s9/other.x"),
    ],
)
def test_a_wrong_call_ends_with_2(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    servers: Answering,
    words: list[str],
    said: str,
) -> None:
    found = call(monkeypatch, tmp_path, servers, recorded(), *words)
    assert found.exit_code == 2
    assert said in found.stderr
