"""Compares one target: the ranges, then the rows in doubt, while schemas may change."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from shardmerge.schemas.model.errors import StackError
from shardmerge.schemas.model.names import ShardId
from shardmerge.spark_sink.loading.load_turns import RateBudget
from shardmerge.spark_sink.validation.compared_table import ComparedTable, compared_table
from shardmerge.spark_sink.validation.doubts import Difference, Doubt, Key
from shardmerge.spark_sink.validation.later_parts import later_part
from shardmerge.spark_sink.validation.sampled_rows import SampledRow
from shardmerge.spark_sink.validation.table_validation import (
    Passing,
    Servers,
    TableValidation,
)

from .inputs.server_rows import OtherTable
from .inputs.table_facts import TableFacts
from .report import report_of
from .report_shapes import ValidatedTarget
from .saved_state import StateFile

_SETTLE_AT = 1_000
"""With this many rows in doubt, they are looked at again before more ranges are compared."""
_RANGES_OF_SPARK = 10
"""An Iceberg table is read with ranges this many times as long: for each one Spark looks into all
files of the table."""
_KEYS_A_STEP = 1_000
_MOST_BEGINNINGS = 4
"""So often a comparison begins anew because shards or columns came meanwhile."""
_PAUSE_S = 1.0
_MOMENT_S = 10.0
"""A shard that has just begun to wait is given this much time to go on."""
Facts = Callable[[], TableFacts]
"""Reads what the topics say of the target now."""


class Watcher(Protocol):
    """Is told how far a comparison is."""

    def progressed(self, validation: TableValidation) -> None:
        """After each range, and each look at the rows in doubt."""
        ...


@dataclass(frozen=True, slots=True)
class Limits:
    """What a comparison may do.

    Attributes:
        rows_per_s: Rows that are read a second, on all servers together; None for no limit.
        most: The comparison ends when there are more differences and rows in doubt than this.
        patience_s: How many seconds to wait for a schema change, or for the target.
        rows_a_range: See ``TableValidation``.
    """

    rows_per_s: int | None = None
    most: int = 10_000
    patience_s: float = 120.0
    rows_a_range: int = 20_000

    def rows_in(self, table: ComparedTable) -> int:
        """About how many rows a range of a table has."""
        return self.rows_a_range * (_RANGES_OF_SPARK if table.side.lake else 1)


class TargetRun:
    """The comparison of one target.

    Args:
        facts: Reads what the topics say of the target.
        only: The shards to compare; empty for all.
        servers: Reads shards and target.
        passing: Makes the ``Passing`` of the shards that are compared.
        limits: Limits of the comparison.
        state: Keeps the state of the comparison.
        watcher: Is told how far the comparison is.
    """

    def __init__(
        self,
        facts: Facts,
        only: Sequence[ShardId],
        *,
        servers: Servers,
        passing: Callable[[Sequence[ShardId]], Passing],
        limits: Limits,
        state: StateFile,
        watcher: Watcher,
    ) -> None:
        self._facts, self._only, self._limits = facts, only, limits
        self._servers, self._passing = servers, passing
        self._state, self._watcher = state, watcher
        self._hindered: set[ShardId] = set()
        self._keeps_table = False
        self._beginnings, self._late = 1, ""
        self.known = self._ready()
        table = compared_table(self.known.target, self.known.shards, only)
        self.validation = self._begin(table)
        self.stopped = self.code = ""

    @property
    def obstacles(self) -> int:
        """How many of the wanted shards are not compared."""
        wanted = [s for s in self.known.shards if not self._only or s.shard in self._only]
        return sum(bool(shard.obstacle) for shard in wanted)

    def report(
        self,
        seconds: float,
        repairs: Mapping[Difference, str] | None = None,
        rows: Mapping[Key, SampledRow] | None = None,
    ) -> ValidatedTarget:
        """The shape of the comparison at its end; see ``report.report_of``."""
        return report_of(
            self.validation,
            version=self.known.version,
            obstacles=self.obstacles,
            seconds=seconds,
            stopped=self.stopped,
            code=self.code,
            repairs=repairs,
            rows=rows,
        )

    def run(self, keys: Sequence[Key] | None = None) -> None:
        """Compare everything; ``validation``, ``stopped`` and ``code`` say what was found.

        Args:
            keys: Compare only the rows with these keys; None for all rows.

        Raises:
            StackError: A server, Kafka or Kafka Connect does not answer. ``report`` has what was
                found until then.
        """
        try:
            if not self.validation.table.shards:
                self.stopped = "no shard can be compared"
            elif keys is None:
                self._run_all()
            else:
                self._run_keys(keys)
        except StackError as error:
            self.stopped, self.code = error.message, error.code
            raise

    def _run_keys(self, keys: Sequence[Key]) -> None:
        self._keeps_table = True
        budget = RateBudget(float(self._limits.rows_per_s or 0), time.monotonic())
        for part in range(0, len(keys), _KEYS_A_STEP):
            budget = self._within(budget)
            step = keys[part : part + _KEYS_A_STEP]
            rows = self._guarded(partial(self.validation.compare_keys, step))
            budget = budget.without(rows or 0)
            self._after_step()
            if len(self.validation.doubts) >= _SETTLE_AT:
                self._settle()
            if self.stopped:
                return
        self.validation.scanned = True
        while not self.stopped and self.validation.doubts:
            self._settle()

    def _run_all(self) -> None:
        if self._state.restore(self.validation):
            return
        budget = RateBudget(float(self._limits.rows_per_s or 0), time.monotonic())
        # A look at rows in doubt can find that everything has to be compared anew.
        while not self.stopped and not (self.validation.is_compared and not self.validation.doubts):
            if self.validation.is_compared:
                self._settle()
                continue
            budget = self._within(budget)
            rows = self._guarded(self.validation.compare_next)
            budget = budget.without(rows or 0)
            self._after_step()
            if len(self.validation.doubts) >= _SETTLE_AT:
                self._settle()
        self._state.save(self.validation, done=not self.stopped)
        self.stopped = self.stopped or self._late

    def _after_step(self) -> None:
        validation = self.validation
        self._state.save(validation)
        self._watcher.progressed(validation)
        if len(validation.doubts) + len(validation.differences) > self._limits.most:
            self.stopped = f"more than {self._limits.most} rows differ or are in doubt"

    def _within(self, budget: RateBudget) -> RateBudget:
        limit = self._limits.rows_per_s
        if limit is None:
            return budget
        budget = budget.later(time.monotonic(), limit)
        if budget.rows < 0:
            time.sleep(-budget.rows / limit)
            budget = budget.later(time.monotonic(), limit)
        return budget

    def _settle(self) -> None:
        """Look once at the rows in doubt.

        If schemas changed meanwhile, the differences that were found are in doubt again.
        """
        before = len(self.validation.differences)
        passed = self._guarded(self.validation.settle)
        if passed is False:
            self.stopped = (
                "the target did not apply within"
                f" {self._limits.patience_s:.0f} s what the shards' sources had written"
            )
        if self._changed():
            new = self.validation.differences[before:]
            del self.validation.differences[before:]
            for difference in new:
                self.validation.doubts[difference.key] = Doubt(difference.key)
        self._after_step()

    def _guarded(self, step: Callable[[], int]) -> int | None:
        """The answer of a step; None if a table is not what the topics say.

        Then the topics are read until they say something else.
        """
        until = time.monotonic() + self._limits.patience_s
        try:
            return step()
        except OtherTable as error:
            while not self._changed():
                if time.monotonic() > until:
                    self.stopped = f"a table is not what the topics say: {error.message}"
                    return None
                time.sleep(_PAUSE_S)
            return None

    def _changed(self) -> bool:
        """Read the topics again. Returns whether something else must be compared now."""
        known = self._ready()
        if known == self.known:
            return False
        table = compared_table(known.target, known.shards, self._only)
        old, self.known = self.validation, known
        if table == old.table:
            return False
        if self._keeps_table:
            self.stopped = "schemas changed meanwhile"
            return True
        if not table.shards:
            self.stopped = "no shard can be compared any more"
            return True
        has_other_key = not table.key or table.side.key != old.table.side.key
        later = later_part(old.table, table)
        if has_other_key or (later and self._beginnings < _MOST_BEGINNINGS):
            self._beginnings += not has_other_key
            self.validation = self._begin(table)
            return True
        if later:
            self._late = f"schemas changed often meanwhile: not all rows were compared in {later}"
        old.table = table
        old.passing = self._passing([side.shard for side in table.shards if side.shard])
        old.doubts = {key: Doubt(key) for key in old.doubts}
        return True

    def _ready(self) -> TableFacts:
        """What the topics say once every statement is executed, or patience ends.

        Under traffic a shard can wait for only a moment, so it is given some seconds.
        """
        began = time.monotonic()
        while True:
            known = self._facts()
            hindered = {s.shard for s in known.shards if s.obstacle}
            waited = time.monotonic() - began
            settled = hindered <= self._hindered or waited >= _MOMENT_S
            if (known.executed and settled) or waited >= self._limits.patience_s:
                self._hindered = hindered
                return known
            time.sleep(_PAUSE_S)

    def _begin(self, table: ComparedTable) -> TableValidation:
        shards = [side.shard for side in table.shards if side.shard is not None]
        return TableValidation(
            table, self._servers, self._passing(shards), self._limits.rows_in(table)
        )
