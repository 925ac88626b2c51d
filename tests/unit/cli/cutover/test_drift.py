from __future__ import annotations

from shardmerge.cli.checks.findings import Finding
from shardmerge.cli.cutover.drift import drift_reasons
from shardmerge.cli.drift.drift_reader import TargetDrift
from shardmerge.schemas.records.drift import Difference, DriftKind
from tests.unit.cli.views.pictures import TARGET

NARROWER = Difference("column:a", DriftKind.REFUSES, "`a` bigint", "`a` int")
INDEX = Difference("index:by_a", DriftKind.HARMLESS, "", "KEY `by_a` (`a`)")
GONE = Difference("table", DriftKind.MISSING, "CREATE TABLE `t` (`a` bigint)", "")


def test_a_table_as_decided_hinders_nothing() -> None:
    assert drift_reasons(TARGET, TargetDrift(TARGET), []) == ()


def test_what_an_operator_should_look_at_hinders_and_an_own_index_does_not() -> None:
    found = drift_reasons(TARGET, TargetDrift(TARGET, (NARROWER, INDEX, GONE)), [])
    assert [(reason.code, reason.text.partition(": ")[2]) for reason in found] == [
        ("SM-6707", "column:a is `a` int, decided was `a` bigint"),
        ("SM-6707", "table is nothing, decided was CREATE TABLE `t` (`a` bigint)"),
    ]


def test_a_table_that_no_sink_made_hinders() -> None:
    (found,) = drift_reasons(TARGET, None, [])
    assert (found.code, "not made by a sink" in found.text) == ("SM-6707", True)


def test_what_the_check_finds_hinders() -> None:
    trigger = Finding("merged.t", "a trigger", code="SM-6303")
    (found,) = drift_reasons(TARGET, TargetDrift(TARGET), [trigger])
    assert found.code == "SM-6303"
