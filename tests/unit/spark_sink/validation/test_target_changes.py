from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pytest

from shardmerge.connectors.binlog.binlog_changes import Change, ChangedRow, LoggedText
from shardmerge.schemas.model.names import TargetTable
from shardmerge.spark_sink.validation.compared_table import compared_table
from shardmerge.spark_sink.validation.record_keys import NamesNoKey
from shardmerge.spark_sink.validation.row_keys import RowKeyColumn
from shardmerge.spark_sink.validation.target_changes import (
    TargetKeys,
    changed_in_target,
    concerns,
)
from tests.unit.spark_sink.validation.facts import S1, TARGET, shard, target


def key(kind: str) -> tuple[RowKeyColumn, ...]:
    own = f"CREATE TABLE t (a INT, k {kind} NOT NULL, PRIMARY KEY (k))"
    return compared_table(target(own), [shard(S1, own)]).side.key


def keys(kind: str) -> TargetKeys:
    return TargetKeys(key(kind), ["a", "K"])


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        ("INT", -7, "-7"),
        ("TINYINT UNSIGNED", -1, "255"),
        ("BIGINT UNSIGNED", -1, "18446744073709551615"),
        ("BIGINT UNSIGNED", 7, "7"),
        ("DECIMAL(9,3)", Decimal("-1.5"), "-1.500"),
        ("VARCHAR(9)", "ä ", "C3A420"),
        ("DATE", dt.date(987, 1, 2), "0987-01-02"),
        ("DATETIME", dt.datetime(2026, 11, 26, 9, 8, 7), "2026-11-26 09:08:07"),
        ("DATETIME(3)", dt.datetime(987, 1, 2, 0, 0, 0, 50_000), "0987-01-02 00:00:00.050"),
        ("TIMESTAMP(6)", dt.datetime(2026, 1, 1), "2026-01-01 00:00:00.000000"),
    ],
)
def test_a_key_is_written_as_the_servers_write_it(kind: str, value: Any, text: str) -> None:
    assert keys(kind).of((1, value)) == (text,)


@pytest.mark.parametrize(
    "kind",
    [
        "BINARY(2)", "TIME", "YEAR", "ENUM('a')", "DOUBLE", "BIT(3)",
        "VARCHAR(9) CHARACTER SET latin1",
    ],
)  # fmt: skip
def test_a_key_that_the_binlogs_reader_may_read_wrongly_is_not_read(kind: str) -> None:
    with pytest.raises(NamesNoKey, match="not read from the target's binlog"):
        keys(kind)


def test_a_row_without_a_known_key_is_not_passed_over() -> None:
    for kind, values in (("INT", (1, None)), ("DATETIME", (1, None)), ("VARCHAR(3)", (1, b"x"))):
        with pytest.raises(NamesNoKey, match="that is not read"):
            keys(kind).of(values)
    with pytest.raises(NamesNoKey, match="other columns"):
        keys("INT").of((1, 2, 3))
    with pytest.raises(NamesNoKey, match="no column k now"):
        TargetKeys(key("INT"), ["a", "b"])


@pytest.mark.parametrize(
    ("database", "sql", "counts"),
    [
        ("merged", "BEGIN", False),
        ("merged", "COMMIT", False),
        ("merged", "SAVEPOINT `s`", False),
        ("merged", "XA START X'01',X'',1", False),
        ("app", "XA COMMIT X'01',X'',1", True),
        ("app", "XA ROLLBACK X'01',X'',1", False),
        ("merged", "TRUNCATE t", True),
        ("merged", "TRUNCATE other", False),
        ("app", "truncate MERGED.T", True),
        ("", "RENAME TABLE `merged`.`t` TO merged.old", True),
        ("app", "CREATE TABLE x (a INT)", False),
        ("app", "CREATE TABLE other_merged.t (a INT)", False),
        ("app", "DROP DATABASE IF EXISTS `merged`", True),
        ("app", "DROP DATABASE emerged", False),
        ("", "UPDATE `merged`.`t` SET a = 1", True),
        ("app", "DELETE FROM a_view", True),
        ("app", "CALL p(1)", True),
        ("app", "BEGINNING OF t", True),
        ("app", "GRANT SELECT ON merged.t TO x", False),
    ],
)
def test_a_statement_counts_unless_it_cannot_change_the_target(
    database: str, sql: str, counts: bool
) -> None:
    assert concerns(TARGET, database, sql) is counts


def test_the_keys_of_all_images_are_collected_up_to_a_bound() -> None:
    changes: list[Change] = [
        LoggedText("merged", "BEGIN"),
        *(ChangedRow((0, n)) for n in (1, 2, 2, 3)),
    ]
    assert changed_in_target(TARGET, keys("INT"), changes) == {("1",), ("2",), ("3",)}
    with pytest.raises(NamesNoKey, match="more than 2 rows of the target"):
        changed_in_target(TARGET, keys("INT"), changes, most=2)
    with pytest.raises(NamesNoKey, match="has executed 'DROP TABLE t'"):
        changed_in_target(TARGET, keys("INT"), [LoggedText("merged", "DROP TABLE t")])


def test_names_with_quotes_are_found() -> None:
    odd = TargetTable("m`x", "t")
    assert concerns(odd, "", "ALTER TABLE `m``x`.`t` ADD a INT")
    assert not concerns(odd, "", "ALTER TABLE `mx`.`t` ADD a INT")
