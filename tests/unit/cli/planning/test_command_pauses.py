"""``shardmerge plan``: steps that pause shards, ways out, and orders that pause none."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.cli.planning.pipelines import PIPELINE
from tests.unit.cli.planning.rollouts import CONFLICT, rollout, shown

PAUSE = CONFLICT.replace("DATE", "INT")
"""With ``existing_rows = "hold"``: nobody can tell the target's values of the column."""


def holding_rows(pipeline: Path) -> Path:
    """The pipeline; its route pauses a shard whose existing rows may differ."""
    text = PIPELINE.replace('"merged.t"', '"merged.t"\nexisting_rows = "hold"')
    pipeline.write_text(text, encoding="utf-8")
    return pipeline


def test_a_pause_ends_with_1_and_shows_the_shard_ways_out_and_a_safe_order(pipeline: Path) -> None:
    found = rollout(holding_rows(pipeline), PAUSE)
    assert found.exit_code == 1
    text = found.stdout
    assert "      PAUSES s1/app.t_1: its rows wait until an operator resumes it\n" in text
    assert f"way out: shardmerge command resume --pipeline {pipeline} --shard s1/app.t_1" in text
    told = "NOT CLEAN: 0 holds, 2 pauses, 0 conflicts, statements that lose values: 0"
    assert f"{told}; paused at the end: s1/app.t_1, s2/app.t_1\n" in text
    assert "safe order: this order leads to no hold and no pause; steps moved: 1" in text
    assert text.endswith("\n  1, 3, 2, 4\n")


def test_a_pause_is_in_json_and_markdown(pipeline: Path) -> None:
    found = shown(holding_rows(pipeline), PAUSE)
    assert (found["clean"], found["holds"], found["pauses"]) == (False, 0, 2)
    assert found["left_paused"] == ["s1/app.t_1", "s2/app.t_1"]
    pauses = [step["decisions"][0]["pauses"] for step in found["steps"]]
    assert pauses == [[], ["s1/app.t_1"], [], ["s2/app.t_1"]]
    assert (found["order"]["steps"], found["order"]["pauses"]) == ([1, 3, 2, 4], [])
    text = rollout(pipeline, PAUSE, "--markdown").stdout
    assert text.startswith("### ❌ shardmerge plan: shop\n")
    assert "⏸️ **pauses** `s1/app.t_1`" in text
    assert "#### Step 2 pauses `s1/app.t_1`\n\nIts rows wait until an operator" in text
    assert "#### Step 2 holds" not in text


def test_a_pause_that_every_order_leads_to_is_told(pipeline: Path) -> None:
    found = shown(holding_rows(pipeline), PAUSE.partition("  - {shard: s2")[0])
    assert (found["pauses"], found["left_paused"]) == (1, ["s1/app.t_1"])
    assert (found["order"]["steps"], found["order"]["pauses"]) == ([], [])
    assert found["order"]["note"].endswith("own order leads to a hold or a pause")


PAUSE_AND_CONFLICT = CONFLICT.replace("a INT)", "a INT, b INT)").replace(
    "steps:",
    "steps:\n"
    "  - {shard: s1/app.t_1, sql: ALTER TABLE t_1 DROP COLUMN b}\n"
    "  - {shard: s1/app.t_1, sql: ALTER TABLE t_1 ADD COLUMN b INT}",
)


@pytest.mark.parametrize(
    ("bound", "steps", "why"),
    [
        (2_000, [1, 2, 3, 5, 4, 6], "every order of these steps pauses or holds a shard"),
        (1, [1, 2, 3, 5, 6, 4], "an order that pauses no shard may exist"),
    ],
)
def test_where_a_pause_cannot_be_avoided_the_safe_order_still_avoids_holds(
    pipeline: Path, bound: int, steps: list[int], why: str
) -> None:
    found = shown(holding_rows(pipeline), PAUSE_AND_CONFLICT, "--bound", bound)
    assert (found["holds"], found["pauses"]) == (1, 1)
    order = found["order"]
    assert order["steps"] == steps
    assert order["pauses"] == ["s1/app.t_1"]
    assert order["note"].startswith("this order leads to no hold, but it pauses s1/app.t_1")
    assert order["note"].endswith(why)


def test_policies_that_pause_are_shown_side_by_side(pipeline: Path) -> None:
    found = shown(pipeline, PAUSE, "--compare", "existing_rows=hold,accept")["alternatives"]
    told = {each["setting"]: (each["pauses"], each["left_paused"]) for each in found}
    assert told == {
        "existing_rows=hold": (2, ["s1/app.t_1", "s2/app.t_1"]),
        "existing_rows=accept": (0, []),
    }
    assert found[0]["steps"][1] == "no-op, pauses 1 shard"
    lines = rollout(pipeline, PAUSE, "--compare", "existing_rows=hold").stdout.splitlines()
    assert lines[-1].endswith("held at the end: none, 2 pauses")
