"""Changes by hand on a target of the whole line, while a second target goes on."""

from __future__ import annotations

import json
from typing import Any

import pytest
from click.testing import CliRunner, Result

from shardmerge.cli.drift.drift_reader import drift_of as compared
from shardmerge.cli.drift.drift_shapes import ShownDrift
from shardmerge.cli.main import main
from shardmerge.cli.views.call_shapes import GivenCommand
from shardmerge.cli.views.shapes import Explanation, PipelineStatus, TargetStatus
from shardmerge.local.line import Line
from shardmerge.schemas.pipeline.file import parse_pipeline
from shardmerge.schemas.records.drift import needs_somebody
from shardmerge.schemas.records.plain import from_plain
from tests.running import wait_for

TARGET, OTHER = "plaindrift_merged.t", "plaindriftless_merged.t"
SHARD = "s1/plaindrift_app.t_1"


def call(line: Line, *words: str) -> Result:
    return CliRunner().invoke(main, [*words, "--pipeline", str(line.pipeline_path)])


def told(shape: type[Any], result: Result) -> Any:
    assert result.exit_code in (0, 1), result.output
    (text,) = result.stdout.splitlines()
    return from_plain(shape, json.loads(text))


def status_of(line: Line, target: str) -> TargetStatus:
    found: PipelineStatus = told(PipelineStatus, call(line, "status", "--json"))
    return next(each for each in found.targets if each.target == target)


def drift_of(line: Line, target: str = TARGET) -> dict[str, str]:
    """Subject → kind, as the command tells it now."""
    found: ShownDrift = told(ShownDrift, call(line, "drift", "show", target, "--json"))
    assert found.looked_at
    return {each.subject: each.kind for each in found.differences}


def execute(line: Line, *statements: str) -> None:
    with line.connect("s1") as connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


def in_target(line: Line, *statements: str) -> list[tuple[Any, ...]]:
    with line.connect_target() as connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
        return list(cursor.fetchall())


def ids(line: Line, target: str) -> list[int]:
    return [row[0] for row in in_target(line, f"SELECT id FROM {target} ORDER BY id")]


@pytest.mark.timeout(600)
def test_a_change_by_hand_is_told_holds_its_target_only_and_is_healed_or_adopted(
    line: Line,
) -> None:
    for database in ("plaindrift_app", "plaindriftless_app"):
        execute(
            line,
            f"CREATE DATABASE {database}",
            f"CREATE TABLE {database}.t_1 (id INT PRIMARY KEY, b VARCHAR(40))",
            f"INSERT INTO {database}.t_1 VALUES (1, 'one')",
        )
    wait_for(
        lambda: (
            {TARGET, OTHER} <= {str(target) for target in line.observer.facts().joined}
            and status_of(line, TARGET).rows == status_of(line, OTHER).rows == 1
        ),
        "both targets have their row",
    )
    assert drift_of(line) == drift_of(line, OTHER) == {}

    in_target(line, f"ALTER TABLE {TARGET} ADD INDEX by_b (b)")
    assert drift_of(line) == {"index:by_b": "harmless"}
    assert call(line, "drift", TARGET).exit_code == 0
    in_target(line, f"ALTER TABLE {TARGET} MODIFY COLUMN b VARCHAR(99) NOT NULL")
    assert drift_of(line) == {"column:b": "refuses", "index:by_b": "harmless"}
    assert call(line, "drift", TARGET).exit_code == 1

    # The decided statement would make the column narrower than it was made by hand. The column
    # cannot stay as it is, because it refuses NULL.
    execute(
        line,
        "ALTER TABLE plaindrift_app.t_1 MODIFY COLUMN b VARCHAR(60)",
        "INSERT INTO plaindrift_app.t_1 VALUES (2, 'two')",
        "ALTER TABLE plaindriftless_app.t_1 MODIFY COLUMN b VARCHAR(60)",
        "INSERT INTO plaindriftless_app.t_1 VALUES (2, 'two')",
    )
    wait_for(lambda: ids(line, OTHER) == [1, 2], "the other target goes on")
    wait_for(
        lambda: [each.code for each in status_of(line, TARGET).open] == ["SM-6806"],
        "the statement is refused",
    )
    wait_for(
        lambda: (
            {each.subject for each in status_of(line, TARGET).drift} == {"column:b", "index:by_b"}
        ),
        "the sink tells what differs",
    )
    assert ids(line, TARGET) == [1]
    found: ShownDrift = told(ShownDrift, call(line, "drift", "show", TARGET, "--json"))
    assert all(each.since for each in found.differences)
    why: Explanation = told(Explanation, call(line, "explain", SHARD, "--json"))
    ways = [way.command for cause in why.causes for way in cause.ways]
    assert any(f"shardmerge drift heal {TARGET}" in way for way in ways)

    shown = call(line, "drift", "heal", TARGET, "--only", "column:b")
    assert shown.exit_code == 1
    assert "MODIFY COLUMN `b` varchar(40)" in shown.output
    healed = call(line, "drift", "heal", TARGET, "--only", "column:b", "--yes", "--by", "ann")
    assert healed.exit_code == 0, healed.output
    wait_for(lambda: ids(line, TARGET) == [1, 2], "the rows behind the statement are applied")

    given: GivenCommand = told(
        GivenCommand, call(line, "drift", "adopt", TARGET, "--by", "ann", "--json")
    )
    assert given.answer is not None
    assert (given.answer.outcome, given.answer.by) == ("emit", "ann")
    wait_for(lambda: drift_of(line) == {}, "the adopted index is told no more")
    in_target(line, f"ALTER TABLE {TARGET} DROP INDEX by_b")
    assert drift_of(line) == {"index:by_b": "missing"}
    assert call(line, "drift", TARGET).exit_code == 1
    assert call(line, "drift", "heal", TARGET, "--yes").exit_code == 0
    assert drift_of(line) == {}

    execute(
        line,
        "ALTER TABLE plaindrift_app.t_1 ADD COLUMN n INT",
        "INSERT INTO plaindrift_app.t_1 VALUES (3, 'three', 3)",
    )
    wait_for(lambda: ids(line, TARGET) == [1, 2, 3], "the target goes on")
    wait_for(lambda: status_of(line, TARGET).drift == (), "the sink tells of nothing any more")
    replayed = call(line, "replay", "--target", TARGET)
    assert replayed.exit_code == 0, replayed.output
    assert "adopt index:by_b as INDEX `by_b` (`b`)" in replayed.output


@pytest.mark.timeout(300)
def test_no_table_that_only_the_sink_changed_differs(line: Line) -> None:
    """Whatever was decided earlier in the session, whose other tests come first."""
    pipeline = parse_pipeline(line.pipeline_path.read_text(encoding="utf-8"), {})
    found = {
        str(each.target): [d for d in each.differences if needs_somebody(d.kind)]
        for each in compared(pipeline)
    }
    assert len(found) >= 2
    assert {target: told for target, told in found.items() if told} == {}
