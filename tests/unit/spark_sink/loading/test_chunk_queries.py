from __future__ import annotations

from shardmerge.schemas.model.names import ShardId
from shardmerge.spark_sink.loading.chunk_queries import (
    begin_snapshot,
    chunk_rows,
    key_extent,
    next_boundary,
    read_column_as_text,
    session_settings,
    show_table,
    table_statistics,
    wanted_columns,
)
from shardmerge.spark_sink.loading.chunk_ranges import KeyRange
from shardmerge.spark_sink.loading.key_order import key_columns
from tests.strategies import table

SHARD = ShardId("s1", "app", "t`1")
TABLE = table(
    "CREATE TABLE t (a int, b varchar(9) charset latin1, f float, z bit(3), n json, g int as (a),"
    " PRIMARY KEY (b, a))"
)
KEY = key_columns(TABLE)
BOUNDARY = ("E4", "7")
BEHIND = "`b` >= _latin1 X'E4' AND (`b` > _latin1 X'E4' OR (`b` = _latin1 X'E4' AND `a` > 7))"


def test_a_chunk_reads_the_wanted_columns_of_its_range() -> None:
    columns = wanted_columns(TABLE.columns, {"f", "z"}, {"a", "b"})
    assert chunk_rows(SHARD, KEY, KeyRange(BOUNDARY), columns, "`n` = 1") == (
        "SELECT `a`, `b`, `f` + 0e0, `z` + 0 FROM `app`.`t``1` FORCE INDEX (PRIMARY)"
        f" WHERE ({BEHIND}) AND (`n` = 1) ORDER BY `b`, `a`"
    )


def test_values_can_be_read_as_texts() -> None:
    kinds = table(
        "CREATE TABLE t (id int, b binary(3), e enum('a'), s enum('', 'a'), f float,"
        " PRIMARY KEY (id))"
    )
    sql = chunk_rows(SHARD, key_columns(kinds), KeyRange(), kinds.columns, read=read_column_as_text)
    assert sql == (
        "SELECT `id`, HEX(`b`), IF(`e` = 0, '0', `e`), `s`, `f` + 0e0 FROM `app`.`t``1`"
        " FORCE INDEX (PRIMARY) ORDER BY `id`"
    )


def test_a_table_without_a_key_is_read_whole() -> None:
    columns = TABLE.columns[:1]
    assert chunk_rows(SHARD, (), KeyRange(), columns) == "SELECT `a` FROM `app`.`t``1`"
    assert chunk_rows(SHARD, (), KeyRange(), columns, "x").endswith("WHERE (x)")


def test_the_end_of_a_range_is_the_key_of_its_last_row() -> None:
    assert next_boundary(SHARD, KEY, None, 1_000) == (
        "SELECT HEX(`b`), CAST(`a` + 0 AS CHAR) FROM `app`.`t``1` FORCE INDEX (PRIMARY)"
        " ORDER BY `b`, `a` LIMIT 999, 1"
    )
    assert f" WHERE {BEHIND} ORDER BY" in next_boundary(SHARD, KEY, BOUNDARY, 1)


def test_what_is_asked_before() -> None:
    assert key_extent(SHARD, KEY[1]) == "SELECT MIN(`a`), MAX(`a`) FROM `app`.`t``1`"
    assert "TABLE_SCHEMA = 'app' AND TABLE_NAME = 't`1'" in table_statistics(SHARD)
    assert show_table(SHARD)[1] == "SHOW CREATE TABLE `app`.`t``1`"
    assert "CONSISTENT SNAPSHOT, READ ONLY" in begin_snapshot()


def test_a_session_reads_times_in_utc_and_has_bounds() -> None:
    settings = session_settings(3, 60, mariadb=False)
    assert "time_zone = '+00:00'" in settings[0]
    assert "lock_wait_timeout = 3" in settings[0]
    assert "max_execution_time = 60000" in settings[0]
    assert "max_statement_time = 60" in session_settings(3, 60, mariadb=True)[0]
