"""The driver's loop on an Iceberg table whose shards change their schemas at their own time."""

from __future__ import annotations

from decimal import Decimal

import pytest

from shardmerge.local.servers.stack import LocalStack
from tests.breadth import with_further
from tests.strategies import table

from .contract import ORIGIN, IcebergKind
from .iceberg_line import IcebergLine

# py4j leaves sockets to the collector.
pytestmark = [
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.mark.parametrize("shared", with_further(False, True), ids=["own topics", "one topic"])
def test_shards_that_add_rename_and_drop_at_their_own_time_end_equal(
    stack: LocalStack, kind: IcebergKind, shared: bool
) -> None:
    line = IcebergLine(stack, kind, shared=shared)
    a, b = line.shard("a"), line.shard("b")
    first = table("create table t (id int primary key, x int, gone varchar(9))")
    line.begin()
    line.send(a, first)
    line.send(b, first)
    line.rows(a, {"id": 1, "x": 10, "gone": "g"})
    line.rows(b, {"id": 2, "x": 20, "gone": "g"})
    line.alter(a, "ADD COLUMN more BIGINT UNSIGNED")
    line.rows(a, {"id": 3, "x": 30, "gone": "g", "more": 2**64 - 1})
    line.rows(b, {"id": 4, "x": 40, "gone": "g"})
    line.commit()
    line.turn()
    assert line.found() == [
        {"id": 1, "x": 10, "gone": "g", "more": None},
        {"id": 2, "x": 20, "gone": "g", "more": None},
        {"id": 3, "x": 30, "gone": "g", "more": Decimal(2**64 - 1)},
        {"id": 4, "x": 40, "gone": "g", "more": None},
    ]
    line.begin()
    line.alter(a, "RENAME COLUMN x TO y")
    line.rows(a, {"id": 5, "y": 50, "gone": "g", "more": 5})
    line.rows(b, {"id": 6, "x": 60, "gone": "g"})
    line.alter(a, "DROP COLUMN gone")
    line.rows(a, {"id": 1, "y": 11, "more": 7})
    line.alter(b, "MODIFY x BIGINT, ADD COLUMN more BIGINT UNSIGNED, DROP COLUMN gone")
    line.rows(b, {"id": 2, "x": 2**40, "more": 8})
    line.alter(b, "RENAME COLUMN x TO y")
    line.rows(b, {"id": 7, "y": 70, "more": None})
    line.commit()
    line.turn()
    assert line.found() == [
        {"id": 1, "y": 11, "more": Decimal(7)},
        {"id": 2, "y": 2**40, "more": Decimal(8)},
        {"id": 3, "y": 30, "more": Decimal(2**64 - 1)},
        {"id": 4, "y": 40, "more": None},
        {"id": 5, "y": 50, "more": Decimal(5)},
        {"id": 6, "y": 60, "more": None},
        {"id": 7, "y": 70, "more": None},
    ]
    # Another driver that starts finds nothing to do.
    line.turn()
    assert len(line.found()) == 7
    line.session.close()


@pytest.mark.parametrize("shared", with_further(False, True), ids=["own topics", "one topic"])
def test_the_rows_of_one_shard_are_emptied_filled_and_removed(
    stack: LocalStack, kind: IcebergKind, shared: bool
) -> None:
    line = IcebergLine(stack, kind, ORIGIN, shared=shared)
    a, b = line.shard("a", 2), line.shard("b")
    first = table("create table t (id int primary key, x int)")
    line.begin()
    line.send(a, first)
    line.send(b, first)
    line.rows(a, {"id": 1, "x": 10}, {"id": 4, "x": 40})
    line.rows(b, {"id": 2, "x": 20})
    line.truncation(a)
    line.rows(a, {"id": 3, "x": 30}, partition=1)
    line.rows(a, {"id": 1, "x": 11})
    line.commit()
    line.turn()
    assert line.found() == [
        {"id": 1, "x": 11, "_s": str(a)},
        {"id": 2, "x": 20, "_s": str(b)},
        {"id": 3, "x": 30, "_s": str(a)},
    ]
    line.begin()
    line.alter(b, "ADD COLUMN t TIME NOT NULL DEFAULT '01:00:00'")
    line.rows(b, {"id": 5, "x": 50, "t": 0})
    line.commit()
    line.turn()
    assert [(row["id"], row["t"]) for row in line.found()] == [
        (1, None), (2, 3_600_000_000), (3, None), (5, 0),
    ]  # fmt: skip
    line.begin()
    line.send(b, None, actions=("DROP TABLE",))
    line.commit()
    line.turn()
    assert [row["id"] for row in line.found()] == [1, 3]
    line.session.close()
