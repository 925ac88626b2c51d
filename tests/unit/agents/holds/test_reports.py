"""Every reason with both sides and the ways out, as the coordinator itself answers."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path

from shardmerge.agents.holds import reports
from shardmerge.agents.holds.answers import Answers
from shardmerge.agents.holds.reports import HoldReport, hold_reports
from shardmerge.agents.holds.shapes import Side
from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.pipeline.settings import Pipeline, Target
from shardmerge.schemas.pipeline.spark_catalog import SparkCatalog
from shardmerge.schemas.records.operator_commands import CommandKind, OperatorCommand
from shardmerge.schemas.records.schema_changes import ChangeId
from tests.example_pages import NOW_MS, ORDERS, ExampleLine, example, orders, pipeline


def told(line: ExampleLine, chosen: ShardId | None = None) -> list[HoldReport]:
    answers = Answers(line.line.pipeline, line.state.targets[ORDERS])
    return list(hold_reports(answers, {21: NOW_MS}, Path("/etc/shop.toml"), chosen))


def test_a_conflict_has_both_sides_and_ways_out_that_would_be_carried_out():
    held, paused = told(example())
    assert (held.conflict.kind, held.conflict.about) == ("conflict", "column level, type")
    assert held.conflict.since == "2026-11-18T11:06:40.000Z"
    definitions = {side.definition: side.shards for side in held.conflict.sides}
    assert definitions["date"] == (str(orders(7)),)
    assert len(definitions["int"]) == 5
    commands = [shlex.split(way.command)[2] for way in held.ways if way.command]
    assert commands == ["skip", "leave", "replace"]
    assert held.ways[0].command == ""
    assert (paused.conflict.kind, paused.shard) == ("pause", orders(9))
    assert [shlex.split(way.command)[2] for way in paused.ways] == ["resume", "leave"]


def test_a_command_names_the_pipeline_file_and_the_shard():
    held, _ = told(example())
    words = shlex.split(held.ways[1].command)
    assert words[words.index("--pipeline") + 1] == "/etc/shop.toml"
    assert words[words.index("--shard") + 1] == str(orders(7))


def line_with_two() -> ExampleLine:
    line = ExampleLine(pipeline())
    for number in range(3):
        line.table(orders(number), "id INT PRIMARY KEY")
    line.run(orders(0), "ALTER TABLE orders_0 ADD COLUMN a INT")
    for number in (1, 2):
        line.run(orders(number), f"ALTER TABLE orders_{number} ADD COLUMN a DATE")
    return line


def test_the_ways_out_are_those_of_the_shard_that_is_chosen():
    line = line_with_two()
    (first,) = told(line)
    assert first.shard == orders(2)
    assert first.conflict.held == (str(orders(2)), str(orders(1)))
    assert Side("date", first.conflict.held) in first.conflict.sides
    (chosen,) = told(line, orders(1))
    assert chosen.shard == orders(1)
    assert str(orders(1)) in chosen.ways[1].command


def test_a_shard_that_does_not_stand_is_not_chosen():
    (found,) = told(line_with_two(), orders(0))
    assert found.shard == orders(2)


def test_a_target_whose_shards_flow_has_no_reason():
    line = line_with_two()
    for number in (1, 2):
        line.run(orders(number), f"ALTER TABLE orders_{number} DROP COLUMN a")
    assert told(line) == []


def test_only_the_first_reasons_tell_their_ways_out(monkeypatch):
    monkeypatch.setattr(reports, "MOST_REASONS", 1)
    line = line_with_two()
    line.table(orders(3), "id INT PRIMARY KEY, b INT")
    line.run(orders(3), "ALTER TABLE orders_3 WOBBLE b")
    first, second = told(line)
    assert first.ways
    assert (second.shard, second.ways) == (None, ())


def test_a_wait_for_the_ddl_lock_tells_for_whom():
    line = ExampleLine(pipeline("pessimistic"))
    for number in range(3):
        line.table(orders(number), "id INT PRIMARY KEY")
    line.run(orders(1), "ALTER TABLE orders_1 ADD COLUMN a INT")
    (found,) = told(line)
    assert (found.conflict.kind, found.shard) == ("lock", orders(1))
    assert found.waits_for == (orders(0), orders(2))
    assert "unlock-execute" in " ".join(way.command for way in found.ways)


def test_a_held_shard_that_is_paused_too_is_told_once():
    line = line_with_two()
    line.command(ORDERS, CommandKind.PAUSE, orders(1))
    assert [report.conflict.kind for report in told(line)] == ["conflict"]


def line_with_new_keys(pipeline: Pipeline) -> ExampleLine:
    line = ExampleLine(pipeline)
    for number in range(2):
        line.table(orders(number), "id INT PRIMARY KEY")
    policy = "existing_rows=hold"
    said = OperatorCommand(
        ChangeId("shop.commands", 0), ORDERS, CommandKind.SET_POLICY, None, policy
    )
    line.obey(said)
    key = "DROP PRIMARY KEY, ADD COLUMN k INT NOT NULL AUTO_INCREMENT PRIMARY KEY"
    for number in range(2):
        line.run(orders(number), f"ALTER TABLE orders_{number} {key}")
    return line


def test_a_shard_that_is_held_for_the_target_s_rows_is_freed_by_a_rebuild():
    [held, *_] = told(line_with_new_keys(pipeline()))
    [way] = [way for way in held.ways if "rebuild" in shlex.split(way.command)]
    assert shlex.split(way.command) == [
        "shardmerge", "rebuild", str(ORDERS), "--pipeline", "/etc/shop.toml",
    ]  # fmt: skip
    assert (way.kind, "serves" in way.does) == ("", True)


def test_no_rebuild_is_told_to_free_a_shard_of_an_iceberg_target():
    known = pipeline()
    lake = SparkCatalog("lake", (("type", "hadoop"), ("warehouse", "/w")))
    target = Target("", 0, "", "", kind="iceberg", version="1.12.0", catalog=lake)
    end = "; a rebuild of an Iceberg target frees no held shard"
    for settings, frees in ((known, True), (replace(known, target=target), False)):
        _, held = told(line_with_new_keys(settings))
        assert "shardmerge rebuild" in held.ways[0].does
        assert held.ways[0].does.endswith(end) is not frees
        assert any("rebuild" in way.command for way in held.ways) is frees
