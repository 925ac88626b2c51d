"""Which commits of an Iceberg table are not the sink's, read from its metadata."""

from __future__ import annotations

import json
from typing import Any

from shardmerge.spark_sink.targets.iceberg.texts.history import (
    History,
    history_of,
    last_of_others,
    taken_back,
)

OURS = {"operation": "overwrite", "wap.id": "shardmerge-1"}


def snapshot(number: int, parent: int | None, **summary: str) -> dict[str, Any]:
    """As Iceberg writes it."""
    entry = {
        "snapshot-id": number, "sequence-number": number, "timestamp-ms": number * 1_000,
        "summary": {name.replace("_", "-"): value for name, value in summary.items()},
        "schema-id": 0,
    }  # fmt: skip
    return entry if parent is None else {**entry, "parent-snapshot-id": parent}


def history(current: int | None, *snapshots: dict[str, Any], staged: int = 0) -> History:
    log = [{"snapshot-id": s["snapshot-id"], "timestamp-ms": 0} for s in snapshots]
    return history_of(
        json.dumps(
            {
                "current-snapshot-id": -1 if current is None else current,
                "last-sequence-number": len(snapshots),
                "snapshots": snapshots,
                "snapshot-log": [each for each in log if each["snapshot-id"] != staged],
                "schemas": [{"schema-id": 0, "fields": [{"id": 1}, {"id": 3}]}],
            }
        )
    )


def ours(number: int, parent: int | None) -> dict[str, Any]:
    return {**snapshot(number, parent), "summary": OURS}


def test_a_new_table_has_no_history() -> None:
    empty = history(None)
    assert (empty.current, empty.written, list(empty.line())) == (None, None, [])
    assert (last_of_others(empty, 0), taken_back(empty, 0)) == ("", "")
    assert history_of("{}") == History()


def test_the_columns_of_the_last_commit_are_known() -> None:
    assert history(1, ours(1, None)).written == frozenset({1, 3})


def test_only_commits_of_others_in_the_current_line_count() -> None:
    spark = snapshot(2, 1, operation="append", engine_name="spark")
    found = history(3, ours(1, None), spark, ours(3, 2))
    assert last_of_others(found, 0) == "append by spark, snapshot 2 of 1970-01-01 00:00:02 UTC"
    assert last_of_others(found, 2) == "", "it was there before"
    assert last_of_others(history(1, ours(1, None), spark), 0) == "", "it is only staged"
    unnamed = history(1, snapshot(1, None, operation="delete"))
    assert last_of_others(unnamed, 0).startswith("delete by another program, snapshot 1 of ")


def test_upkeep_is_no_commit_of_rows() -> None:
    assert last_of_others(history(2, ours(1, None), snapshot(2, 1, operation="replace")), 0) == ""


def test_what_was_current_and_is_not_in_the_line_was_taken_back() -> None:
    line = ours(1, None), ours(2, 1), ours(3, 1)
    assert "snapshot 2 of" in taken_back(history(3, *line), 0)
    assert taken_back(history(3, *line), 2) == ""
    assert taken_back(history(3, *line, staged=2), 0) == "", "nobody ever saw it"
    assert taken_back(history(2, *line[:2]), 0) == ""
    assert "snapshot 3 of" in taken_back(history(None, *line), 0)
