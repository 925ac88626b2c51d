"""``shardmerge source move`` on a whole line, while rows are written.

That a move is refused when the replica lacks transactions, and that their GTIDs are named:
``tests/integration/connect/test_failover.py``.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.breadth import further
from tests.line_in_twos import ROOT, LineInTwos, compared
from tests.line_writers import wait
from tests.replicated_source import ReplicatedSource


@pytest.fixture
def made() -> Iterator[LineInTwos]:
    """A line of its own, and rows that flow on it."""
    (ROOT / ".local").mkdir(exist_ok=True)
    line = LineInTwos(Path(tempfile.mkdtemp(prefix="moves-", dir=ROOT / ".local")))
    try:
        line.until_both_wait()
        yield line
    finally:
        line.close()


@further
@pytest.mark.timeout(900)
def test_no_row_is_lost_or_doubled_when_a_source_moves_there_and_back(made: LineInTwos) -> None:
    source = ReplicatedSource(made)
    for number, is_behind in enumerate((False, True), 1):
        source.follow()
        made.until_both_wait()
        if is_behind:
            source.stop_connector()
        else:
            source.rest()
        source.kill_primary()
        source.promote()
        before = source.writer.last

        moved = source.move()

        assert (moved.outcome, moved.epoch) == ("moved", number), moved.findings
        column = f"after_{number}"
        source.primary.run(
            f"ALTER TABLE app.tbl ADD {column} INT",
            f"INSERT INTO app.tbl (id, v, {column}) VALUES (-{number}, 0, {number})",
        )
        made.until_row(source.writer, before)
        made.until_column(column)
        query = f"SELECT {column} FROM merged.tbl WHERE id = -{number}"
        wait(partial(_has, made, query, number), "row of the new column")
        source.start_again()
    made.until_both_wait()
    assert compared(made) == (0, 0)


def _has(made: LineInTwos, query: str, value: int) -> bool:
    return made.target.run(query) == [(value,)]
