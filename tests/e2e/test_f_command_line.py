"""The command line against the whole line, and ``shardmerge run`` in place of the line's keeper.

Last in the folder's order: afterwards nothing keeps the line up.
"""

from __future__ import annotations

import json
import os
import shlex
import signal
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from pymysql.constants import ER
from pymysql.err import MySQLError

from shardmerge.agents.holds.shapes import ShownConflict
from shardmerge.agents.preview.shapes import ShownPlan
from shardmerge.cli.main import main
from shardmerge.cli.views.decision_shapes import DecisionLine
from shardmerge.cli.views.shapes import Explanation, PipelineStatus, ShownSchema, TargetStatus
from shardmerge.connectors.formats.connector_status import ConnectorState
from shardmerge.local.line import Line
from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.pipeline.file import parse_pipeline
from shardmerge.schemas.pipeline.routing import route
from shardmerge.schemas.pipeline.settings import Source, Target
from shardmerge.schemas.records.plain import from_plain
from tests.line_sql import execute, ids
from tests.running import Running, wait_for

TARGET = "plaincli_merged.t"
FLOWING, HELD = "s1/plaincli_app.t_1", "s2/plaincli_app.t_1"


def call(line: Line, *words: str) -> Result:
    return CliRunner().invoke(main, [*words, "--pipeline", str(line.pipeline_path)])


def told(shape: type[Any], result: Result) -> list[Any]:
    """The JSON of a command, read strictly as the documented shape."""
    assert result.exit_code in (0, 1), result.output
    return [from_plain(shape, json.loads(text)) for text in result.stdout.splitlines()]


def has_row_of_s1(line: Line) -> bool:
    try:
        return 1 in ids(line, TARGET)
    except MySQLError as error:
        if error.args[0] not in (ER.BAD_DB_ERROR, ER.NO_SUCH_TABLE):
            raise
        return False


def status_of(line: Line) -> TargetStatus:
    (found,) = told(PipelineStatus, call(line, "status", "--json"))
    targets: tuple[TargetStatus, ...] = found.targets
    return next(target for target in targets if target.target == TARGET)


@pytest.mark.timeout(600)
def test_a_held_shard_is_shown_explained_and_released_by_a_command_that_was_told(
    line: Line,
) -> None:
    for source in ("s1", "s2"):
        execute(
            line,
            source,
            "CREATE DATABASE plaincli_app",
            "CREATE TABLE plaincli_app.t_1 (id INT PRIMARY KEY, a INT)",
        )
    execute(line, "s1", "INSERT INTO plaincli_app.t_1 VALUES (1, 1)")
    # Between sources nothing has an order: s1's table must be decided before s2's change comes.
    wait_for(lambda: has_row_of_s1(line), "row of s1")
    execute(
        line,
        "s2",
        "ALTER TABLE plaincli_app.t_1 MODIFY a DATE",
        "INSERT INTO plaincli_app.t_1 (id) VALUES (2), (3)",
    )
    wait_for(
        lambda: (
            any(str(t) == TARGET for t in line.observer.facts().progress)
            and [s.parked for s in status_of(line).shards if s.shard == HELD and s.parked]
        ),
        "parked rows",
    )

    (status,) = told(PipelineStatus, result := call(line, "status", "--json"))
    assert result.exit_code == 1
    assert [fault for fault in status.faults if HELD in fault]
    assert {c.state for c in status.connectors} == {"RUNNING"}
    assert status.agents is not None
    assert status.agents.workers == 1
    assert status.target_server.version.startswith("8.0.15")
    assert status.target_server.writer_epoch >= 1
    shards = {shard.shard: shard for shard in status_of(line).shards}
    assert {name: shard.state for name, shard in shards.items()} == {FLOWING: "flows", HELD: "held"}
    plain = call(line, "status").stdout
    assert f"  {FLOWING}: flows\n" in plain
    assert f"  {HELD}: held at " in plain

    (explained,) = told(Explanation, result := call(line, "explain", HELD, "--json"))
    assert (result.exit_code, explained.state) == (1, "held")
    assert explained.parked >= 2
    (cause,) = explained.causes
    assert (cause.kind, cause.others) == ("hold", (FLOWING,))
    assert cause.since
    commands = [way.command for way in cause.ways if way.command]
    assert [shlex.split(command)[2] for command in commands] == ["skip", "leave", "replace"]
    (conflict,) = told(ShownConflict, call(line, "conflicts", "--target", TARGET, "--json"))
    assert {side.definition: side.shards for side in conflict.sides} == {
        "int": (FLOWING,),
        "date": (HELD,),
    }
    (own,) = told(ShownSchema, call(line, "schema", HELD, "--json"))
    assert "`a` date" in own.create_table
    (joined,) = told(ShownSchema, call(line, "schema", "--target", TARGET, "--json"))
    assert "`a` int" in joined.create_table

    skip = CliRunner().invoke(main, [*shlex.split(commands[0])[1:], "--by", "olga"])

    assert skip.exit_code == 0, skip.output
    decisions = told(DecisionLine, call(line, "decisions", "--target", TARGET, "--json"))
    assert [(d.outcome, d.by) for d in decisions[-2:]] == [("hold", ""), ("no-op", "olga")]
    wait_for(lambda: ids(line, TARGET) == [1, 2, 3], "parked rows in the target")
    wait_for(lambda: call(line, "explain", HELD).exit_code == 0, "flow")
    (before,) = told(
        ShownSchema, call(line, "schema", HELD, "--version", str(conflict_version(decisions)),
                          "--json"),
    )  # fmt: skip
    assert "`a` int" in before.create_table
    connectors = told(ConnectorState, result := call(line, "connect", "status", "--json"))
    assert (result.exit_code, [c.source for c in connectors]) == (0, ["s1", "s2"])


def test_a_plan_from_the_topics_is_what_then_happens(line: Line, tmp_path: Path) -> None:
    sql = "ALTER TABLE plaincli_app.t_1 ADD COLUMN planned BIGINT NOT NULL DEFAULT 7"
    (tmp_path / "change.sql").write_text(f"{sql};\n", encoding="utf-8")
    words = (str(tmp_path / "change.sql"), "--shard", FLOWING, "--rows", "--json")

    (plan,) = told(ShownPlan, result := call(line, "plan", *words))

    assert (result.exit_code, plan.present, plan.clean) == (0, "topics", True), result.output
    ((decision,),) = [step.decisions for step in plan.steps]
    assert [statement.kind for statement in decision.statements] == ["expanding"]
    execute(line, "s1", sql)
    wait_for(lambda: latest(line).version >= decision.version, "decision that was planned")
    happened = latest(line)
    assert (happened.version, happened.outcome, happened.reason, happened.statements) == (
        decision.version,
        decision.outcome,
        decision.reason,
        tuple(statement.sql for statement in decision.statements),
    )


def latest(line: Line) -> DecisionLine:
    found: list[DecisionLine] = told(
        DecisionLine, call(line, "decisions", "--target", TARGET, "--json")
    )
    return found[-1]


@pytest.mark.timeout(300)
def test_a_first_file_tells_what_the_servers_are(
    line: Line, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    servers: list[Source | Target] = [*line.pipeline.sources, line.pipeline.target]
    one, two, target = (f"{server.user}@{server.host}:{server.port}" for server in servers)
    for name, server in zip(("S1", "S2", "TARGET"), servers, strict=True):
        monkeypatch.setenv(f"{name}_PASSWORD", server.password)
    file = tmp_path / "first.toml"
    words = ["init", "--output", str(file), "--name", "first", "--target", target]

    made = CliRunner().invoke(main, [*words, "--source", f"s1={one}", "--source", f"s2={two}"])

    assert (made.exit_code, made.stderr) == (0, ""), made.output
    first = parse_pipeline(file.read_text(encoding="utf-8"), os.environ)
    assert [(s.flavour, s.version) for s in first.sources] == [("mysql", "8.0")] * 2
    assert (first.target.kind, first.target.version) == ("mysql", "8.0.15")
    routed = route(first.routes, ShardId("s1", "plaincli_app", "t_1"))
    assert len(routed) == 1, "both sources have the table, so it is guessed to be a shard"
    checked = CliRunner().invoke(main, ["check", "--offline", "--pipeline", str(file)])
    assert checked.exit_code == 0, checked.output


def conflict_version(decisions: list[DecisionLine]) -> int:
    """The version before the one that held the shard."""
    return next(d.version for d in decisions if d.outcome == "hold") - 1


@pytest.fixture
def running(handed_over: Line, tmp_path: Path) -> Iterator[Running]:
    made = Running(handed_over.pipeline_path, tmp_path / "run")
    try:
        yield made
    finally:
        if made.process.poll() is None:
            made.process.terminate()
            made.process.wait(timeout=120)
        print(made.text()[-8000:])
        made.log.close()


def _kill_behind_a_row(line: Line, running: Running, part: str, number: int) -> None:
    """Let a row through, then kill a part and wait until it is started again."""
    wait_for(lambda: running.pid(part), part)
    killed = running.pid(part)
    execute(line, "s1", f"INSERT INTO plaincli_app.t_1 (id, a) VALUES ({number}, 1)")
    wait_for(lambda: number in ids(line, TARGET), f"row {number}")
    os.kill(killed, signal.SIGKILL)
    wait_for(lambda: running.pid(part) not in (0, killed), f"new {part}")


@pytest.mark.timeout(900)
def test_run_restarts_parts_that_are_killed_and_leaves_no_process_however_it_ends(
    handed_over: Line, running: Running
) -> None:
    line = handed_over
    for number, part in enumerate(("sink", "agents", "watchdog"), 101):
        _kill_behind_a_row(line, running, part, number)
    execute(line, "s1", "ALTER TABLE plaincli_app.t_1 ADD COLUMN after_kills INT")
    execute(line, "s1", "INSERT INTO plaincli_app.t_1 (id, a, after_kills) VALUES (200, 1, 1)")
    wait_for(lambda: 200 in ids(line, TARGET), "row behind DDL after the kills")
    wait_for(lambda: running.measured(0, "shardmerge_sink_rows_total"), "metrics of the sink")
    wait_for(lambda: running.measured(1, "shardmerge_connector_state"), "metrics of the watchdog")

    running.process.terminate()

    assert running.process.wait(timeout=120) == 0
    assert running.left() == []
    text = running.text()
    stops = [each.split()[0] for each in text.split("part_stopped part=")[1:]]
    assert stops == ["sink", "agents", "watchdog"]
    assert text.count("part_ended part=sink exit_code=-9 times=1") == 1

    again = Running(line.pipeline_path, running.directory)
    try:
        execute(line, "s1", "INSERT INTO plaincli_app.t_1 (id, a) VALUES (300, 1)")
        wait_for(lambda: 300 in ids(line, TARGET), "row through the parts")
        (status,) = told(PipelineStatus, call(line, "status", "--json"))
        assert status.agents is not None
        assert status.agents.workers == 1
    finally:
        again.process.kill()
        again.process.wait()
        again.log.close()
    # The kernel tells the parts that the process which started them is gone.
    wait_for(lambda: again.left() == [], "end of every part")


@pytest.fixture
def two(handed_over: Line, tmp_path: Path) -> Iterator[tuple[Running, Running]]:
    """Two machines, each with a ``run --standby``."""
    made = []
    for name, further in (("one", ()), ("two", ("--without", "watchdog"))):
        (tmp_path / name).mkdir()
        directory = tmp_path / name / "run"
        made.append(Running(handed_over.pipeline_path, directory, further=("--standby", *further)))
    try:
        yield made[0], made[1]
    finally:
        for each in made:
            if each.process.poll() is None:
                each.process.terminate()
        for each in made:
            each.process.wait(timeout=120)
            print(each.text()[-8000:])
            each.log.close()


@pytest.mark.timeout(900)
def test_of_two_machines_the_other_one_goes_on(
    handed_over: Line, two: tuple[Running, Running]
) -> None:
    """The sink that writes is killed, then the worker that decides; then one machine is stopped."""
    line = handed_over
    wait_for(lambda: writer_of(two) is not None and sinks_of(line) == 2, "writer and standby")
    for each in two:
        wait_for(partial(shows_standby, each), "standby on a page")
    first = writer_of(two)
    assert first is not None
    other = two[1 - two.index(first)]
    execute(line, "s1", "INSERT INTO plaincli_app.t_1 (id, a) VALUES (400, 1)")
    wait_for(lambda: 400 in ids(line, TARGET), "row through the writer")

    os.kill(first.pid("sink"), signal.SIGKILL)
    execute(line, "s1", "INSERT INTO plaincli_app.t_1 (id, a) VALUES (401, 1)")
    wait_for(lambda: 401 in ids(line, TARGET), "row through the standby")
    assert writer_of(two) is other
    wait_for(lambda: sinks_of(line) == 2, "new standby")
    assert writer_of(two) is other, "the one that was killed takes nothing back"

    os.kill(first.pid("agents"), signal.SIGKILL)
    execute(line, "s1", "ALTER TABLE plaincli_app.t_1 ADD COLUMN by_the_other INT")
    execute(line, "s1", "INSERT INTO plaincli_app.t_1 (id, by_the_other) VALUES (402, 1)")
    wait_for(lambda: 402 in ids(line, TARGET), "row behind a decision")

    other.process.terminate()
    execute(line, "s1", "INSERT INTO plaincli_app.t_1 (id, a) VALUES (403, 1)")
    wait_for(lambda: 403 in ids(line, TARGET), "row after a machine was stopped")
    assert other.process.wait(timeout=120) == 0
    assert other.left() == []
    assert writer_of(two) is first
    assert ids(line, TARGET).count(401) == 1


def shows_standby(machine: Running) -> bool:
    """Whether the machine's pages tell of one sink that waits."""
    return "1 sink stands by" in machine.overview()


def writer_of(two: tuple[Running, Running]) -> Running | None:
    """The machine whose sink writes; None while there is none, or no clear answer."""
    found = [each for each in two if each.measured(0, "shardmerge_sink_active 1.0")]
    return found[0] if len(found) == 1 else None


def sinks_of(line: Line) -> int:
    """How many sinks ``status`` shows, the standbys included."""
    (status,) = told(PipelineStatus, call(line, "status", "--json"))
    server = status.target_server
    return len([host for host in (server.writer, *server.standbys) if host])
