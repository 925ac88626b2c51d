"""The driver's loop on a real Kafka and a real target; sources and coordinator are played."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any
from zipimport import zipimporter

import pytest

from shardmerge.local.servers.stack import LocalStack
from shardmerge.schemas.model.errors import TargetError
from shardmerge.schemas.model.names import TargetTable
from shardmerge.schemas.records.decisions import StatementKind
from shardmerge.spark_sink.process.settings import SinkSettings
from shardmerge.spark_sink.targets.mysql.session import MySqlSession
from shardmerge.spark_sink.targets.mysql.tasks.batches import BatchRunner
from tests.breadth import with_further
from tests.integration.spark.played_line import Line, rest, until


@pytest.fixture(params=with_further(False, True), ids=["own topics", "one topic"])
def line(stack: LocalStack, request: pytest.FixtureRequest) -> Iterator[Line]:
    line = Line(stack, shared=request.param)
    yield line
    line.close()


def test_rows_follow_the_statement_that_they_need(line: Line) -> None:
    [shard] = line.make("a")
    line.begin()
    line.rows(shard, {"id": 1, "a": 10})
    offset, place = line.change(), line.here()
    line.rows(shard, {"id": 2, "a": 20, "c": 30})
    line.commit()
    add = line.statement("ALTER TABLE TARGET ADD COLUMN `c` int", c="c")
    line.decide(shard, offset, place, "id a c", add)
    driver = line.start()
    rest(driver)
    assert line.content() == [(1, 10, None), (2, 20, 30)]


def test_no_row_passes_a_change_that_is_not_decided(line: Line) -> None:
    [shard] = line.make("a")
    driver = line.start()
    rest(driver)
    line.begin()
    offset, place = line.change(), line.here()
    line.rows(shard, {"id": 1, "a": 10})
    line.commit()
    rest(driver)
    assert line.content() == []
    line.decide(shard, offset, place, "id a")
    until(driver, lambda: line.content() == [(1, 10)])


def test_rows_of_an_open_transaction_wait_and_arrive(line: Line) -> None:
    [shard] = line.make("a")
    driver = line.start()
    line.begin()
    line.rows(shard, {"id": 1, "a": 10})
    line.connector.flush()
    rest(driver)
    assert line.content() == []
    line.commit()
    until(driver, lambda: line.content() == [(1, 10)])


def test_rows_behind_a_renamed_key_wait_for_those_before_it_in_every_partition(line: Line) -> None:
    [shard] = line.make("a", partitions=2)
    line.begin()
    line.rows(shard, {"id": 1, "a": 1}, {"id": 2, "a": 1}, partition=1)
    offset, place = line.change(), line.here()
    # The message keys have another text now: they may be anywhere.
    line.deletions(shard, {"k": 1, "a": 1})
    line.rows(shard, {"k": 2, "a": 2})
    line.commit()
    line.decide(shard, offset, place, "id=k a", key="k")
    driver = line.start()
    rest(driver)
    assert line.content() == [(2, 2)]


def test_a_held_shard_loses_nothing_and_delays_nobody(line: Line) -> None:
    held, flowing = line.make("a", "b")
    line.begin()
    line.rows(held, {"id": 1, "a": 1})
    offset, place = line.change(), line.here()
    line.rows(held, {"id": 2, "a": 2})
    line.rows(flowing, {"id": 3, "a": 3})
    line.commit()
    line.decide(held, offset, place, "id a", hold=True)
    driver = line.start()
    rest(driver)
    assert line.content() == [(1, 1), (3, 3)]
    line.begin()
    offset, place = line.change(), line.here()
    line.commit()
    line.decide(flowing, offset, place, "id a", releases=(held,))
    until(driver, lambda: line.content() == [(1, 1), (2, 2), (3, 3)])


def test_a_debt_is_paid_when_the_last_row_before_it_is_applied(line: Line) -> None:
    one, two = line.make("a", "b")
    driver = line.start()
    rest(driver)
    line.begin()
    offset, place = line.change(), line.here()
    line.commit()
    line.decide(one, offset, place, "id")
    line.begin()
    line.rows(two, {"id": 1, "a": 1})
    line.connector.flush()
    offset, place = line.change(), line.here()
    drop = line.statement("ALTER TABLE TARGET DROP COLUMN `a`", StatementKind.CONTRACTING, a="")
    line.decide(two, offset, place, "id", drop)
    rest(driver)
    assert line.columns() == ["id", "a"]
    line.commit()
    until(driver, lambda: line.columns() == ["id"])
    assert line.content() == [(1,)]


def test_a_refused_statement_holds_only_who_needs_it_and_is_tried_again(line: Line) -> None:
    one, two = line.make("a", "b")
    driver = line.start()
    rest(driver)
    line.session.execute(f"ALTER TABLE {line.target.sql} ADD COLUMN `c` date")
    line.begin()
    offset, place = line.change(), line.here()
    line.rows(one, {"id": 1, "a": 1, "c": 1})
    line.rows(two, {"id": 2, "a": 2})
    line.commit()
    add = line.statement("ALTER TABLE TARGET ADD COLUMN `c` int", c="c")
    line.decide(one, offset, place, "id a c", add)
    rest(driver)
    assert line.content() == [(2, 2, None)]
    line.session.execute(f"ALTER TABLE {line.target.sql} DROP COLUMN `c`")
    until(driver, lambda: line.content() == [(1, 1, 1), (2, 2, None)])


def test_a_statement_that_waits_for_a_lock_stops_its_own_target_only(line: Line) -> None:
    [waiting] = line.make("a")
    slow = line.target
    line.target = TargetTable(slow.database, "u")
    [flowing] = line.make("b")
    driver = line.start()
    rest(driver)
    reader = MySqlSession(line.address)
    with reader.transaction():
        reader.query(f"SELECT * FROM {slow.sql}")
        line.target = slow
        line.begin()
        offset, place = line.change(), line.here()
        line.rows(waiting, {"id": 1, "a": 1, "c": 1})
        line.commit()
        add = line.statement("ALTER TABLE TARGET ADD COLUMN `c` int", c="c")
        line.decide(waiting, offset, place, "id a c", add)
        rest(driver, but_for_statements=True)
        line.begin()
        line.rows(flowing, {"id": 2, "a": 2})
        line.commit()
        line.target = TargetTable(slow.database, "u")
        until(driver, lambda: line.content() == [(2, 2)])
        line.target = slow
        assert line.columns() == ["id", "a"]
    reader.close()
    until(driver, lambda: line.columns() == ["id", "a", "c"] and line.content() == [(1, 1, 1)])


def test_statements_of_many_targets_that_wait_do_not_keep_another_target_waiting(
    line: Line,
) -> None:
    database = line.target.database
    shards = {}
    for name in ("slow1", "slow2", "slow3", "slow4", "slow5", "quick"):
        line.target = TargetTable(database, name)
        [shards[line.target]] = line.make(name)
    driver = line.start()
    rest(driver)
    *slow, quick = shards
    reader = MySqlSession(line.address)
    with reader.transaction():
        for target in slow:
            reader.query(f"SELECT * FROM {target.sql}")
        for number, target in enumerate(shards, 1):
            line.target = target
            line.begin()
            offset, place = line.change(), line.here()
            line.rows(shards[target], {"id": number, "a": 1, "c": 1})
            line.commit()
            add = line.statement("ALTER TABLE TARGET ADD COLUMN `c` int", c="c")
            line.decide(shards[target], offset, place, "id a c", add)
        line.target = quick
        until(driver, lambda: line.columns() == ["id", "a", "c"] and line.content() == [(6, 1, 1)])
        for line.target in slow:
            assert line.columns() == ["id", "a"]
    reader.close()

    def rows() -> list[tuple[Any, ...]]:
        found = []
        for line.target in slow:
            found += line.content()
        return found

    until(driver, lambda: rows() == [(number, 1, 1) for number in range(1, 6)])


def test_a_new_driver_goes_on_and_the_old_one_is_refused(line: Line) -> None:
    [shard] = line.make("a")
    old = line.start()
    rest(old)
    line.begin()
    line.rows(shard, {"id": 1, "a": 1})
    line.commit()
    until(old, lambda: line.content() == [(1, 1)])
    new = line.start()
    line.begin()
    line.rows(shard, {"id": 1, "a": 2}, {"id": 2, "a": 2})
    line.commit()
    with pytest.raises(TargetError, match="another writer took over"):
        until(old, lambda: False)
    with pytest.raises(TargetError, match="another writer took over"):
        old.check_writer()
    new.check_writer()
    assert line.content() == [(1, 1)]
    until(new, lambda: line.content() == [(1, 2), (2, 2)])


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # py4j's sockets
def test_a_large_batch_runs_in_spark(line: Line) -> None:
    shards = line.make("a", "b", "c")
    runner = BatchRunner(SinkSettings(Path()), line.config(), 100)
    runner.start()
    try:
        driver = line.start(runner)
        rest(driver)
        line.begin()
        for number, shard in enumerate(shards):
            first = number * 10_000
            line.rows(shard, *({"id": first + n, "a": n} for n in range(1_000)))
        line.commit()
        runner.spark.session()
        until(driver, lambda: len(line.content()) == 3_000)
        assert_workers_keep_what_they_know(runner.spark.session().sparkContext)
    finally:
        runner.stop()


def assert_workers_keep_what_they_know(context: Any) -> None:
    """After a batch no task reads Spark's archives again, or collects what was there before."""

    def look(_: Iterable[int]) -> Iterator[tuple[list[str], bool]]:
        read = [p for p, i in sys.path_importer_cache.items() if isinstance(i, zipimporter)]
        yield read, gc.get_freeze_count() > 1_000

    # One slice: it is a worker's of the batch before, not a new one's.
    assert context.parallelize([1], 1).mapPartitions(look).collect() == [([], True)]
