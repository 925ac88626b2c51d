"""The sink of a played line as a process of its own, which a failpoint may kill.

Usage: ``python -m tests.integration.spark.played_sink PICKLED_PIPELINE [--spark]
[--standby]``. Without ``--spark`` every batch is applied in the driver, and Spark is not started.
"""

from __future__ import annotations

import os
import pickle
import sys
from pathlib import Path

from shardmerge.connectors.log_lines import set_up
from shardmerge.schemas.model.errors import ShardMergeError
from shardmerge.schemas.pipeline.settings import Pipeline
from shardmerge.spark_sink.job import Stopped, run
from shardmerge.spark_sink.process.settings import JARS, SinkSettings
from shardmerge.spark_sink.targets.mysql.ddl import journal
from shardmerge.spark_sink.targets.mysql.tasks.batches import BatchRunner


def main(path: str, *options: str) -> int:
    """Run until told to end; 1 when the sink cannot go on."""
    set_up("sink")
    pipeline = pickle.loads(Path(path).read_bytes())
    assert isinstance(pipeline, Pipeline)
    journal.ROWS_AT_A_TIME = 3
    if "--spark" not in options:
        BatchRunner.start = lambda self: None  # type: ignore[method-assign]
    stopped = Stopped()
    stopped.install()
    try:
        settings = SinkSettings(
            Path(), jars=os.environ.get(JARS, ""), standby="--standby" in options
        )
        run(settings, pipeline, stopped)
    except ShardMergeError as error:
        print(f"cannot go on: {error}", flush=True)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
