"""What ``shardmerge status`` tells of the targets."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from shardmerge.cli.main import _tell_targets
from shardmerge.cli.observer import Facts
from shardmerge.schemas.events import FailureProgress, JoinedSchema, SinkProgress
from shardmerge.schemas.names import TargetTable

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
