"""What the target cannot have because the shards' columns are too long together."""

from __future__ import annotations

import pytest

from shardmerge.schemas.target.dialects.mysql_sizes import key_bytes, row_bytes
from tests.golden.test_diff import Rollout
from tests.strategies import table


def test_an_index_whose_entries_are_too_long_is_left_out_and_comes_again() -> None:
    columns = "id int primary key, a varchar(200), b varchar(200), key k (a, b)"
    rollout = Rollout(f"create table t ({columns})", 2)
    rollout.alter(0, "modify a varchar(560)")

    both = rollout.alter(1, "modify b varchar(560)")
    back = rollout.alter(1, "modify b varchar(200)")

    assert [text.partition("  --")[0] for text in both] == [
        "expanding: DROP INDEX `k`",
        "expanding: MODIFY COLUMN `b` varchar(560) CHARACTER SET utf8mb4",
    ]
    assert "contracting: ADD INDEX `k` (`a`, `b`)" in [t.partition("  --")[0] for t in back]


@pytest.mark.parametrize(
    ("columns", "one", "other", "what"),
    [
        ("id int primary key", "add a varchar(10000)", "add b varchar(10000)", "a row of all"),
        ("a varchar(200), b varchar(200), primary key (a, b)", "modify a varchar(560)",
         "modify b varchar(560)", "the primary key would have 4,480 bytes"),
    ],
)  # fmt: skip
def test_a_table_that_no_server_can_have_is_refused_with_the_reason(
    columns: str, one: str, other: str, what: str
) -> None:
    rollout = Rollout(f"create table t ({columns})", 2)
    rollout.alter(0, one)
    [refusal] = rollout.alter(1, other)
    assert refusal.startswith(f"cannot: {what}")


def test_sizes_are_those_of_the_manual() -> None:
    schema = table(
        "create table t (a varchar(100) charset latin1, b char(3), c text, d int, e decimal(18,2),"
        " f bit(9), g varbinary(300), h int as (d) virtual, key k (a(10), c(5), d), key u (b))"
    )
    assert row_bytes(schema) == 101 + 12 + 10 + 4 + 8 + 2 + 302
    assert [key_bytes(index, schema) for index in schema.indexes] == [10 + 20 + 4, 12]
