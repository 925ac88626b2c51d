"""A plan as Markdown: nothing of it breaks a table, and it stays short enough for a comment."""

from __future__ import annotations

from shardmerge.agents.preview.shapes import ShownDecision, ShownPlan, ShownStep
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


def test_a_long_plan_is_cut_and_says_so() -> None:
    text = plan_markdown(plan(*(step(n, f"ALTER TABLE t ADD c{n} INT", "x") for n in range(500))))
    assert "400 more rows are left out" in text
    assert len(text) < 65_536
