"""Defaults that fill existing rows with what nobody can compute again."""

from __future__ import annotations

import pytest

from shardmerge.schemas.ddl.volatile_defaults import volatile_default
from tests.strategies import table


def column(definition: str):
    return table(f"create table t (c {definition})").columns[0]


@pytest.mark.parametrize(
    ("definition", "function", "by_row"),
    [
        ("datetime default current_timestamp", "current_timestamp", False),
        ("timestamp(3) not null default now(3) on update now(3)", "current_timestamp", False),
        ("date default (curdate())", "curdate", False),
        ("date default (current_date + interval 1 day)", "curdate", False),
        ("varchar(36) default (uuid())", "uuid", True),
        ("binary(16) default (uuid_to_bin(uuid()))", "uuid", True),
        ("double default (rand())", "rand", True),
        ("datetime default (sysdate())", "sysdate", True),
        ("bigint default (unix_timestamp())", "unix_timestamp", False),
        ("varchar(99) default (concat('x', current_user()))", "current_user", False),
        ("int default (connection_id())", "connection_id", False),
    ],
)
def test_a_default_of_the_moment_or_of_chance_is_volatile(
    definition: str, function: str, by_row: bool
) -> None:
    found = volatile_default(column(definition))
    assert found is not None
    assert (found.function, found.differs_by_row) == (function, by_row)
    assert found.column == "c" and function in found.expression.lower()


@pytest.mark.parametrize(
    "definition",
    [
        "int default 5", "int", "int not null", "varchar(9) default 'now()'",
        "varchar(9) default ('uuid()')", "json default (json_array())",
        "bigint default (unix_timestamp('2020-01-01 00:00:00'))",
        "int default (abs(-5))",
    ],
)  # fmt: skip
def test_a_constant_is_not(definition: str) -> None:
    assert volatile_default(column(definition)) is None


def test_a_column_that_is_called_like_a_function_is_not() -> None:
    schema = table("create table t (`rand` int, c int default (`rand` + 1))")
    assert volatile_default(schema.columns[1]) is None
