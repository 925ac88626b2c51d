"""A writer of an Iceberg target that is killed (SIGKILL) at a named point of its work.

Usage: ``python -m tests.integration.spark.killed_writer POINT WAREHOUSE BOOTSTRAP NAME``
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn, cast

from shardmerge.connectors.local.stack import LocalStack
from shardmerge.spark_sink.targets.iceberg.batches import IcebergBatches
from shardmerge.spark_sink.targets.iceberg.tables import IcebergTable

POINTS = (
    "before the schema", "after the schema", "before staging", "after staging", "after the commit",
)  # fmt: skip


def die(*_: object, **__: object) -> NoReturn:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("still alive")


def kill_at(point: str) -> None:
    """Replace what stands at a point."""
    commit, stage = IcebergTable.commit, IcebergBatches._stage

    def committing(table: IcebergTable, properties: Any, **what: Any) -> None:
        is_schema, is_rows = what.get("layout") is not None, what.get("publish") is not None
        if point == "before the schema" and is_schema:
            die()
        commit(table, properties, **what)
        if (point == "after the schema" and is_schema) or (point == "after the commit" and is_rows):
            die()

    def staging(*arguments: Any, **named: Any) -> None:
        if point == "before staging":
            die()
        stage(*arguments, **named)
        if point == "after staging":
            die()

    cast("Any", IcebergTable).commit = committing
    cast("Any", IcebergBatches)._stage = staging


def main(point: str, warehouse: str, bootstrap: str, name: str) -> None:
    from .contract import Contract, IcebergKind

    kill_at(point)
    ports = SimpleNamespace(source1=0, target=0)
    stack = SimpleNamespace(bootstrap_servers=bootstrap, connect_url="", ports=ports)
    contract = Contract(IcebergKind(Path(warehouse)), cast("LocalStack", stack), name)
    writer = contract.start()
    print("applying", flush=True)
    writer.apply()
    writer.execute(2, contract.add("w int"))
    raise AssertionError(f"{point} was not reached")


if __name__ == "__main__":
    main(*sys.argv[1:])
