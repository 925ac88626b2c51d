"""``shardmerge validate`` against the whole line, with a writer at work."""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
import sys
import threading
import time
from typing import Any
from urllib.request import urlopen

import pytest
from click.testing import CliRunner, Result

from shardmerge.cli.main import main
from shardmerge.cli.validation.report_shapes import ValidatedTarget
from shardmerge.local.line import Line
from shardmerge.local.servers.stack import Ports
from shardmerge.schemas.model.names import TargetTable
from shardmerge.schemas.records.plain import from_plain
from tests.line_sql import execute
from tests.running import wait_for

TARGET = "plainval_merged.t"
ONE, TWO = "s1/plainval_app.t_1", "s2/plainval_app.t_2"
PATIENCE_S = 180.0


def validate(line: Line, *words: str) -> Result:
    pipeline = ("--pipeline", str(line.pipeline_path))
    return CliRunner().invoke(main, ["validate", TARGET, *words, *pipeline])


def found_by(line: Line, *words: str) -> ValidatedTarget:
    result = validate(line, "--json", *words)
    assert result.exit_code in (0, 1), result.output
    (text,) = result.stdout.splitlines()
    return from_plain(ValidatedTarget, json.loads(text))


def is_known(line: Line) -> bool:
    """Whether the target has its first decision."""
    return any(str(target) == TARGET for target in line.observer.facts().joined)


def clean(line: Line) -> ValidatedTarget:
    """The first comparison of all rows that finds them equal; none before finds a difference."""
    deadline = time.monotonic() + PATIENCE_S
    while (found := found_by(line)).in_doubt or not found.is_clean or found.rows < 600:
        # Rows are on their way, or the table is being read again for its default.
        assert not found.differences, found
        assert time.monotonic() < deadline, found
    return found


def told(report: ValidatedTarget) -> list[tuple[str, str, str]]:
    return sorted((d.kind, d.key[0], d.shard) for d in report.differences)


def assert_metrics_tell(line: Line, expected: dict[str, int]) -> None:
    """A process that compares again and again serves what differs, until it is ended."""
    port = Ports.free().web
    command = [
        sys.executable, "-m", "shardmerge.cli.main", "validate", TARGET, "--continuous",
        "--pause", "1", "--metrics-port", str(port), "--pipeline", str(line.pipeline_path),
    ]  # fmt: skip
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + PATIENCE_S
        found: dict[str, int] = {}
        while {kind: count for kind, count in found.items() if count} != expected:
            assert process.poll() is None
            assert time.monotonic() < deadline, found
            time.sleep(0.5)
            with contextlib.suppress(OSError):
                page = urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5).read().decode()
                told = re.findall(r'validate_differences{.*kind="(\w+)".*} (\d+)', page)
                found = {kind: int(count) for kind, count in told}
    finally:
        process.terminate()
        process.wait(30)


def seen_on_pages(line: Line) -> dict[str, Any]:
    """What ``/api`` tells of the target's comparisons."""
    return dict(line.status(TargetTable(*TARGET.split(".")))["validation"])


def in_target(line: Line, *statements: str) -> int:
    """Execute statements; the first value of the last answer."""
    with line.connect_target() as connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
        row = cursor.fetchone()
        return int(row[0]) if row else 0


class Writer:
    """Changes rows of both shards until it is told to end."""

    def __init__(self, line: Line) -> None:
        self._line, self._ends, self.writes = line, threading.Event(), 0
        self._thread = threading.Thread(target=self._write, daemon=True)
        self._thread.start()

    def _write(self) -> None:
        while not self._ends.wait(0.005):
            number = self.writes % 40
            other = 1000 + number
            one, two = "plainval_app.t_1", "plainval_app.t_2"
            execute(self._line, "s1", f"REPLACE INTO {one} (id, a, c) VALUES ({number}, 'w', 1)")
            execute(self._line, "s2", f"DELETE FROM {two} WHERE id = {other}")
            execute(self._line, "s2", f"INSERT INTO {two} (id, title) VALUES ({other}, 'v')")
            self.writes += 1

    def end(self) -> None:
        self._ends.set()
        self._thread.join(60)


@pytest.mark.timeout(600)
def test_rows_that_were_changed_by_hand_are_found_and_read_again(line: Line) -> None:
    rows = ", ".join(f"({n}, 'a{n}')" for n in range(300))
    other = ", ".join(f"({n}, 'b{n}')" for n in range(1000, 1300))
    execute(
        line, "s1", "CREATE DATABASE plainval_app",
        "CREATE TABLE plainval_app.t_1 (id INT PRIMARY KEY, a VARCHAR(20))",
        f"INSERT INTO plainval_app.t_1 VALUES {rows}",
        "ALTER TABLE plainval_app.t_1 ADD c INT DEFAULT 7",
    )  # fmt: skip
    execute(
        line, "s2", "CREATE DATABASE plainval_app",
        "CREATE TABLE plainval_app.t_2 (id BIGINT PRIMARY KEY, a VARCHAR(30))",
        f"INSERT INTO plainval_app.t_2 VALUES {other}",
        "ALTER TABLE plainval_app.t_2 CHANGE a title VARCHAR(30)",
    )  # fmt: skip
    writer = Writer(line)
    try:
        deadline = time.monotonic() + PATIENCE_S
        while not is_known(line):
            assert time.monotonic() < deadline
            time.sleep(0.3)
        assert clean(line).shards == (ONE, TWO)
        for number in range(3):
            for source, table in (("s1", "t_1"), ("s2", "t_2")):
                execute(line, source, f"ALTER TABLE plainval_app.{table} ADD d{number} INT")
                assert not found_by(line).differences
        clean(line)

        in_target(
            line,
            f"UPDATE {TARGET} SET c = 8 WHERE id = 100",
            f"DELETE FROM {TARGET} WHERE id = 1100",
            f"INSERT INTO {TARGET} (id) VALUES (5000)",
        )
        expected = [("differs", "100", ONE), ("extra", "5000", ""), ("missing", "1100", TWO)]
        assert told(found_by(line)) == expected
        wait_for(lambda: seen_on_pages(line)["differences"] == 3, "the comparison on the pages")
        assert_metrics_tell(line, {kind: 1 for kind, _, _ in expected})
        assert writer.writes > 10

        asked = validate(line, "--repair", "reread")
        assert asked.exit_code == 1
        assert "asked for 2 readings" in asked.stderr, asked.output
        deadline = time.monotonic() + PATIENCE_S
        while in_target(line, f"SELECT COUNT(*) FROM {TARGET} WHERE id = 1100 OR c = 8") != 1:
            assert time.monotonic() < deadline
            time.sleep(0.5)
        while in_target(line, f"SELECT c FROM {TARGET} WHERE id = 100") != 7:
            assert time.monotonic() < deadline
            time.sleep(0.5)
        writer.end()  # a source that nobody writes to is passed, too
        deadline = time.monotonic() + PATIENCE_S
        while (report := found_by(line, "--repair", "sql")).obstacles:
            assert time.monotonic() < deadline
        assert told(report) == [("extra", "5000", "")]
        in_target(line, report.differences[0].repair)
        last = validate(line)
        assert last.exit_code == 0, last.output
        wait_for(lambda: seen_on_pages(line)["state"] == "equal", "the comparison on the pages")
    finally:
        writer.end()
