"""What servers do to existing rows: the rules of ``value_changes``, ``added_column_values``."""

from __future__ import annotations

import itertools

import pymysql

from shardmerge.schemas.effects.added_column_values import fill_text
from shardmerge.schemas.effects.value_changes import value_change
from shardmerge.schemas.model.tables import Column
from tests.strategies import TYPES

from .twin import HOME, Twin

_VALUES = (
    "0", "1", "'-1'", "'-99999999999999999999'", "'99999999999999999999'", "'0.015'", "'123.455'",
    "'a'", "'a  '", "'b'", "'a,b'", "'é'", "'€uro'", "'😀'", "REPEAT('é', 400)", "x'00ff00'",
    "'2020-02-29 23:59:59.123456'", "'1970-01-01 00:00:01'", "'-838:59:58.5'", "'0000-00-00'",
    "'1901'", "'{\"k\": [1, null]}'", "ST_GeomFromText('POINT(1 2)')", "NULL",
)  # fmt: skip
_MORE_TYPES = (
    "varchar(3) charset ascii", "text charset ascii", "enum('b','a')", "set('b','a')",
    "varchar(9) not null default ''", "int not null default 7", "int zerofill", "bigint zerofill",
    "decimal(9,2)", "decimal(7,4)", "char(9) charset latin1", "char(3) charset ascii",
)  # fmt: skip
_ADDED = (
    "int", "int default 5", "bigint default 5", "decimal(5,0) default 5", "decimal(9,4) default 5",
    "int not null", "bigint unsigned not null", "double not null", "float default 0.5",
    "double default 0.5", "decimal(5,2) default 0.50", "varchar(9)", "varchar(9) default ''",
    "varchar(9) not null", "char(9) not null", "char(9) default 'a '", "varchar(9) default 'a '",
    "varchar(9) default 'a'", "varchar(300) charset latin1 default 'a'", "text", "text not null",
    "blob not null", "json", "json not null", "binary(3) not null", "varbinary(3) not null",
    "binary(3) default 'a'", "varbinary(3) default 'a'", "bit(3) default b'101'",
    "bit(9) default 5", "bit(3) not null", "enum('a','b') not null", "enum('a','b') default 'b'",
    "enum('b','a') not null", "set('a','b') not null", "set('a','b') default 'a,b'",
    "year not null", "year default 2020", "date default '2020-01-01'", "date not null",
    "time not null", "time(3) default '10:00:00'", "time default '10:00:00'",
    "datetime default '2020-01-01 10:00:00'", "datetime(6) default '2020-01-01 10:00:00'",
    "datetime not null", "datetime(3) not null", "timestamp null default '2020-01-01 10:00:00'",
    "timestamp default current_timestamp", "datetime default current_timestamp",
    "int generated always as (id + 1) virtual", "int generated always as (id + 1) stored",
)  # fmt: skip


def _definition(twin: Twin, text: str) -> Column | None:
    """The column of a table that is made with it; None when the server has no such type."""
    twin.is_taken("DROP TABLE IF EXISTS t")
    twin.tracked.pop((HOME, "t"), None)
    if not twin.execute(f"CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, c {text})"):
        return None
    return twin.tracked[HOME, "t"].column("c")


def _shown(twin: Twin, column: Column) -> tuple[object, ...]:
    """The values as a client sees them."""
    value = "c + 0" if column.type.name == "bit" else "c"
    return tuple(map(_plain, twin.query(f"SELECT {value} FROM t ORDER BY id")))


def _plain(row: tuple[object, ...]) -> object:
    """A value without the form that its type gives it."""
    (value,) = row
    if isinstance(value, bytes):
        return value.decode("latin1")
    # The client has no value for a zero date, but its text.
    if isinstance(value, str) and value.startswith("0000-00-00"):
        return value.partition(".")[0]
    return value


def test_what_counts_as_kept_is_kept_by_the_server(twin: Twin) -> None:
    types = {text: found for text in (*TYPES, *_MORE_TYPES) if (found := _definition(twin, text))}
    tried = 0
    filled = ""
    earlier: tuple[object, ...] = ()
    for (one, before), (two, after) in itertools.permutations(types.items(), 2):
        if value_change(before, after):
            continue
        if one != filled:
            assert _definition(twin, one) == before
            earlier, filled = _filled(twin, before), one
            assert earlier, one
        twin.is_taken("DROP TABLE IF EXISTS t")
        twin.query("CREATE TABLE t LIKE filled")
        # As when they were filled: zero dates are taken.
        twin.query("SET SESSION sql_mode = ''")
        twin.query("INSERT INTO t SELECT * FROM filled")
        twin.query("SET SESSION sql_mode = 'STRICT_TRANS_TABLES'")
        if not twin.is_taken(f"ALTER TABLE t MODIFY c {two}"):
            continue  # then nothing has changed
        tried += 1
        assert _shown(twin, after) == earlier, f"{one} to {two}"
    assert tried > 200


def _filled(twin: Twin, column: Column) -> tuple[object, ...]:
    """The values that the column of ``t`` takes; the table is ``filled`` from then on."""
    twin.query("SET SESSION sql_mode = ''")
    for value in _VALUES:
        twin.is_taken(f"INSERT INTO t (c) VALUES ({value})")
    twin.query("SET SESSION sql_mode = 'STRICT_TRANS_TABLES'")
    shown = _shown(twin, column)
    twin.query("DROP TABLE IF EXISTS filled")
    twin.query("RENAME TABLE t TO filled")
    return shown


def test_fills_that_count_as_equal_are_equal_on_the_server(twin: Twin) -> None:
    seen: dict[str, tuple[str, object]] = {}
    equal = 0
    for text in _ADDED:
        twin.is_taken("DROP TABLE IF EXISTS t")
        twin.tracked.pop((HOME, "t"), None)
        assert twin.execute("CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY)")
        twin.query("INSERT INTO t VALUES (1)")
        try:
            twin.query("SET SESSION sql_mode = ''")
            if not twin.execute(f"ALTER TABLE t ADD COLUMN c {text}"):
                continue
        except pymysql.MySQLError:
            continue
        column = twin.tracked[HOME, "t"].column("c")
        assert column is not None
        fill = fill_text(column)
        if not fill:
            continue
        (value,) = _shown(twin, column)
        if fill in seen:
            equal += 1
            assert seen[fill][1] == value, (text, seen[fill])
        seen.setdefault(fill, (text, value))
    assert equal >= 15
