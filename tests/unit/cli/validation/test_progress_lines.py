from __future__ import annotations

import io
import re

import pytest

from shardmerge.cli.validation.progress_lines import ProgressLines
from shardmerge.spark_sink.validation.compared_table import compared_table
from shardmerge.spark_sink.validation.table_validation import TableValidation
from tests.unit.spark_sink.validation.facts import S1, shard, target

from .silent_servers import SilentServers

OWN = "CREATE TABLE t (id int PRIMARY KEY, a int)"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def begun(rows: int) -> TableValidation:
    table = compared_table(target(OWN), [shard(S1, OWN)])
    validation = TableValidation(table, SilentServers(), SilentServers())
    validation.rows = rows
    return validation


def test_lines_tell_rows_rate_and_what_is_left(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 100.0
    monkeypatch.setattr("shardmerge.cli.validation.progress_lines.time.monotonic", lambda: now)
    table = compared_table(target(OWN), [shard(S1, OWN)])
    validation = TableValidation(table, SilentServers(), SilentServers())
    told = ProgressLines("merged.t")
    told.expect(30_000)
    told.progressed(validation)
    now, validation.rows = 110.0, 10_000
    told.progressed(validation)
    now = 111.0
    told.progressed(validation)
    told.close()
    assert capsys.readouterr().err == (
        "merged.t: 10,000 rows of about 30,000, 1,000 rows/s, 0 differences, 0 in doubt,"
        " about 20 s left\n"
    )


def test_a_comparison_that_begins_anew_has_a_rate_of_its_own(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 100.0
    monkeypatch.setattr("shardmerge.cli.validation.progress_lines.time.monotonic", lambda: now)
    told = ProgressLines("merged.t")
    told.expect(30_000)
    told.progressed(begun(20_000))
    now, again = 105.0, begun(1_000)
    told.progressed(again)
    now, again.rows = 115.0, 11_000
    told.progressed(again)
    told.close()
    assert capsys.readouterr().err == (
        "merged.t: 11,000 rows of about 30,000, 1,000 rows/s, 0 differences, 0 in doubt,"
        " about 19 s left\n"
    )


@pytest.mark.parametrize(("rows", "part"), [(7_500, "25%"), (60_000, "100%")])
def test_a_terminal_shows_a_bar_and_takes_it_away(
    monkeypatch: pytest.MonkeyPatch, rows: int, part: str
) -> None:
    screen = Terminal()
    monkeypatch.setattr("sys.stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "200")
    told = ProgressLines("merged.t")
    told.expect(30_000)
    told.progressed(begun(20_000))  # of a comparison that then begins anew
    told.progressed(begun(rows))
    told.close()
    drawn = screen.getvalue()
    shown = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", drawn).split("\r")
    lines = [line for line in shown if "merged.t" in line]
    assert part in lines[-1]
    assert f"{rows:,} rows, 0 differences, 0 in doubt" in lines[-1]
    assert drawn.rstrip("\n").endswith("\x1b[2K")  # the line is erased
