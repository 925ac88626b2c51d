"""Reads a snapshot, or copies it, in a process of its own, so that a failpoint can kill it.

Called with the step and the file that has the pickled order, source and configuration.
"""

from __future__ import annotations

import pickle
import sys
from pathlib import Path

from shardmerge.spark_sink.targets.mysql.tasks.chunk_runs import copy_snapshot, run_chunks


def main(step: str, file: str) -> None:
    order, source, config = pickle.loads(Path(file).read_bytes())
    if step == "read":
        print(next(run_chunks([order], source, config)))
    else:
        print(copy_snapshot(order, config))


if __name__ == "__main__":
    main(*sys.argv[1:])
