"""What ``shardmerge status`` tells of the targets."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from shardmerge.cli.main import _tell_targets
from shardmerge.cli.observer import Facts
from shardmerge.schemas.events import (
    ChangeId,
    Decision,
    FailureProgress,
    JoinedSchema,
    Outcome,
    ShardProgress,
    SinkProgress,
)
from shardmerge.schemas.names import ShardId, TargetTable
from shardmerge.schemas.position import SourcePosition

TARGET = TargetTable("merged", "t")


@pytest.mark.parametrize("hint", ["start it", ""])
def test_rows_that_cannot_be_applied_are_told(
    hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    failure = FailureProgress("the target is away", hint, "s1.app.a/0 and 2 more", 1_200, 1_000)
    progress = SinkProgress(TARGET, 1, 5, failure=failure)
    facts = Facts({}, (), {}, {TARGET: JoinedSchema(TARGET, 3, (), None, 0)}, {TARGET: progress})
    line = SimpleNamespace(observer=SimpleNamespace(facts=lambda: facts))

    _tell_targets(cast(Any, line))

    assert capsys.readouterr().out.splitlines() == [
        "merged.t: version 3, 5 rows applied",
        "  rows of s1.app.a/0 and 2 more: 1,200 tries failed since 1970-01-01 00:00:01 UTC: the "
        "target is away",
        *([f"    {hint}"] if hint else []),
    ]


def test_rows_that_were_written_over_others_are_told(capsys: pytest.CaptureFixture[str]) -> None:
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
    line = SimpleNamespace(observer=SimpleNamespace(facts=lambda: facts))

    _tell_targets(cast(Any, line))

    assert capsys.readouterr().out.splitlines()[1:] == [
        "  s1/app.a: flows",
        "  s1/app.b: waits, 3 rows at most: waits for version 2",
        "    1,234 of its rows, or more, were written over rows with the",
        '    same primary key: see "Which shard a row came from" in the README',
    ]
