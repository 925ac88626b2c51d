"""One comparison of a whole target, as ``validate``, ``cutover`` and ``rebuild`` run it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from shardmerge.schemas.model.names import ShardId, TargetTable
from shardmerge.schemas.pipeline.settings import Pipeline
from shardmerge.spark_sink.loading.chunk_queries import table_statistics
from shardmerge.spark_sink.validation.compared_table import ComparedTable
from shardmerge.spark_sink.validation.doubts import Key

from .inputs.applied_offsets import Applied
from .inputs.line_passing import LinePassing
from .inputs.server_rows import ServerRows
from .inputs.topic_facts import TopicFacts
from .progress_lines import ProgressLines
from .saved_state import StateFile
from .target_run import Limits, TargetRun


def compare_target(
    pipeline: Pipeline,
    target: TargetTable,
    facts: TopicFacts,
    servers: ServerRows,
    *,
    limits: Limits,
    state: StateFile,
    only: Sequence[ShardId] = (),
    applied: Applied | None = None,
    before: Callable[[TargetRun], Sequence[Key] | None] = lambda _: None,
) -> tuple[TargetRun, float]:
    """Compare a target with its shards, and tell on stderr how far that is.

    Args:
        pipeline: The target's.
        target: The target.
        facts: What the topics say.
        servers: Reads shards and target.
        limits: Of the comparison.
        state: Keeps the state of the comparison.
        only: The shards to compare; empty for all.
        applied: See ``LinePassing``.
        before: Called before anything is compared. It returns the keys of the rows to compare; None
            for all rows.

    Returns:
        The comparison at its end, and how many seconds it took.

    Raises:
        StackError: A server, Kafka or Kafka Connect does not answer.
    """
    began = time.monotonic()
    watcher = ProgressLines(str(target))
    try:
        run = TargetRun(
            facts.of(target),
            only,
            servers=servers,
            passing=lambda shards: LinePassing(pipeline, shards, limits.patience_s, applied),
            limits=limits,
            state=state,
            watcher=watcher,
        )
        keys = before(run)
        watcher.expect(_rows(servers, run.validation.table) if keys is None else len(keys))
        run.run(keys)
    finally:
        watcher.close()
    return run, time.monotonic() - began


def _rows(servers: ServerRows, table: ComparedTable) -> int:
    """About how many rows the target has, as its server estimates."""
    if table.side.lake:
        return int(servers.ask(table.side, f"SELECT COUNT(*) FROM {table.side.table}")[0][0])
    at = ShardId("", table.target.database, table.target.table)
    found = servers.ask(table.side, table_statistics(at))
    return int(found[0][0] or 0) if found else 0
