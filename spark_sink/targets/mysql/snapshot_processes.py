"""Reads large snapshots in processes of their own, beside the driver and beside Spark.

A snapshot can take an hour. A Spark job of that length would keep a slot from the rows of all other
shards, and a thread of the driver would slow the driver down and keep it from ending. A process
takes neither a slot nor the driver's time, and can be ended at any moment: an attempt that ends
early leaves nothing behind (``tasks.snapshot_task``). If the driver is killed, the process goes on
until it finds that another writer has taken over, or until it is done.

What a process needs comes by its input, because everybody can read command lines.
"""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Sequence
from threading import Lock

from shardmerge.schemas.pipeline.settings import Source
from shardmerge.spark_sink.planning.chunk_orders import ChunkFailure, ChunkOrder, ChunkResult

from .tasks.chunk_runs import run_chunks
from .tasks.connection import ApplyConfig

_MODULE = "shardmerge.spark_sink.targets.mysql.snapshot_processes"


class SnapshotProcesses:
    """Starts processes, and ends those that run.

    Args:
        config: For the chunks.
        command: Starts a process that reads its task from its input (``main``).
    """

    def __init__(
        self, config: ApplyConfig, command: Sequence[str] = (sys.executable, "-m", _MODULE)
    ) -> None:
        self._config, self._command = config, command
        self._running: set[subprocess.Popen[bytes]] = set()
        self._is_stopped = False
        self._changing = Lock()

    def run(self, order: ChunkOrder, source: Source) -> ChunkResult | ChunkFailure:
        """Read a snapshot in another process, and wait for it. Any thread may call it."""
        task = pickle.dumps((order, source, self._config))
        with self._changing:
            if self._is_stopped:
                return _failure(order, "the sink ends")
            process = subprocess.Popen(
                self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
            )
            self._running.add(process)
        try:
            answer, _ = process.communicate(task)
        finally:
            with self._changing:
                self._running.discard(process)
        if process.returncode:
            return _failure(order, f"it ended with {process.returncode}")
        found: ChunkResult | ChunkFailure = pickle.loads(answer)  # noqa: S301  # our own process
        return found

    def stop(self) -> None:
        """End the processes that run, and begin no others."""
        with self._changing:
            self._is_stopped = True
            for process in self._running:
                process.kill()


def _failure(order: ChunkOrder, reason: str) -> ChunkFailure:
    return ChunkFailure(
        order.load.shard,
        order.chunk.number,
        f"the process that reads the snapshot has not ended well: {reason}",
        "see the log of the sink for what the process has written",
        code="SM-1620",
    )


def main() -> None:
    """Read a task from the input, and write the pickled result to the output."""
    order, source, config = pickle.loads(sys.stdin.buffer.read())  # noqa: S301  # of the driver
    result = next(run_chunks([order], source, config))
    sys.stdout.buffer.write(pickle.dumps(result))
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
