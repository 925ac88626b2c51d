"""``shardmerge plan``: what is shown as text, JSON and Markdown, the safe order, exit codes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from shardmerge.agents.preview.putting_off import PutOff
from shardmerge.cli.planning import command as module
from shardmerge.cli.planning.side_by_side import Beside
from shardmerge.schemas.model.errors import StackError
from tests.unit.cli.planning.pipelines import PIPELINE
from tests.unit.cli.planning.rollouts import ADDING, CONFLICT, rollout, shown


def test_a_clean_rollout_ends_with_0_and_needs_no_server_and_no_password(pipeline: Path) -> None:
    found = rollout(pipeline, ADDING)
    assert found.exit_code == 0, found.stderr
    assert found.stdout.splitlines() == [
        "plan for pipeline shop: 4 steps, 4 live shards (present: files)",
        "",
        "1. s1/app.t_1: ALTER TABLE `t_1` ADD COLUMN n INT",
        "    emit merged.t/5: column n is new",
        "      expanding: ALTER TABLE `merged`.`t` ADD COLUMN `n` int",
        "        waits for nothing; the shard's rows behind the change wait for it",
        "",
        "2. s1/app.t_2: ALTER TABLE `t_2` ADD COLUMN n INT",
        "    no-op merged.t/6: the target's schema already is the join of its shards' schemas",
        "    and 2 steps more like it",
        "",
        "clean: 0 holds, 0 conflicts, statements that lose values: 0",
    ]


def test_a_conflict_ends_with_1_and_shows_sides_ways_out_and_a_safe_order(pipeline: Path) -> None:
    found = rollout(pipeline, CONFLICT)
    assert found.exit_code == 1
    text = found.stdout
    assert "    HOLD s1/app.t_1: SM-1201: column a, type: date and int" in text
    assert "      int: s2/app.t_1\n" in text
    assert f"way out: shardmerge command skip --pipeline {pipeline} --shard s1/app.t_1" in text
    assert "LOSSY: the values of column a are gone" in text
    assert "released: s1/app.t_1" in text
    assert "NOT CLEAN: 1 hold, 1 conflict" in text
    assert "steps moved: 1 (no order without a hold moves fewer)\n  1, 3, 2, 4\n" in text


@pytest.mark.parametrize("processors", [1, 2])
def test_a_rollout_above_the_bound_gets_an_order_that_puts_off_what_holds(
    pipeline: Path, processors: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "processors", lambda: processors)
    begun: list[object] = []

    class Noted(Beside[PutOff]):
        def __init__(self, work: Callable[[], PutOff]) -> None:
            super().__init__(work)
            begun.append(work)

    monkeypatch.setattr(module, "Beside", Noted)
    found = rollout(pipeline, CONFLICT, "--bound", 5)
    assert found.exit_code == 1, found.stderr
    assert "steps moved: 1 (an order that moves fewer may exist)\n  1, 3-4, 2\n" in found.stdout
    assert len(begun) == processors - 1


@pytest.mark.parametrize("format_", [(), ("--markdown",)])
def test_shards_whose_statements_name_another_table_are_told(
    pipeline: Path, format_: tuple[str, ...]
) -> None:
    text = ADDING.replace("{table} ADD", "t ADD") + (
        "  - {shard: s2/app.t_2, sql: ALTER TABLE t_2 DROP COLUMN b}\n"
        "  - {shard: s1/app.t_3, sql: DELETE FROM t}\n"
    )
    found = rollout(pipeline, text, *format_)
    assert found.exit_code == 0, found.stderr
    assert (
        "ote: no step changes s1/app.t\\_1, s1/app.t\\_2, s2/app.t\\_1, because the statements"
        if format_
        else "note: no step changes s1/app.t_1, s1/app.t_2, s2/app.t_1, because the statements"
    ) in found.stdout


def test_the_ways_out_are_commands_that_exist(pipeline: Path) -> None:
    decision = shown(pipeline, CONFLICT)["steps"][1]["decisions"][0]
    commands = [way["command"].split()[:3] for way in decision["ways"] if way["command"]]
    assert ["shardmerge", "command", "skip"] in commands
    assert all(words[:2] == ["shardmerge", "command"] for words in commands)


def test_json_has_the_documented_shape(pipeline: Path) -> None:
    found = shown(pipeline, CONFLICT)
    assert {key: value for key, value in found.items() if key != "steps"} == {
        "pauses": 0,
        "paused_before": [],
        "left_paused": [],
        "pipeline": "shop",
        "present": "files",
        "shards": 2,
        "clean": False,
        "holds": 1,
        "conflicts": 1,
        "held_before": [],
        "left_held": [],
        "lossy": 1,
        "read_again": [],
        "untouched": [],
        "order": {
            "steps": [1, 3, 2, 4],
            "moved": 1,
            "shortest": True,
            "note": "this order leads to no hold; steps moved: 1 (no order without a hold moves "
            "fewer)",
            "pauses": [],
        },
        "alternatives": [],
    }
    third = found["steps"][2]
    assert (third["number"], third["shard"]) == (3, "s2/app.t_1")
    [decision] = third["decisions"]
    assert decision["outcome"] == "emit"
    assert [(s["kind"], s["lossy"]) for s in decision["statements"]] == [
        ("switching", "the values of column a are gone"),
        ("expanding", ""),
    ]


def test_an_order_without_a_hold_that_does_not_exist_is_not_told(pipeline: Path) -> None:
    text = CONFLICT.partition("steps:")[0] + (
        "steps:\n  - {shard: s1/app.t_1, sql: ALTER TABLE t_1 MODIFY a DATE}\n"
    )
    found = shown(pipeline, text)
    assert found["order"]["steps"] == []
    assert found["order"]["note"].startswith("every order of these steps")
    assert found["left_held"] == ["s1/app.t_1"]


def test_with_a_bound_of_0_no_order_is_searched(pipeline: Path) -> None:
    assert shown(pipeline, CONFLICT, "--bound", 0)["order"] is None


def test_policies_are_shown_side_by_side(pipeline: Path) -> None:
    text = ADDING.replace("ADD COLUMN n INT", "RENAME COLUMN b TO c")
    found = shown(pipeline, text, "--compare", "renames=map,hold,copy")
    told = {each["setting"]: (each["holds"], each["lossy"]) for each in found["alternatives"]}
    assert told == {"renames=map": (0, 0), "renames=hold": (3, 0), "renames=copy": (0, 1)}
    assert found["alternatives"][1]["steps"][0] == "hold SM-1208"
    modes = shown(pipeline, text, "--compare", "mode=optimistic,pessimistic")["alternatives"]
    assert [each["steps"][0] for each in modes] == ["emit (1 expanding)", "waits for the lock"]
    lines = rollout(pipeline, text, "--compare", "renames=map,hold").stdout.splitlines()
    side_by_side = lines[lines.index("side by side:") + 1 :]
    assert side_by_side[0].startswith("  renames=map: 0 holds, 0 conflicts, 1 statement, ")
    assert side_by_side[2:5] == [
        "  step 1:",
        "    renames=map: emit (1 expanding)",
        "    renames=hold: hold SM-1208",
    ]


def test_a_wait_for_the_lock_is_no_hold_unless_it_stays(pipeline: Path) -> None:
    pipeline.write_text(PIPELINE.replace('"shop"', '"shop"\nmode = "pessimistic"', 1))
    found = rollout(pipeline, ADDING)
    assert found.exit_code == 0
    assert "waits for the DDL lock s1/app.t_1: SM-1213" in found.stdout
    some = ADDING.replace('"*"', "s1/app.t_*")
    found = rollout(pipeline, some)
    assert found.exit_code == 1
    assert "held at the end: s1/app.t_1, s1/app.t_2" in found.stdout


def test_rows_that_are_read_again_are_unknown_without_a_server(pipeline: Path) -> None:
    text = ADDING.replace("ADD COLUMN n INT", "ADD COLUMN n DATETIME DEFAULT CURRENT_TIMESTAMP")
    found = rollout(pipeline, text)
    assert "snapshot s1/app.t_1 (rows unknown)" in found.stdout
    assert "tables read again: s1/app.t_1, s1/app.t_2, s2/app.t_1, s2/app.t_2" in found.stdout


def test_markdown_shows_verdict_steps_holds_and_order(pipeline: Path) -> None:
    text = rollout(pipeline, CONFLICT, "--markdown", "--compare", "types=wide,published").stdout
    assert text.startswith("### ❌ shardmerge plan: shop\n\n**NOT CLEAN: 1 hold, 1 conflict")
    assert "#### Step 2 holds `s1/app.t_1`" in text
    assert "* `shardmerge command skip --pipeline" in text
    assert "#### Safe order" in text
    assert "`1, 3, 2, 4`" in text
    assert "|  | types=wide | types=published |" in text
    table = [line for line in text.splitlines() if line.startswith("| 3 |")]
    assert table[0].count(" | ") == 3
    assert rollout(pipeline, ADDING, "--markdown").stdout.startswith("### ✅")


def test_without_kafka_it_ends_with_3(pipeline: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def from_topics(_: object) -> None:
        raise StackError("Kafka at kafka:9092 does not answer", code="SM-4101")

    monkeypatch.setattr(module, "from_topics", from_topics)
    monkeypatch.setenv("NOT_SET_ANYWHERE", "x")
    found = rollout(pipeline, "steps:\n  - {shard: s1/app.t_1, sql: ALTER TABLE t_1 ADD n INT}\n")
    assert (found.exit_code, found.stdout) == (3, "")
    assert found.stderr == "error: SM-4101: Kafka at kafka:9092 does not answer\n"
