"""Rows of two shards with one primary key, on real servers: what is overwritten is counted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any

import pytest

from shardmerge.local.servers.stack import LocalStack
from shardmerge.schemas.model.errors import TargetError
from shardmerge.spark_sink.planning.ranges import RangeTask, Segment
from shardmerge.spark_sink.targets.mysql.control import ControlStore
from shardmerge.spark_sink.targets.mysql.session import MySqlSession
from shardmerge.spark_sink.targets.mysql.tasks.apply_ranges import apply_together
from tests.breadth import with_further

from .contract import Kind, MySqlKind
from .played_line import Line, rest, until
from .rig import Rig

PLAIN = "id INT NOT NULL PRIMARY KEY, v VARCHAR(20), u INT"
UNIQUE = f"{PLAIN}, UNIQUE KEY (u)"
MANY = 400
"""Rows that LOAD DATA writes; few of them are written by statements."""


class Shards:
    """Two shards of a target."""

    def __init__(self, one: Rig, columns: str) -> None:
        self.one, self.two = one, one.other_shard()
        self.segment: Segment = one.segment(one.create(columns))

    def event(self, of: Rig, op: str, key: int, u: int | None = None, v: str = "") -> bytes:
        return of.event(op, {"id": key, "v": v or f"{of.topic[-4:]} {key}", "u": u})

    def write(self, of: Rig, op: str, keys: Iterable[int], v: str = "") -> None:
        """``u`` is its own in every row of both."""
        shift = 0 if of is self.one else 10**6
        of.produce([self.event(of, op, key, key + shift, v) for key in keys])

    def task(self, of: Rig, **stream: Any) -> RangeTask:
        task = of.task(self.segment)
        return replace(task, stream=replace(task.stream, **stream))

    def collisions(self, *shards: Rig, **stream: Any) -> list[int]:
        """Apply what the shards have, in one transaction: what each has overwritten."""
        tasks = [self.task(of, **stream) for of in shards]
        results = apply_together(tasks, self.one.connection)
        assert [result.hold for result in results] == [None] * len(results)
        return [result.key_collisions for result in results]

    def count(self) -> int:
        return len(self.one.rows("id"))


@pytest.fixture(params=with_further(["mysql80", "mariadb1011"], "mysql97"))
def kind(request: pytest.FixtureRequest, kind_of: Callable[[str], Kind]) -> MySqlKind:
    found = kind_of(str(request.param))
    assert isinstance(found, MySqlKind)
    # Or it would write many rows by statements too.
    found.session.execute("SET GLOBAL local_infile = 1")
    return found


@pytest.fixture(params=(PLAIN, UNIQUE), ids=("primary key", "another unique key"))
def shards(request: pytest.FixtureRequest, stack: LocalStack, kind: MySqlKind) -> Iterator[Shards]:
    with closing(Rig.make(stack, kind.address)) as rig:
        yield Shards(rig, str(request.param))


@pytest.fixture
def plain(rig: Rig) -> Shards:
    """On the stack's own target."""
    return Shards(rig, PLAIN)


@pytest.mark.parametrize("size", [8, MANY], ids=["statements", "load data"])
def test_rows_over_another_shard_s_are_counted_and_a_shard_s_own_are_not(
    shards: Shards, size: int
) -> None:
    one, two, half = shards.one, shards.two, size // 2
    shards.write(one, "r", range(size))
    assert shards.collisions(one) == [0]
    assert one.connection.session.can_load

    shards.write(two, "c", range(half, half + size))
    assert shards.collisions(two) == [half]
    assert shards.count() == size + half

    # One's own: changed, deleted, deleted and made again, in one transaction and in two.
    shards.write(one, "u", range(half), "changed")
    shards.write(one, "d", range(half))
    shards.write(one, "c", range(half), "again")
    assert shards.collisions(one) == [0]
    shards.write(one, "d", range(half))
    assert shards.collisions(one) == [0]
    shards.write(one, "c", range(half), "once more")
    assert shards.collisions(one) == [0]
    assert shards.count() == size + half

    shards.write(one, "c", range(size, size + half), "over the other's")
    shards.write(two, "u", range(half, half + 2), "changed")
    shards.write(two, "c", range(1, 3), "over the first one's")
    assert shards.collisions(one, two) == [half, 2]
    assert shards.count() == size + half


@pytest.mark.parametrize("size", [3, MANY], ids=["statements", "load data"])
def test_two_shards_that_write_the_same_keys_in_one_transaction(shards: Shards, size: int) -> None:
    for of in (shards.one, shards.two):
        shards.write(of, "c", range(size))
    assert shards.collisions(shards.one, shards.two) == [0, size]
    assert shards.count() == size


def test_rows_that_are_read_again_are_no_others(shards: Shards) -> None:
    shards.write(shards.one, "c", range(5))
    assert shards.collisions(shards.one) == [0]
    shards.write(shards.one, "r", range(7), "read again")
    shards.write(shards.one, "u", range(5), "later")
    assert shards.collisions(shards.one, reads_again=True) == [0]
    assert shards.count() == 7


def test_a_row_that_changes_its_key_takes_no_other_s_place(shards: Shards) -> None:
    one = shards.one
    shards.write(one, "c", range(3))
    assert shards.collisions(one) == [0]
    # As Debezium tells UPDATE t SET id = id + 1.
    for key in (2, 1, 0):
        one.produce([shards.event(one, "d", key), None, shards.event(one, "c", key + 1, key)])
    assert shards.collisions(one) == [0]
    assert [row[0] for row in one.rows()] == [1, 2, 3]


def test_rows_that_the_shard_lacks_and_the_target_has_hide_no_row_of_others(
    shards: Shards,
) -> None:
    shards.write(shards.two, "c", range(3))
    assert shards.collisions(shards.two) == [0]
    shards.write(shards.one, "d", range(10, 13))
    shards.write(shards.one, "u", range(20, 23))
    assert shards.collisions(shards.one) == [0]
    shards.write(shards.one, "c", range(3))
    assert shards.collisions(shards.one) == [3]


@pytest.mark.parametrize("number", [1213, 2013], ids=["a deadlock", "a lost connection"])
def test_a_transaction_that_is_repeated_counts_once(
    plain: Shards, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    plain.write(plain.one, "c", range(4))
    plain.collisions(plain.one)
    plain.write(plain.two, "c", range(4))
    real, failed = ControlStore.advance_all, list[int]()

    def advance_all(self: ControlStore, moves: Iterable[Any]) -> None:
        real(self, moves)
        if not failed:
            failed.append(number)
            if number == 2013:
                plain.one.connection.session.close()
            raise TargetError("again", number=number, statement="x", retryable=True)

    monkeypatch.setattr(ControlStore, "advance_all", advance_all)
    assert plain.collisions(plain.two) == [4]
    assert failed


def test_a_lost_acknowledgement_of_commit_loses_no_count(plain: Shards) -> None:
    plain.write(plain.one, "c", range(4))
    plain.collisions(plain.one)
    plain.write(plain.two, "c", range(4))
    real, lost = MySqlSession.execute, list[str]()

    def lose(self: MySqlSession, sql: str, arguments: Sequence[object] = ()) -> int:
        found = real(self, sql, arguments)
        if sql == "COMMIT" and not lost and self is plain.one.connection.session:
            lost.append(sql)
            self.close()
            raise TargetError("gone", number=2013, statement=sql, retryable=True)
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(MySqlSession, "execute", lose)
        assert plain.collisions(plain.two) == [4]
    assert lost


def test_probes_for_a_refused_row_count_nothing(rig: Rig) -> None:
    shards = Shards(rig, UNIQUE)
    shards.write(shards.one, "c", range(9))
    shards.collisions(shards.one)
    shards.write(shards.two, "c", range(5, 9))
    # The unique key of a row of the first one.
    shards.two.produce([shards.event(shards.two, "c", 50, 1), shards.event(shards.two, "c", 6, 60)])
    shards.write(shards.one, "u", range(2))

    one, two = apply_together(
        [shards.task(shards.one), shards.task(shards.two)], shards.one.connection
    )

    assert two.hold is not None and "Duplicate" in two.hold.reason
    assert (one.key_collisions, two.key_collisions, two.rows) == (0, 4, 4)
    [held] = apply_together([shards.task(shards.two)], shards.one.connection)
    assert held.hold == two.hold and held.key_collisions == 0


def test_rounds_of_a_task_add_up(rig: Rig) -> None:
    shards = Shards(rig, PLAIN)
    shards.write(shards.one, "c", range(10))
    shards.collisions(shards.one)
    shards.write(shards.two, "c", range(10))
    connection = type(rig.connection)(replace(rig.config, round_records=3))
    with closing(connection):
        [result] = apply_together([shards.task(shards.two)], connection)
    assert (result.key_collisions, result.written) == (10, 10)


def test_the_sink_warns_of_them_by_shard(
    stack: LocalStack, caplog: pytest.LogCaptureFixture
) -> None:
    with closing(Line(stack)) as line:
        one, two = line.make("a", "b")
        line.begin()
        line.rows(one, {"id": 1, "a": 1}, {"id": 2, "a": 2})
        line.commit()
        driver = line.start()
        rest(driver)
        assert len(line.content()) == 2
        line.begin()
        line.rows(two, {"id": 2, "a": 12}, {"id": 3, "a": 13})
        line.commit()
        until(driver, lambda: len(line.content()) == 3)
        rest(driver)
        warned = [r for r in caplog.records if r.__dict__.get("event") == "rows_overwritten"]
    fields = [vars(r)["fields"] for r in warned]
    assert [(f["target"], f["shard"], f["rows"]) for f in fields] == [
        (str(line.target), str(two), 1)
    ]
    assert "in_keys" in fields[0]["hint"]


def test_rows_before_a_truncate_that_was_not_met_yet_are_no_others(stack: LocalStack) -> None:
    with closing(Line(stack)) as line:
        [shard] = line.make("a", partitions=2)
        line.begin()
        line.rows(shard, {"id": 1, "a": 1}, {"id": 2, "a": 2}, partition=1)
        line.commit()
        driver = line.start()
        rest(driver)
        assert len(line.content()) == 2
        line.begin()
        line.truncation(shard, partition=0)
        line.rows(shard, {"id": 1, "a": 3}, partition=1)
        line.commit()
        seen = []

        def emptied() -> bool:
            seen.append(bool(driver._rows.collisions._pending))
            return line.content() == [(1, 3)]

        until(driver, emptied)
        rest(driver)
        assert any(seen), "the row behind it was applied first"
        assert driver._rows.collisions.rows == {}
        assert driver._rows.collisions._pending == {}
