"""Which statements of the targets are executed and which are refused, as the driver knows it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from shardmerge.connectors.event_log import logger
from shardmerge.schemas.model.errors import TargetError
from shardmerge.schemas.model.names import TargetTable
from shardmerge.spark_sink.barrier.decisions import StatementKey
from shardmerge.spark_sink.barrier.statements import REFUSED_BY_TARGET, Refused
from shardmerge.spark_sink.targets.interface import StatementJournal

from .statement_runs import StatementResult

log = logger(__name__)

FAILURE_PAUSE_S = 1.0
"""Seconds to wait before a target that did not answer is asked again."""


@dataclass(frozen=True, slots=True)
class _Refusal:
    error: str
    retry_at: float
    code: str
    judged: bool = True


class StatementOutcomes:
    """What the journal holds, and how statements have ended since it was read.

    Args:
        journal: Of the pipeline's target.
        retry_s: Seconds after which a refused statement is tried again.
        clock: Monotonic seconds.

    Attributes:
        executed: Target → its statements that are executed, and the marks of its restarts.
    """

    def __init__(
        self,
        journal: StatementJournal,
        retry_s: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._journal = journal
        self._retry_s = retry_s
        self._clock = clock
        self.executed: dict[TargetTable, set[StatementKey]] = {}
        self._refused: dict[TargetTable, dict[StatementKey, _Refusal]] = {}

    def load(self) -> None:
        """Read the journal; raises ``TargetError``."""
        now = self._clock()
        for (target, version, ordinal), entry in self._journal.load().items():
            key = StatementKey(version, ordinal)
            if entry.state == "done":
                self.note(target, key)
            elif entry.state == "refused":
                self._refuse(
                    target, key, _Refusal(entry.error, now, entry.code or REFUSED_BY_TARGET)
                )

    def note(self, target: TargetTable, key: StatementKey) -> None:
        """Note that a statement is executed, or that a restart's mark is in the journal."""
        self.executed.setdefault(target, set()).add(key)

    def refused(self) -> dict[TargetTable, Mapping[StatementKey, Refused]]:
        """Target → the statements whose last try failed."""
        now = self._clock()
        return {
            target: {
                key: Refused(r.error, now < r.retry_at, r.judged, r.code)
                for key, r in refusals.items()
            }
            for target, refusals in self._refused.items()
        }

    def take(self, result: StatementResult) -> None:
        """Note how a statement ended.

        Raises:
            WriterReplaced: Another writer took over.
            ShardMergeError: Any other error that concerns more than this statement.
        """
        name, key, entry = result.target, result.statement.key, result.entry
        sql = result.statement.statement.sql
        if entry is None:
            error = result.error
            assert error is not None
            if not isinstance(error, TargetError) or not error.retryable:
                raise error
            log.warning(
                "statement_postponed",
                target=name,
                decision=key.version,
                statement=key.ordinal,
                sql=sql,
                error=error,
            )
            # No answer takes an earlier refusal back: the target still has the same reason.
            known = self._refused.get(name, {}).get(key)
            judged = known is not None and known.judged
            retry_at = self._clock() + FAILURE_PAUSE_S
            self._refuse(name, key, _Refusal(error.message, retry_at, error.code, judged))
        elif entry.state == "done":
            self.note(name, key)
            self._refused.get(name, {}).pop(key, None)
            log.info(
                "statement_executed",
                target=name,
                decision=key.version,
                statement=key.ordinal,
                sql=sql,
                seconds=result.elapsed_ms / 1000,
            )
        else:
            retry_at = self._clock() + self._retry_s
            code = entry.code or REFUSED_BY_TARGET
            self._refuse(name, key, _Refusal(entry.error, retry_at, code))
            log.error(
                "statement_refused",
                target=name,
                decision=key.version,
                statement=key.ordinal,
                sql=sql,
                error=entry.error,
                code=code,
            )

    def _refuse(self, target: TargetTable, key: StatementKey, refusal: _Refusal) -> None:
        self._refused.setdefault(target, {})[key] = refusal
