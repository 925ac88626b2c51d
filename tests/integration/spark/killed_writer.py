"""A writer of an Iceberg target that comes by every failpoint of rows and statements.

Usage: ``SHARDMERGE_SINK_FAILPOINT=… python -m tests.integration.spark.killed_writer WAREHOUSE
BOOTSTRAP NAME``
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import cast

from shardmerge.local.servers.stack import LocalStack
from shardmerge.schemas.pipeline.settings import Kafka

from .contract import Contract, IcebergKind


def main(warehouse: str, bootstrap: str, name: str) -> None:
    ports = SimpleNamespace(source1=0, target=0)
    stack = SimpleNamespace(
        bootstrap_servers=bootstrap, kafka=Kafka(bootstrap), connect_url="", ports=ports
    )
    contract = Contract(IcebergKind(Path(warehouse)), cast("LocalStack", stack), name)
    writer = contract.start()
    print("applying", flush=True)
    writer.apply()
    writer.execute(2, contract.add("w int"))
    raise AssertionError("not killed")


if __name__ == "__main__":
    main(*sys.argv[1:])
