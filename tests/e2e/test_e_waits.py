"""What waits for whom, as the pages of the real line's agents tell it: the DDL lock, and a debt."""

from __future__ import annotations

import json
import urllib.request
from functools import partial
from html.parser import HTMLParser
from typing import Any

import pytest
from click.testing import CliRunner

from shardmerge.cli.main import main
from shardmerge.local.line import Line
from tests.line_sql import execute, ids
from tests.running import wait_for

LOCKED, OWED = "lockwaits", "plainwaits"
ONE, TWO = "s1", "s2"


class Text(HTMLParser):
    """The text of a page, without its marks."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found = ""
        self.feed(page)

    def handle_data(self, data: str) -> None:
        self.found += data


def get(line: Line, path: str) -> bytes:
    with urllib.request.urlopen(line.web_url + path, timeout=30) as answer:
        found: bytes = answer.read()
        return found


def page(line: Line, test: str) -> str:
    """The text of a target's page, in one line."""
    return " ".join(Text(get(line, f"/target/{test}_merged.t").decode()).found.split())


def waits(line: Line, test: str) -> str:
    """The part of the page that tells who waits for whom."""
    return page(line, test).split("Who waits for whom")[-1].split("Rows, waiting rows, lag")[0]


def tells(line: Line, test: str, text: str) -> bool:
    """Whether that part of the page has a text."""
    return text in waits(line, test)


def changes(line: Line, test: str, ddl: str) -> list[dict[str, Any]]:
    """How far the shards are with a change, by the API."""
    answer = json.loads(get(line, f"/api/target/{test}_merged.t/changes"))
    return [each for each in answer["changes"] if ddl in each["ddl"]]


def standing(line: Line, test: str, ddl: str) -> list[dict[str, Any]]:
    """How far the shards are that have made a change, by the API."""
    return [group for each in changes(line, test, ddl) for group in each["shards"]]


def two_shards(line: Line, test: str) -> None:
    for number, source in enumerate((ONE, TWO), 1):
        execute(
            line,
            source,
            f"CREATE DATABASE {test}_app",
            f"CREATE TABLE {test}_app.t_{number} (id INT PRIMARY KEY, old INT)",
            f"INSERT INTO {test}_app.t_{number} VALUES ({number}, 0)",
        )
    target = f"{test}_merged.t"
    wait_for(lambda: target in tables(line) and ids(line, target) == [1, 2], "the first rows")


def tables(line: Line) -> set[str]:
    with line.connect_target() as connection, connection.cursor() as cursor:
        cursor.execute(
            "SELECT CONCAT(table_schema, '.', table_name) FROM information_schema.tables"
        )
        return {str(name) for (name,) in cursor.fetchall()}


def command(line: Line, *words: str) -> None:
    called = CliRunner().invoke(main, ["command", *words, "--pipeline", str(line.pipeline_path)])
    assert called.exit_code == 0, called.output


@pytest.mark.timeout(300)
def test_the_pages_tell_which_shards_hold_the_ddl_lock_and_whose_rows_wait(line: Line) -> None:
    two_shards(line, LOCKED)
    execute(
        line,
        ONE,
        f"ALTER TABLE {LOCKED}_app.t_1 ADD COLUMN level INT",
        f"INSERT INTO {LOCKED}_app.t_1 VALUES (11, 0, 5)",
    )

    def waiting() -> list[dict[str, Any]]:
        return [s for s in standing(line, LOCKED, "ADD COLUMN level") if s["kind"] == "lock"]

    wait_for(waiting, "the lock in the answer of the API")
    [group] = waiting()
    assert group["shards"] == [f"s1/{LOCKED}_app.t_1"]
    assert group["since_ms"] > 0
    wait_for(lambda: waiting()[0]["parked"] > 0, "the row that waits")
    told = waits(line, LOCKED)
    assert f"s1/{LOCKED}_app.t_1" in told
    assert "is made on 1 of 2 shards" in told
    [change] = changes(line, LOCKED, "ADD COLUMN level")
    assert change["lacking"] == [f"s2/{LOCKED}_app.t_2"], "who has not made the change"
    assert f"s2/{LOCKED}_app.t_2" in page(line, LOCKED).split("Time line")[-1]
    assert ids(line, f"{LOCKED}_merged.t") == [1, 2]

    execute(line, TWO, f"ALTER TABLE {LOCKED}_app.t_2 ADD COLUMN level INT")
    wait_for(lambda: ids(line, f"{LOCKED}_merged.t") == [1, 2, 11], "the row behind the lock")
    wait_for(
        lambda: {s["stand"] for s in standing(line, LOCKED, "ADD COLUMN level")} == {"passed"},
        "both shards behind the change",
    )
    assert "Nothing waits" in waits(line, LOCKED)


@pytest.mark.timeout(300)
def test_the_pages_tell_for_which_rows_a_drop_waits(line: Line) -> None:
    two_shards(line, OWED)
    paused = f"s1/{OWED}_app.t_1"
    command(line, "pause", "--shard", paused)
    execute(line, ONE, f"INSERT INTO {OWED}_app.t_1 VALUES (12, 7)")
    for number, source in enumerate((ONE, TWO), 1):
        execute(line, source, f"ALTER TABLE {OWED}_app.t_{number} DROP COLUMN old")
    # The sink may report a pause, or rows that are on their way, before the rows that stay.
    for told in ("DROP COLUMN `old`", f"rows of {paused} before", "paused by an operator"):
        wait_for(partial(tells, line, OWED, told), f"{told!r} on the page")

    command(line, "resume", "--shard", paused)
    wait_for(lambda: ids(line, f"{OWED}_merged.t") == [1, 2, 12], "the row that was paused")
    wait_for(lambda: "Nothing waits" in waits(line, OWED), "the end of the waits")
