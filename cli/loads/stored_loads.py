"""Reads the loads that a pipeline's target has stored."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias

from shardmerge.cli.endings import imported
from shardmerge.schemas.pipeline.settings import Pipeline
from shardmerge.spark_sink.loading.load_state import Load
from shardmerge.spark_sink.process.settings import settings_from
from shardmerge.spark_sink.targets.mysql.load_store import LoadStore
from shardmerge.spark_sink.targets.mysql.session import MySqlAddress, MySqlSession

ReadLoads: TypeAlias = Callable[[], Sequence[Load]]
"""Reads each shard's latest load; raises ``TargetError`` when the target does not answer."""


@contextmanager
def stored_loads(pipeline: Pipeline, path: Path) -> Iterator[ReadLoads]:
    """A function that reads the loads while the context is open.

    An Iceberg target is read by a Spark in this process.

    Args:
        pipeline: The pipeline.
        path: Its file.
    """
    if pipeline.target.catalog is None:
        yield _of_server(pipeline)
        return
    module = imported("shardmerge.spark_sink.targets.iceberg.target", "spark")
    target = module.IcebergTarget(settings_from(["--pipeline", str(path)], os.environ), pipeline)
    target.spark.begin()
    try:
        yield target.loads.loads
    finally:
        target.close()


def _of_server(pipeline: Pipeline) -> ReadLoads:
    target = pipeline.target
    session = MySqlSession(MySqlAddress.of(target))
    store = LoadStore(session, target.control_database, pipeline.name)

    def read() -> Sequence[Load]:
        if not store.is_prepared():
            return ()
        return tuple({each.shard: each for each in store.loads()}.values())

    return read
