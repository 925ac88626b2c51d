"""What ``shardmerge status`` tells of the targets: one consistent picture, and its time."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from shardmerge.connectors.kafka.observer import Facts, Observer
from shardmerge.schemas.codes.registry import coded
from shardmerge.schemas.pipeline.settings import Pipeline
from shardmerge.schemas.records.decisions import Decision
from shardmerge.spark_sink.barrier.partitions import Partition
from shardmerge.spark_sink.kafka.offsets import OffsetReader

READ_S = 120.0
"""Bound of the time to read the topics to the ends that they had, in seconds."""


def read_facts(pipeline: Pipeline) -> tuple[Facts, datetime]:
    """What the pipeline's topics say now.

    The topics' ends are asked for one after another, progress before decisions. Then exactly the
    records below these ends are read. So the picture has every decision that a progress record
    counts as executed.

    Returns:
        The facts, and the time before which everything in them was written.

    Raises:
        StackError: Kafka does not answer, or the topics cannot be read to these ends.
    """
    reader, observer = OffsetReader(pipeline.kafka), Observer(pipeline)
    known = reader.partitions(observer.topics)
    ends: dict[str, int] = {}
    for topic in observer.topics:
        if topic in known:
            at = Partition(topic, 0)
            ends[topic] = reader.stable_ends([at])[at]
    now = datetime.now(UTC)
    return observer.read_to(ends, READ_S), now


def lines(facts: Facts, at: datetime) -> Iterator[str]:
    """The picture as lines of text.

    Args:
        facts: What ``read_facts`` gave.
        at: The time of it.
    """
    yield f"as of {at:%Y-%m-%d %H:%M:%S} UTC"
    for target, joined in sorted(facts.joined.items()):
        progress = facts.progress.get(target)
        rows = progress.rows if progress else 0
        executed = f", executed up to {progress.executed_version}" if progress else ""
        yield f"{target}: version {joined.version}{executed}, {rows:,} rows applied"
        if progress and progress.ts_ms:
            yield f"  the sink reported last at {_moment(progress.ts_ms)}"
        if failure := progress.failure if progress else None:
            tries = f"{failure.times:,} tries failed since {_moment(failure.since_ms)}"
            yield f"  rows of {failure.where}: {tries}: {coded(failure.code, failure.message)}"
            if failure.hint:
                yield f"    {failure.hint}"
        held = facts.held(target)
        shards = {s.shard: s for s in progress.shards} if progress else {}
        for shard in facts.live(target):
            if shard in held:
                yield f"  {shard}: held at {held[shard].position}: {_why(held[shard])}"
                yield f"    {held[shard].hint}"
            elif (found := shards.get(shard)) is not None and found.waiting:
                why = coded(found.code, found.waiting)
                yield f"  {shard}: waits, {found.parked:,} rows at most: {why}"
            else:
                yield f"  {shard}: flows"
            if shard in shards and (overwritten := shards[shard].overwritten):
                yield f"    {overwritten:,} of its rows, or more, were written over rows with the"
                yield "    same primary key: see docs/how-to/origin-columns.md"
        for statement in progress.open if progress else ():
            yield f"  {statement.state}: {statement.sql} {coded(statement.code, statement.detail)}"


def _why(decision: Decision) -> str:
    return coded(decision.code, decision.reason)


def _moment(ms: int) -> str:
    return f"{datetime.fromtimestamp(ms / 1000, UTC):%Y-%m-%d %H:%M:%S} UTC"
