"""Every rule of what TiDB does not alter, tried on a TiDB, in both directions."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from shardmerge.schemas.model.errors import TargetError
from shardmerge.schemas.model.mysql_text import column_type
from shardmerge.schemas.model.types import ColumnType
from shardmerge.schemas.target.dialects.tidb_rules import OURS, RULES, Change, needs_no_index
from shardmerge.spark_sink.targets.mysql.session import MySqlAddress, MySqlSession
from tests.strategies import table

TYPES = (
    "tinyint", "int", "int unsigned", "bigint", "bigint unsigned", "bit(1)", "bit(9)",
    "decimal(5,2)", "decimal(9,4)", "decimal(9,4) unsigned", "float", "double", "year", "date",
    "time", "time(3)", "datetime", "datetime(6)", "timestamp", "timestamp(3)", "json",
    "char(3)", "char(9)", "varchar(9)", "varchar(300)", "tinytext", "text", "longtext",
    "binary(3)", "binary(9)", "varbinary(9)", "tinyblob", "blob", "enum('a','b')",
    "enum('a','b','c')", "enum('b','a')", "set('a','b')", "set('a','b','c')",
    "varchar(9) character set latin1", "varchar(9) character set utf8mb3",
    "varchar(9) character set ascii", "varchar(9) character set gbk",
    "varchar(9) collate utf8mb4_general_ci", "varchar(9) collate utf8mb4_unicode_ci",
    "varchar(9) character set utf8mb3 collate utf8mb3_general_ci",
    "varchar(9) character set utf8mb3 collate utf8mb3_unicode_ci",
    "char(9) character set latin1", "char(9) character set ascii", "text character set latin1",
    "text character set gbk", "enum('a','b') character set latin1",
    "enum('a','b') character set ascii",
)  # fmt: skip
_REFUSED = frozenset({8200, 3106, 8245})
"""Unsupported DDL, unsupported on a generated column, a column that changes."""


def kind_of(text: str) -> ColumnType:
    return table(f"create table t (c {text})").columns[0].type


KINDS = tuple(map(kind_of, TYPES))


@pytest.fixture
def session(tidb: MySqlAddress) -> Iterator[MySqlSession]:
    session = MySqlSession(tidb)
    session.execute("DROP DATABASE IF EXISTS tidb_rules")
    session.execute("CREATE DATABASE tidb_rules")
    yield session
    session.execute("DROP DATABASE tidb_rules")
    session.close()


def is_refused(session: MySqlSession, before: str, after: str, keys: str) -> bool:
    """Whether MODIFY is refused for what it is; errors of values are none, there are no rows."""
    session.execute("DROP TABLE IF EXISTS tidb_rules.t")
    session.execute(f"CREATE TABLE tidb_rules.t (c {before} NOT NULL, x INT{keys})")
    try:
        session.execute(f"ALTER TABLE tidb_rules.t MODIFY COLUMN c {after} NOT NULL")
    except TargetError as error:
        if error.number not in _REFUSED:
            raise
        return True
    return False


IN_KEYS = tuple(map(kind_of, (
    "tinyint", "int", "int unsigned", "bigint", "decimal(5,2)", "decimal(9,4)", "double", "date",
    "datetime", "datetime(6)", "char(3)", "char(9)", "varchar(9)", "varchar(300)", "binary(3)",
    "binary(9)", "varbinary(9)", "enum('a','b')", "enum('a','b','c')",
    "varchar(9) character set latin1", "varchar(9) character set utf8mb3",
    "varchar(9) collate utf8mb4_general_ci",
    "varchar(9) character set utf8mb3 collate utf8mb3_general_ci", "float", "year",
    "varchar(9) character set ascii", "char(9) character set latin1",
)))  # fmt: skip
"""Of these an index is made: fewer, since each pair takes some statements."""


def refuses(change: Change) -> bool:
    """Whether TiDB does, by its own rules."""
    return any(rule.holds(change) for rule in RULES if rule.source != OURS)


def pairs() -> Iterator[tuple[ColumnType, ColumnType]]:
    return ((before, after) for before in KINDS for after in KINDS if before != after)


def differences(
    session: MySqlSession, keys: str, expected: Callable[[ColumnType, ColumnType], bool]
) -> Iterator[str]:
    for before, after in pairs():
        if keys and not {before, after} <= set(IN_KEYS):
            continue
        old, new = (column_type(kind, old_utf8=True) for kind in (before, after))
        found = is_refused(session, old, new, keys)
        if found != expected(before, after):
            yield f"{old} → {new}: {'refused' if found else 'taken'}"


@pytest.mark.timeout(1_800)
def test_a_column_of_no_index_changes_as_the_rules_say(session: MySqlSession) -> None:
    assert not list(differences(session, "", lambda a, b: refuses(Change(a, b))))


@pytest.mark.timeout(1_800)
def test_a_column_of_an_index_changes_as_the_rules_say(session: MySqlSession) -> None:
    def expected(before: ColumnType, after: ColumnType) -> bool:
        return refuses(Change(before, after)) or needs_no_index(before, after)

    assert not list(differences(session, ", KEY k (c)", expected))


@pytest.mark.timeout(1_800)
def test_a_column_of_the_primary_key_changes_as_the_rules_say(session: MySqlSession) -> None:
    def expected(before: ColumnType, after: ColumnType) -> bool:
        return refuses(Change(before, after, in_key=True))

    assert not list(differences(session, ", PRIMARY KEY (c)", expected))


def test_every_rule_says_why_and_where_it_is_written() -> None:
    assert all(rule.reason and rule.source for rule in RULES)
    holding = {
        rule.source
        for rule in RULES
        for a, b in pairs()
        for key in (False, True)
        if rule.holds(Change(a, b, key))
    }
    assert holding == {rule.source for rule in RULES}
