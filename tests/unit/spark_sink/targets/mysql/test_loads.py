from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

from shardmerge.schemas.model.coded_text import CodedText
from shardmerge.schemas.model.names import TargetTable
from shardmerge.schemas.pipeline.settings import Kafka, Source
from shardmerge.schemas.target.row_statements import clearing
from shardmerge.spark_sink.planning.chunk_orders import ChunkEnd, ChunkOrder, ChunkResult
from shardmerge.spark_sink.process.worker_start import WorkerStart
from shardmerge.spark_sink.targets.mysql import loads as module
from shardmerge.spark_sink.targets.mysql.loads import MySqlLoads
from shardmerge.spark_sink.targets.mysql.session import MySqlAddress
from shardmerge.spark_sink.targets.mysql.tasks.connection import ApplyConfig
from tests.unit.spark_sink.sources.test_chunk_task import SHARD, order

SOURCE = Source("s1", "h", 1, "u", "p", 1)
CONFIG = ApplyConfig(Kafka("127.0.0.1:1"), MySqlAddress("h", 1, "u", "p"), "control", "loads")
IN_DRIVER, IN_SPARK = (ChunkResult(SHARD, n, ChunkEnd.DONE) for n in (1, 2))


class Spark:
    """Its jobs say that they have run."""

    def session(self) -> Any:
        session = Mock()
        job = session.sparkContext.parallelize.return_value.mapPartitions.return_value
        job.collect.return_value = [IN_SPARK]
        return session


def loads(monkeypatch: pytest.MonkeyPatch, *, started: bool) -> MySqlLoads:
    monkeypatch.setattr(WorkerStart, "have_started", lambda _: started)
    spark: Any = Spark()
    return MySqlLoads(Mock(), Mock(), CONFIG, spark)


@pytest.mark.parametrize(("started", "small"), [(False, False), (False, True), (True, True)])
def test_the_driver_runs_small_chunks_and_those_that_come_before_workers_have_started(
    monkeypatch: pytest.MonkeyPatch, started: bool, small: bool
) -> None:
    monkeypatch.setattr(module, "run_chunks", lambda *_: iter([IN_DRIVER]))
    assert loads(monkeypatch, started=started).run(order(), SOURCE, small=small) is IN_DRIVER


def test_workers_run_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    assert loads(monkeypatch, started=True).run(order(), SOURCE, small=False) is IN_SPARK


def test_the_driver_runs_few_chunks_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    target = loads(monkeypatch, started=False)
    begun: list[ChunkResult] = []

    def run_chunks(orders: Iterable[ChunkOrder], *_: object) -> Iterator[ChunkResult]:
        # The next one comes while this one runs.
        begun.append(IN_DRIVER)
        result = target.run(order(), SOURCE, small=False)
        if result is IN_SPARK:
            begun.append(IN_SPARK)
        yield IN_DRIVER

    monkeypatch.setattr(module, "run_chunks", run_chunks)
    assert target.run(order(), SOURCE, small=False) is IN_DRIVER
    assert begun == [IN_DRIVER, IN_DRIVER, IN_SPARK]
    assert target.run(order(), SOURCE, small=False) is IN_DRIVER, "there is room again"


def test_rows_are_deleted_in_parts_by_the_writer_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    target = loads(monkeypatch, started=True)
    session, control = Mock(), Mock()
    session.transaction = lambda: nullcontext([])
    session.execute.side_effect = [10_000, 7, 0]
    connection = SimpleNamespace(session=session, control=control)
    monkeypatch.setattr(module, "idle_connection", lambda _: nullcontext(connection))
    table = TargetTable("merged", "t")

    target.clear(3, table, clearing(table, CodedText("why", "SM-1924")))
    deleted = [call.args[0] for call in session.execute.call_args_list]
    assert deleted == ["DELETE FROM `merged`.`t` LIMIT 10000"] * 3
    assert [call.args for call in control.fence.call_args_list] == [(3, table)] * 3


def test_a_copy_that_runs_is_told_when_the_sink_stops(monkeypatch: pytest.MonkeyPatch) -> None:
    target = loads(monkeypatch, started=True)
    told: list[bool] = []

    def copy_snapshot(of: ChunkOrder, config: ApplyConfig, is_stopped: Callable[[], bool]) -> None:
        told.append(is_stopped())
        target.stop()
        told.append(is_stopped())

    monkeypatch.setattr(module, "copy_snapshot", copy_snapshot)
    assert target.copy(order()) is None
    assert told == [False, True]
