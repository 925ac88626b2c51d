from __future__ import annotations

import pytest

from shardmerge.cli.validation.progress_lines import ProgressLines
from shardmerge.spark_sink.validation.compared_table import compared_table
from shardmerge.spark_sink.validation.table_validation import TableValidation
from tests.unit.spark_sink.validation.facts import S1, shard, target

from .silent_servers import SilentServers

OWN = "CREATE TABLE t (id int PRIMARY KEY, a int)"


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
