"""``shardmerge cutover`` on the whole line: the commands of its page, with a writer and a kill."""

from __future__ import annotations

import json
import shlex
import threading
from collections.abc import Callable
from typing import Any

import pymysql
import pytest
from click.testing import CliRunner, Result

from shardmerge.cli.cutover import looks
from shardmerge.cli.cutover.cutover_shapes import CutoverReport
from shardmerge.cli.main import main
from shardmerge.connectors.clock import now_ms
from shardmerge.local.line import Line
from shardmerge.schemas.records.plain import from_plain
from tests.breadth import further
from tests.killed_commands import kill_when_told
from tests.line_sql import execute
from tests.running import wait_for
from tests.unit.docs.documents import ROOT, shell_lines

TARGET = "plaincut_merged.t"
PAGE = (ROOT / "docs/how-to/cut-over.md").read_text(encoding="utf-8")
REHEARSE, COMPARE, READ_ONLY, STOPPED, UNDO = range(5)


def words(line: Line, number: int, *more: str) -> list[str]:
    """A command of the page, for this line and target."""
    calls = [call for call in shell_lines(PAGE) if call.startswith("shardmerge cutover")]
    assert len(calls) == 5
    named = {"merged.t": TARGET, "FILE": str(line.pipeline_path)}
    return [*(named.get(word, word) for word in shlex.split(calls[number])[1:]), *more]


def call(line: Line, number: int, *more: str) -> tuple[Result, CutoverReport]:
    result = CliRunner().invoke(main, words(line, number, "--json", "--by", "olga", *more))
    assert result.exit_code in (0, 1), result.output
    return result, from_plain(CutoverReport, json.loads(result.stdout))


def codes(report: CutoverReport) -> list[str]:
    return [reason.code for reason in report.reasons]


def asked(connect: Callable[[], Any], sql: str) -> tuple[tuple[Any, ...], ...]:
    with connect() as connection, connection.cursor() as cursor:
        cursor.execute(sql)
        return tuple(cursor.fetchall())


class Writer:
    """Inserts rows into both shards, and counts those that a server took."""

    def __init__(self, line: Line) -> None:
        self.line, self.ends, self.refused = line, threading.Event(), threading.Event()
        self.thread = threading.Thread(target=self._write, daemon=True)
        self.thread.start()

    def _write(self) -> None:
        number = 0
        while not self.ends.wait(0.3):
            number += 1
            try:
                execute(self.line, "s1", f"INSERT INTO plaincut_app.t_1 (a) VALUES ({number})")
                execute(self.line, "s2", "INSERT INTO plaincut_app.t_2 (a, b) VALUES (1, 2)")
            except pymysql.MySQLError:
                self.refused.set()

    def end(self) -> None:
        self.ends.set()
        self.thread.join(30)


def make_shards(line: Line) -> None:
    for source, table, more, first in (
        ("s1", "t_1", "", 1),
        ("s2", "t_2", ", b INT NOT NULL", 5001),
    ):
        execute(
            line, source, "CREATE DATABASE plaincut_app",
            f"CREATE TABLE plaincut_app.{table} (id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,"
            f" a INT NOT NULL{more}) AUTO_INCREMENT = {first}",
        )  # fmt: skip
    execute(line, "s1", "INSERT INTO plaincut_app.t_1 (a) VALUES (1), (2), (3)")
    execute(line, "s2", "INSERT INTO plaincut_app.t_2 (a, b) VALUES (1, 1), (2, 2), (3, 3)")


def rows_of_shards(line: Line) -> int:
    found = 0
    for source, table in (("s1", "t_1"), ("s2", "t_2")):
        with line.connect(source) as connection, connection.cursor() as cursor:
            cursor.execute(f"SELECT COUNT(*) FROM plaincut_app.{table}")
            found += cursor.fetchall()[0][0]
    return found


def rows_of_target(line: Line) -> int:
    return int(asked(line.connect_target, f"SELECT COUNT(*) FROM {TARGET}")[0][0])


def codes_told(line: Line) -> set[str]:
    """Why the target's shards wait, as the sink tells it."""
    progress = line.observer.facts().progress
    [told] = [record for target, record in progress.items() if str(target) == TARGET]
    return {shard.code for shard in told.shards}


def has_target(line: Line) -> bool:
    try:
        return rows_of_target(line) >= 6
    except pymysql.MySQLError:
        return False


def kill_at(line: Line, step: str) -> None:
    """Kill the command when it says that it begins a step."""
    kill_when_told(words(line, READ_ONLY, "--by", "olga"), f": {step}")


@further
@pytest.mark.timeout(600)
def test_the_page_is_played_with_a_writer_and_a_kill_and_back(line: Line) -> None:
    make_shards(line)
    wait_for(lambda: has_target(line), "rows in the target")
    result, rehearsed = call(line, REHEARSE, "--drop", "defaults")
    assert (result.exit_code, rehearsed.state) == (1, "rehearsed"), result.output
    assert "SM-6701" in codes(rehearsed)
    statements = [sql for step in rehearsed.steps for sql in step.statements]
    assert "ALTER TABLE `plaincut_merged`.`t` ALTER COLUMN `b` DROP DEFAULT" in statements
    assert any("AUTO_INCREMENT = " in sql for sql in statements)
    assert not any(step.done for step in rehearsed.steps)

    with pytest.MonkeyPatch.context() as patch:
        # By this clock the sink's last report is older than three minutes.
        patch.setattr(looks, "now_ms", lambda: now_ms() + 240_000)
        patch.setattr(looks, "_MOMENT_S", 0.0)
        result, silent = call(line, COMPARE)
    assert (result.exit_code, silent.steps) == (1, ()), result.output
    assert "SM-6723" in codes(silent)

    result, compared = call(line, COMPARE)
    assert (codes(compared), [s.name for s in compared.steps]) == (["SM-6701"], ["compare"])
    assert (compared.by, compared.way_back) == ("olga", True)

    writer = Writer(line)
    try:
        play(line, writer)
    finally:
        writer.end()
        for source in ("s1", "s2"):
            execute(line, source, "SET GLOBAL super_read_only = OFF", "SET GLOBAL read_only = OFF")


def play(line: Line, writer: Writer) -> None:
    """From the stop of the writes on, and back."""
    wait_for(lambda: rows_of_shards(line) > 6, "rows of the writer")
    result, written = call(line, STOPPED)
    assert set(codes(written)) <= {"SM-6708", "SM-6714"}, result.output
    assert written.state == "waits"
    assert not writer.refused.is_set()

    ((row, value),) = asked(line.connect_target, f"SELECT id, a FROM {TARGET} LIMIT 1")
    asked(line.connect_target, f"UPDATE {TARGET} SET a = a + 70 WHERE id = {row}")
    result, found = call(line, READ_ONLY)
    assert codes(found) == ["SM-6716"], "a row that somebody changed by hand in the target is seen"
    assert not writer.refused.is_set()
    asked(line.connect_target, f"UPDATE {TARGET} SET a = {value} WHERE id = {row}")

    kill_at(line, "close")
    assert writer.refused.wait(30), "the sources take no more writes"
    result, opened = call(line, READ_ONLY, "--drop", "defaults")
    assert (result.exit_code, opened.state) == (0, "open"), result.output
    assert rows_of_shards(line) == rows_of_target(line) > 6
    # The comparison under traffic has proved all other rows.
    assert opened.changed_only
    assert opened.rows < rows_of_shards(line)
    assert (opened.read_only, len(opened.ends)) == (("s1", "s2"), 2)
    assert [step.name for step in opened.steps][-1] == "open"
    asked(line.connect_target, f"INSERT INTO {TARGET} (a, b) VALUES (7, 7)")
    ((own, most),) = asked(
        line.connect_target, f"SELECT MAX(id), MAX(IF(a = 7, 0, id)) FROM {TARGET}"
    )
    assert own > most, "an application gets an id that no shard has given"
    asked(line.connect_target, f"DELETE FROM {TARGET} WHERE id = {own}")

    wait_for(lambda: codes_told(line) == {"SM-1617"}, "the sink's word of the closed target")

    before = rows_of_target(line)
    result, back = call(line, UNDO)
    assert (result.exit_code, back.state) == (0, "back"), result.output
    ((definition,),) = asked(
        line.connect_target,
        "SELECT COLUMN_DEFAULT FROM information_schema.COLUMNS"
        " WHERE TABLE_SCHEMA = 'plaincut_merged' AND COLUMN_NAME = 'b'",
    )
    assert definition == "0"
    wait_for(lambda: rows_of_target(line) > before, "rows of the shards, which are written again")
    writer.end()
    wait_for(lambda: rows_of_target(line) == rows_of_shards(line), "the last rows")
