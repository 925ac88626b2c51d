"""What a change costs does not grow with the number of shards."""

import copy
import sys
from functools import cache

import pytest

from tests.recorded import Recorded

FEW, MANY = 40, 400


@cache
def recorded(mode: str, shards: int) -> Recorded:
    """So many shards, in the first snapshots."""
    made = Recorded(mode=mode)
    for number in range(shards):
        create = f"CREATE TABLE tbl{number} (id bigint PRIMARY KEY, c int)"
        made.execute(f"s{1 + number % 2}", create, snapshot=True)
    return made


@cache
def with_held(shards: int) -> Recorded:
    """So many shards; all but two are held, since these have not changed the column's type."""
    made = copy.deepcopy(recorded("optimistic", shards))
    for number in range(2, shards):
        ddl = f"ALTER TABLE tbl{number} DROP COLUMN c, ADD COLUMN c date"
        made.execute(f"s{1 + number % 2}", ddl)
    return made


def calls_of_a_change(before: Recorded, ddl: str) -> int:
    """Calls, of Python and of C, that the folds make for a change of one shard among many."""
    made = copy.deepcopy(before)
    # What is made once and kept, such as compiled encoders, is there after a change.
    made.execute("s1", ddl.format(0))
    count = 0

    def counting(_frame: object, event: str, _argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(counting)
    try:
        made.execute("s2", ddl.format(1))
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize("mode", ["optimistic", "pessimistic"])
@pytest.mark.parametrize(
    "ddl",
    [
        "ALTER TABLE tbl{} ADD COLUMN n int",
        "ALTER TABLE tbl{} MODIFY COLUMN c bigint",
        "ALTER TABLE tbl{} ADD INDEX i (c)",
    ],
)
def test_a_change_costs_the_same_among_many_shards(mode, ddl):
    few, many = (calls_of_a_change(recorded(mode, shards), ddl) for shards in (FEW, MANY))
    assert many - few < (MANY - FEW) / 2


@pytest.mark.parametrize(
    "ddl", ["ALTER TABLE tbl{} ADD COLUMN n int", "ALTER TABLE tbl{} ADD COLUMN n int COMMENT 'n'"]
)
def test_a_change_costs_hardly_more_among_many_held_shards(ddl):
    few, many = (calls_of_a_change(with_held(shards), ddl) for shards in (FEW, MANY))
    # The handler looks whether each held shard is another value now: five calls of C.
    assert many - few < 8 * (MANY - FEW)
