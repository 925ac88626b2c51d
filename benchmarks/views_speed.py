"""Seconds of processor time that the views of a pipeline take, by the length of its log.

Usage: ``python -m benchmarks.views_speed [--changes 2000] [--shards 100]``

The log is that of ``replay_speed``, with one shard held at its end, in memory: reading Kafka is not
counted. Given are records per second, and the seconds that a log of 100,000 changes takes:
``picture``, what every view reads; ``explain``, ``conflicts`` and ``schema`` as of now, with it;
``status``, from the agents' table; the same for who may not read that table, from every decision;
``schema --version``, which folds the log; and ``decisions --last 50``.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.replay_speed import recorded
from shardmerge.agents.holds.conflicts import conflicts
from shardmerge.cli.views.decisions import Wanted, decision_lines
from shardmerge.cli.views.explanation import Asked, explanation
from shardmerge.cli.views.picture import Picture, picture_of
from shardmerge.cli.views.schema import joined_schema
from shardmerge.cli.views.status import pipeline_status
from shardmerge.cli.views.target_log import AsOf, TargetLog, present_log, target_log
from shardmerge.schemas.model.names import ShardId, TargetTable
from shardmerge.schemas.pipeline import topics
from shardmerge.schemas.records.record_format import AVRO

TARGET = TargetTable("merged", "tbl")
HELD = ShardId("s1", "shop", "tbl0")
LOG = 100_000


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--changes", type=int, default=2_000)
    parser.add_argument("--shards", type=int, default=100)
    arguments = parser.parse_args()
    made = recorded(arguments.changes, arguments.shards, 6)
    made.execute("s1", "ALTER TABLE tbl0 MODIFY c1 DATE")
    names = [
        spec(made.pipeline).name
        for spec in (topics.sink_progress, topics.joined_schemas, topics.ddl, topics.commands)
    ]
    records = [record for name in names for record in made.topic(name)]
    log = [record for record in made.log() if record.key == str(TARGET).encode()]

    def picture() -> Picture:
        return picture_of(made.pipeline, records, AVRO, 0)

    def now() -> TargetLog:
        found = present_log(made.pipeline, TARGET, made.rows(), 0)
        assert found is not None
        return found

    def of_conflicts() -> object:
        found = now()
        return list(conflicts(found.state, picture().decided_ms(found.target)))

    ways: dict[str, Callable[[], object]] = {
        "picture": picture,
        "explain": lambda: explanation(Asked(picture(), now(), HELD, Path("f"))).causes[0].ways,
        "conflicts": of_conflicts,
        "schema": lambda: (picture(), joined_schema(now())),
        "status": lambda: pipeline_status(picture(), {TARGET: now().state}),
        "status without table": lambda: pipeline_status(picture()),
        "schema --version": lambda: joined_schema(
            target_log(made.pipeline, TARGET, log, AsOf(version=len(log) - 1))
        ),
        "decisions --last 50": lambda: list(decision_lines(picture(), Wanted(last=50))),
    }
    print(f"{len(log):,} changes of {arguments.shards:,} shards; seconds of processor time")
    print(f"{'':<22}{'seconds':>10}{'changes/s':>12}{f'of {LOG:,}':>14}")
    for name, way in ways.items():
        started = time.process_time()
        assert way()
        seconds = time.process_time() - started
        rate = len(log) / seconds
        print(f"{name:<22}{seconds:>10.3f}{rate:>12,.0f}{LOG / rate:>14.1f}", flush=True)


if __name__ == "__main__":
    main()
