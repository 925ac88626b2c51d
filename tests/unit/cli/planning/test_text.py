"""A plan as text: numbers and names of many, and runs of like steps."""

from __future__ import annotations

import pytest

from shardmerge.agents.preview.shapes import ShownDecision, ShownFixup, ShownStep
from shardmerge.cli.planning.runs import runs
from shardmerge.cli.planning.text import decision_lines, in_ranges, rows_text, several


@pytest.mark.parametrize(
    ("numbers", "text"),
    [((), ""), ((1,), "1"), ((1, 2, 3), "1-3"), ((2, 1), "2, 1"), ((4, 5, 1, 2, 6), "4-5, 1-2, 6")],
)
def test_neighbours_are_joined(numbers: tuple[int, ...], text: str) -> None:
    assert in_ranges(numbers) == text


def test_of_many_names_the_first_are_told() -> None:
    assert several(tuple("abcdef")) == "a, b, c, d, e, f"
    assert several(tuple("abcdefg")) == "a, b, c, d, e and 2 more"


def test_rows_are_told_as_far_as_they_are_known() -> None:
    assert rows_text(None) == "rows unknown"
    assert rows_text(1200) == "about 1,200 rows"


def step(number: int, sql: str = "ALTER TABLE t_{} DROP a", fixup: bool = False) -> ShownStep:
    shard = f"s1/app.t_{number}"
    fixups = (ShownFixup(shard, "accept", ("a",), "why"),) if fixup else ()
    decision = ShownDecision(
        "m.t", number, shard, "no-op", False, "why", "", "", "", (), (), (), fixups, (), ()
    )
    return ShownStep(number, shard, sql.format(number), "", (decision,))


def test_like_steps_are_one_run_and_others_stand_alone() -> None:
    steps = [step(1), step(2), step(3), step(4, fixup=True), step(5), step(6)]
    assert [(run.first.number, run.more) for run in runs(steps)] == [
        (1, 2), (4, 0), (5, 0), (6, 0),
    ]  # fmt: skip
    other = [step(1), step(2, "ALTER TABLE t_{} DROP b"), step(3)]
    assert [run.more for run in runs(other)] == [0, 0, 0]


def test_reasons_have_their_codes() -> None:
    fixup = ShownFixup("s1/app.t_1", "accept", ("a",), "rows hold NULL", code="SM-1801")
    decision = ShownDecision(
        "m.t", 1, "s1/app.t_1", "emit", False, "a is new", "", "", "", (), (), (), (fixup,), (),
        ("it is wider", "it is older"), ("SM-1701",),
    )  # fmt: skip
    told = list(decision_lines(decision))
    assert told[1:] == [
        "  accept s1/app.t_1 (rows unknown): SM-1801: rows hold NULL",
        "  warning: SM-1701: it is wider",
        "  warning: it is older",
    ]
