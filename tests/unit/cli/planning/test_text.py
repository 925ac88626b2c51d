"""A plan as text: numbers and names of many, and runs of like steps."""

from __future__ import annotations

from dataclasses import replace

import pytest

from shardmerge.agents.preview.shapes import (
    ShownAlternative,
    ShownDecision,
    ShownFixup,
    ShownPlan,
    ShownStep,
)
from shardmerge.cli.planning.runs import runs
from shardmerge.cli.planning.text import (
    decision_lines,
    in_ranges,
    plan_lines,
    read_again,
    rows_text,
    several,
)


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


def plan(*steps: ShownStep) -> ShownPlan:
    return ShownPlan("p", "files", 1, True, 0, 0, (), (), 0, (), (), steps, None, ())


def reading(number: int, rows: int | None) -> ShownStep:
    """A step that has its table read again, and another one's rows left as they are."""
    shard = f"s1/app.t_{number}"
    found = step(number)
    fixups = (
        ShownFixup(shard, "snapshot", ("a",), "why", rows),
        ShownFixup("s1/app.t_0", "accept", ("a",), "why", 5),
    )
    return replace(found, decisions=(replace(found.decisions[0], fixups=fixups),))


def test_the_rows_of_all_tables_that_are_read_again_are_added() -> None:
    of_two = replace(
        plan(reading(1, 700), reading(2, 800)), read_again=("s1/app.t_1", "s1/app.t_2")
    )
    assert read_again(of_two) == "s1/app.t_1, s1/app.t_2 (about 1,500 rows)"
    half = replace(of_two, steps=(reading(1, 700), reading(2, None)))
    assert read_again(half).endswith("(about 700 rows in 1 of 2 readings, the others unknown)")
    unknown = replace(of_two, steps=(reading(1, None),))
    assert read_again(unknown).endswith("(rows unknown)")


def alternative(setting: str, *steps: str) -> ShownAlternative:
    return ShownAlternative(setting, 0, 0, (), 0, 0, (), steps)


def test_steps_that_a_setting_decides_differently_are_side_by_side() -> None:
    both = (
        alternative("renames=map", "same", "rename"),
        alternative("renames=hold", "same", "hold"),
    )
    told = list(plan_lines(replace(plan(step(1), step(2)), alternatives=both)))
    assert told[-3:] == ["  step 2:", "    renames=map: rename", "    renames=hold: hold"]
    many = tuple(alternative(name, *(f"{name} {n}" for n in range(23))) for name in ("a", "b"))
    told = list(plan_lines(replace(plan(*map(step, range(23))), alternatives=many)))
    assert told[-1] == "  and 3 steps more that differ: --json has them"
