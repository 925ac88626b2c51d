"""A plan as Markdown: nothing of it breaks a table, and it stays short enough for a comment."""

from __future__ import annotations

from dataclasses import replace

import pytest

from shardmerge.agents.holds.shapes import WayOut
from shardmerge.agents.preview.shapes import (
    ShownAlternative,
    ShownDecision,
    ShownOrder,
    ShownPlan,
    ShownStatement,
    ShownStep,
)
from shardmerge.cli.planning.markdown import plan_markdown


def plan(*steps: ShownStep) -> ShownPlan:
    return ShownPlan("p", "files", 1, True, 0, 0, (), (), 0, (), (), steps, None, ())


def step(number: int, sql: str, reason: str) -> ShownStep:
    decision = ShownDecision(
        "m.t", number, "s/a.t", "no-op", False, reason, "", "", "", (), (), (), (), (), ("odd",)
    )
    return ShownStep(number, "s/a.t", sql, "", (decision,))


def test_text_and_code_stay_in_their_cells() -> None:
    text = plan_markdown(plan(step(1, "ALTER TABLE t\n  ADD `a|b` INT", "a_b | <c> *d*")))
    [row] = [line for line in text.splitlines() if line.startswith("| 1 |")]
    assert "`` ALTER TABLE t ADD `a\\|b` INT ``" in row
    assert r"a\_b \| \<c\> \*d\*" in row
    assert row.replace(r"\|", "").count("|") == 5


def test_a_statement_is_shown_with_what_it_waits_for() -> None:
    waits = "the rows of s1/app.t_1 before the change"
    one = step(1, "ALTER TABLE t ADD b INT", "")
    decided = replace(one.decisions[0], statements=(ShownStatement("ALTER …", "rows", waits),))
    text = plan_markdown(plan(replace(one, decisions=(decided,))))
    assert r"rows: `ALTER …`, waits for the rows of s1/app.t\_1 before the change" in text


def test_a_long_plan_is_cut_and_says_so() -> None:
    text = plan_markdown(plan(*(step(n, f"ALTER TABLE t ADD c{n} INT", "x") for n in range(500))))
    assert "400 more rows are left out" in text
    assert len(text) < 65_536


LONG = "ALTER TABLE t " + ", ".join(f"ADD COLUMN a_rather_long_name_{n} INT" for n in range(40))


@pytest.mark.parametrize("length", [1, 50, 3000])
def test_whole_statements_never_make_it_too_long_for_a_comment(length: int) -> None:
    text = plan_markdown(plan(*(step(n, LONG * length, "x") for n in range(90))))
    assert len(text) < 65_000
    shown = sum(line.startswith("| ") and "ALTER" in line for line in text.splitlines())
    assert shown < 90
    assert f"{90 - shown} more rows are left out: `shardmerge plan --json` has all steps." in text


def test_verdict_order_and_holds_stay_when_all_is_long() -> None:
    held = step(1, LONG, "why")
    way = WayOut("shardmerge command skip", "the target gets: " + LONG)
    hold = replace(held.decisions[0], outcome="hold", code="SM-1201", ways=(way,))
    steps = [replace(held, number=n, decisions=(hold,)) for n in range(1, 41)]
    order = ShownOrder(tuple(range(20_000, 0, -1)), 1, False, "this order leads to no hold")
    words = tuple("emit " + "1 expanding, " * 20 for _ in steps)
    sides = [ShownAlternative("mode=a", 0, 0, (), 0, 0, (), words)]
    sides.append(replace(sides[0], setting="mode=b", steps=("no DDL",) * len(steps)))
    text = plan_markdown(
        replace(plan(*steps), clean=False, holds=40, order=order, alternatives=tuple(sides))
    )
    assert len(text) < 65_000
    assert text.startswith("### ❌ shardmerge plan: p\n\n**NOT CLEAN: 40 holds,")
    assert "this order leads to no hold.\n\n`20000, 19999, " in text
    assert "and so on: `shardmerge plan --json` has the whole order." in text
    held_steps = text.count("#### Step ")
    assert 1 <= held_steps < 20
    assert f"Ways out of {40 - held_steps} more holds and pauses are left out" in text
    assert "#### Side by side" in text
    assert "more steps differ: `shardmerge plan --json` has them." in text
