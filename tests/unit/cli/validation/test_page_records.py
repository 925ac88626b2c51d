from __future__ import annotations

from dataclasses import replace

import pytest

from shardmerge.cli.validation import page_records
from shardmerge.cli.validation.page_records import (
    MOST_GROUPS,
    MOST_KEYS,
    MOST_NOTES,
    PageRecords,
    record_of,
)
from shardmerge.cli.validation.report import failed_report
from shardmerge.cli.validation.report_shapes import RowDifference, ValidatedTarget
from shardmerge.schemas.model.errors import StackError
from shardmerge.schemas.model.names import ShardId, TargetTable
from shardmerge.schemas.records.codec import encode
from shardmerge.schemas.records.validations import DifferingRows, TargetValidation
from tests.recorded import pipeline

ONE, TWO = "s1/app.t_1", "s2/app.t_2"
REPORT = ValidatedTarget(
    "merged.t", 3, True, "", (ONE, TWO), ("id",), ("id", "a"), 200, 2, 1_500, (), 0, (), 0, ()
)


def row(kind: str, key: str, shard: str = "", since: str = "") -> RowDifference:
    return RowDifference(kind, (key,), shard, ("a",), 0, 0, row={"a": "private"}, since=since)


def test_a_record_tells_what_a_report_says():
    found = record_of(
        replace(
            REPORT,
            differences=(row("differs", "1", ONE), row("extra", "2"), row("differs", "3", ONE)),
            unsettled=(row("unsettled", "9"),),
            obstacles=1,
            left_out=("why",),
        ),
        (),
        10_000,
        2,
    )
    assert found == TargetValidation(
        TargetTable("merged", "t"), 3, 8_500, 10_000, True, 200, 2, extra=1, differs=2,
        unsettled=1, obstacles=1, key=("id",), left_out=("why",), since_ms=10_000, readings=2,
        differing=(
            DifferingRows("differs", ShardId("s1", "app", "t_1"), 2, (("1",), ("3",))),
            DifferingRows("extra", None, 1, (("2",),)),
        ),
    )  # fmt: skip


def test_a_record_is_bounded_and_has_no_values():
    rows = [row("missing", "x" * 5_000, f"s1/app.t_{n % 300}") for n in range(20_000)]
    report = replace(REPORT, differences=tuple(rows), left_out=("y" * 5_000,) * 900)
    found = record_of(report, (), 10_000)
    assert found.missing == 20_000
    assert len(found.differing) == MOST_GROUPS
    assert {len(each.keys) for each in found.differing} == {MOST_KEYS}
    assert {each.rows for each in found.differing} == {67}
    assert len(found.left_out) == MOST_NOTES
    data = encode(found)
    assert len(data) < 500_000
    assert b"private" not in data


def test_the_shard_with_the_most_differences_comes_first():
    rows = (row("missing", "1", ONE), row("missing", "2", TWO), row("missing", "3", TWO))
    found = record_of(replace(REPORT, differences=rows), (), 10_000)
    assert [str(each.shard) for each in found.differing] == [TWO, ONE]


def test_the_oldest_difference_dates_a_record():
    rows = (row("extra", "1", since="1970-01-01T00:00:07.000Z"), row("extra", "2"))
    assert record_of(replace(REPORT, differences=rows), (), 10_000).since_ms == 7_000
    assert record_of(REPORT, (), 10_000).since_ms == 0


def test_a_comparison_that_failed_is_a_record_of_some_rows():
    failed = failed_report("merged.t", StackError("source s1: gone", code="SM-4411"))
    found = record_of(failed, (), 10_000)
    assert (found.record_key, found.code) == ("merged.t/part", "SM-4411")
    assert (found.stopped, found.version) == ("source s1: gone", 0)


def test_kafka_that_does_not_take_tombstones_is_a_warning(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    def refuse(*_: object) -> None:
        raise StackError("the user lacks a right", code="SM-4111")

    monkeypatch.setattr(page_records, "forget_validations", refuse)
    PageRecords(pipeline(), ()).forget(TargetTable("merged", "t"))
    assert capsys.readouterr().err == (
        "merged.t: warning: SM-4415: the pages still show comparisons of the table from before: "
        "SM-4111: the user lacks a right\n"
    )


def test_kafka_that_does_not_take_a_record_is_a_warning(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    def refuse(*_: object) -> None:
        raise StackError("the user lacks a right", code="SM-4111")

    monkeypatch.setattr(page_records, "send_validation", refuse)
    PageRecords(pipeline(), ()).send(REPORT, 10_000)
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err == (
        "merged.t: warning: SM-4415: the pages do not show this comparison: "
        "SM-4111: the user lacks a right\n"
    )
