"""What a step of a scenario expects right behind it: statements, holds, rows, columns."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .ending import count_fault, union_faults
from .model import Step, pending
from .stage import Failed, Stage
from .waiting import Waiting


@dataclass(frozen=True, slots=True)
class Expectations:
    """Looks whether what is expected comes."""

    stage: Stage
    waiting: Waiting

    def check(self, step: Step, expect: Mapping[str, Any], statements: int) -> None:
        """Wait for everything that a step expects.

        Args:
            step: The one behind which it is expected.
            expect: As the scenario's file writes it.
            statements: How many schema changes of the step's shard were played, its own included.

        Raises:
            Failed: Something does not come, or otherwise.
        """
        stage = self.stage
        if "emitted" in expect:
            self._emitted(step, expect["emitted"], statements)
        if "held" in expect:
            wanted, shard = bool(expect["held"]), stage.shard(step)
            self.waiting.poll(
                lambda: (shard in stage.facts.held(stage.target)) == wanted,
                f"{shard} is {'not ' if wanted else ''}held",
            )
        if (wanted_pending := pending(expect)) is not None:
            self.waiting.poll(
                lambda: _as_many(len(stage.facts.held(stage.target)), wanted_pending),
                f"shards that wait: {wanted_pending} expected",
            )
        if expect.get("target_equals_union") is True:
            self.waiting.poll_faults(lambda: union_faults(stage))
            if "rows" in expect:
                self.waiting.poll_faults(lambda: count_fault(stage, expect["rows"]))
        if "target_rows" in expect:
            self.waiting.poll_faults(lambda: count_fault(stage, expect["target_rows"]))
        if "target_column_count" in expect:
            count = expect["target_column_count"]
            self.waiting.poll(
                lambda: len(stage.target_columns()) == count, f"the target has not {count} columns"
            )
        if "target_query" in expect:
            query, shows = stage.named(expect["target_query"]), str(expect["shows"])
            self.waiting.poll(
                lambda: shows in stage.answer(query), f"{query!r} does not show {shows!r}"
            )
        if "task" in expect:
            self.waiting.poll(lambda: not stage.facts.held(stage.target), "a shard is held")

    def _emitted(self, step: Step, patterns: list[str], number: int) -> None:
        stage = self.stage
        shard = stage.shard(step)
        if not number:
            raise Failed(f"no schema change of {shard} was played that could emit something")
        self.waiting.poll(
            lambda: len(stage.decisions(shard)) >= number, f"no decision about {step.sql!r}"
        )
        decision = stage.decisions(shard)[number - 1]
        # Backticks are left out, so that a pattern reads like the statement.
        found = [
            statement.sql.replace(f"`{stage.target.database}`.", "`merged`.").replace("`", "")
            for statement in decision.statements
        ]
        same = len(found) == len(patterns) and all(
            re.search(pattern, text, re.IGNORECASE)
            for pattern, text in zip(patterns, found, strict=True)
        )
        if not same:
            raise Failed(f"emitted {found}, not {patterns}; {decision.outcome}: {decision.reason}")


def _as_many(found: int, wanted: bool | int) -> bool:
    """Whether so many shards wait; ``True`` is at least one, ``False`` none."""
    return (found > 0) is wanted if isinstance(wanted, bool) else found == wanted
