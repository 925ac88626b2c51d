"""What ``shardmerge status`` tells of the targets."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from shardmerge.cli.status import lines
from shardmerge.connectors.kafka.observer import Facts
from shardmerge.schemas.model.names import ShardId, TargetTable
from shardmerge.schemas.model.position import SourcePosition
from shardmerge.schemas.records.decisions import Decision, JoinedSchema, Outcome
from shardmerge.schemas.records.progress import FailureProgress, ShardProgress, SinkProgress
from shardmerge.schemas.records.schema_changes import ChangeId

TARGET = TargetTable("merged", "t")
AT = datetime(2026, 11, 24, 19, 30, tzinfo=UTC)


@pytest.mark.parametrize("hint", ["start it", ""])
def test_rows_that_cannot_be_applied_are_told(hint: str) -> None:
    failure = FailureProgress("the target is away", hint, "s1.app.a/0 and 2 more", 1_200, 1_000)
    progress = SinkProgress(TARGET, 1, 5, failure=failure)
    facts = Facts({}, (), {}, {TARGET: JoinedSchema(TARGET, 3, (), None, 0)}, {TARGET: progress})

    assert list(lines(facts, AT)) == [
        "as of 2026-11-24 19:30:00 UTC",
        "merged.t: version 3, executed up to 1, 5 rows applied",
        "  rows of s1.app.a/0 and 2 more: 1,200 tries failed since 1970-01-01 00:00:01 UTC: the "
        "target is away",
        *([f"    {hint}"] if hint else []),
    ]


def test_rows_that_were_written_over_others_are_told() -> None:
    flowing, waiting = ShardId("s1", "app", "a"), ShardId("s1", "app", "b")
    progress = SinkProgress(
        TARGET, 2, 5,
        shards=(ShardProgress(flowing, 9),
                ShardProgress(waiting, 9, "waits for version 2", parked=3, overwritten=1_234)),
    )  # fmt: skip
    place = SourcePosition(0, "binlog.000001", 4, 0)
    decisions = tuple(
        Decision(ChangeId("s1", version), TARGET, version, shard, place, Outcome.NOOP)
        for version, shard in enumerate((flowing, waiting), 1)
    )
    joined = JoinedSchema(TARGET, 2, (), None, 2)
    facts = Facts({}, decisions, {}, {TARGET: joined}, {TARGET: progress})

    assert list(lines(facts, AT))[2:] == [
        "  s1/app.a: flows",
        "  s1/app.b: waits, 3 rows at most: waits for version 2",
        "    1,234 of its rows, or more, were written over rows with the",
        "    same primary key: see docs/how-to/origin-columns.md",
    ]
