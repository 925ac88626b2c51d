from __future__ import annotations

from collections.abc import Sequence

import pytest

from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.model.position import SourcePosition
from shardmerge.spark_sink.loading.snapshot_queries import (
    MOST_EVENTS,
    events_between,
    has_snapshots,
    lock_table,
    may_change,
    told_place,
)

from .loads import at

SHARD = ShardId("s1", "App", "t")
MARK = (("Gtid", "SET"), ("Query", "BEGIN"), ("Table_map", "table_id: 9 (signals.shardmerge)"))


def events(*of: tuple[str, str], begin: int = 100) -> Sequence[tuple[object, ...]]:
    """Events of ten bytes each."""
    return [
        ("binlog.000001", begin + 10 * n, kind, 1, begin + 10 * n + 10, info)
        for n, (kind, info) in enumerate(of)
    ]


@pytest.mark.parametrize(
    ("of", "expected"),
    [
        ((*MARK, ("Write_rows", "table_id: 9"), ("Xid", "COMMIT")), False),
        ((("Table_map", "table_id: 9 (app.t2)"),), False),
        ((("Table_map", "table_id: 9 (app.T)"),), True),
        ((("Table_map", "table_id: 9 (app.T)"), ("Write_rows", "")), True),
        # DDL, TRUNCATE, XA and statements as text can be about any table.
        ((*MARK, ("Query", "use `app`; TRUNCATE t")), True),
        ((("Query", "XA START X'61'"),), True),
        ((("Transaction_payload", "compression='ZSTD'"),), True),
    ],
)
def test_a_table_may_have_changed_if_an_event_is_about_it(
    of: tuple[tuple[str, str], ...], expected: bool
) -> None:
    end = at(100 + 10 * len(of))
    assert may_change(SHARD, at(100), end, events(*of)) is expected


def test_events_from_the_end_on_do_not_count() -> None:
    found = events(*MARK, ("Table_map", "table_id: 9 (app.t)"))
    assert not may_change(SHARD, at(100), at(130), found)
    assert may_change(SHARD, at(100), at(140), found)
    assert not may_change(SHARD, at(100), at(100), ())


def test_what_is_not_known_may_be_a_change() -> None:
    # The answer ends before the end, or there is another file.
    assert may_change(SHARD, at(100), at(140), events(*MARK))
    assert may_change(SHARD, at(100), SourcePosition(0, "binlog.000002", 4, 0), ())


def test_mariadb_tells_the_place_of_a_snapshot() -> None:
    rows = (("Binlog_snapshot_file", "m.000004"), ("Binlog_snapshot_position", "77"))
    assert told_place(3, rows) == SourcePosition(3, "m.000004", 77, 0)
    assert told_place(3, ()) is None
    assert told_place(3, (("Binlog_snapshot_file", ""), ("Binlog_snapshot_position", "0"))) is None


def test_names_are_quoted() -> None:
    assert events_between(at(7)) == (
        f"SHOW BINLOG EVENTS IN 'binlog.000001' FROM 7 LIMIT {MOST_EVENTS}"
    )
    assert lock_table(ShardId("s1", "a`b", "t")) == "LOCK TABLES `a``b`.`t` READ"


def test_only_some_engines_have_snapshots() -> None:
    assert has_snapshots("InnoDB") and has_snapshots("ROCKSDB")
    assert not has_snapshots("MyISAM") and not has_snapshots("")
