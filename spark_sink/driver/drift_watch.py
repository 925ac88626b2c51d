"""Compares the target's tables with their decisions from time to time, and logs differences.

One comparison of all tables is a *look*. It delays neither rows nor statements, because it runs in
a thread of its own with a connection of its own. A difference stops nothing: it is logged and kept.
While a statement changes a table, a comparison says nothing. So a look leaves out a table on which
a statement runs. If a statement began during the look, its result for that table does not count.
"""

from __future__ import annotations

import queue
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping

from shardmerge.connectors.clock import now_ms
from shardmerge.connectors.event_log import logger
from shardmerge.schemas.model.errors import ShardMergeError, TargetError
from shardmerge.schemas.model.names import TargetTable
from shardmerge.schemas.records.drift import (
    CODES,
    Difference,
    DriftKind,
    in_fingerprint,
    needs_somebody,
    unread_difference,
    with_times,
)
from shardmerge.spark_sink.barrier.decisions import StatementKey
from shardmerge.spark_sink.targets.drift_interface import DriftStore, Look, TableLooks

log = logger(__name__)

_SOON_S = 1.0
"""Seconds before the next look after a statement, or when a look had no time for all tables."""


class DriftWatch:
    """The differences that the driver knows, and the looks that find them.

    Args:
        store: Keeps the differences; None for a kind of target whose tables are not compared.
        open_looks: Opens a connection. The thread calls it before its first look.
        interval_s: Seconds between two looks; 0 for no looks.
        epoch: The epoch of this writer, which the store checks.
        clock: Monotonic seconds.
        now_ms: Milliseconds since 1970.

    Attributes:
        differences: Target → its differences, with times. It has only targets with differences.
    """

    def __init__(
        self,
        store: DriftStore | None,
        open_looks: Callable[[], TableLooks | None],
        interval_s: float,
        epoch: int,
        *,
        clock: Callable[[], float] = time.monotonic,
        now_ms: Callable[[], int] = now_ms,
    ) -> None:
        self._store = store if interval_s else None
        self._thread = _LookThread(open_looks)
        self._interval_s, self._epoch = interval_s, epoch
        self._clock, self._now_ms = clock, now_ms
        self._due_at = clock()
        self._asked: dict[TargetTable, int] | None = None
        self._asked_ms = 0
        self._begun: Counter[TargetTable] = Counter()
        self._compared_ms: dict[TargetTable, int] = {}
        """Table → when the last look began that compared it."""
        self._alike_ms: dict[TargetTable, int] = {}
        """Table → when the last look began that compared it, or found its fingerprint unchanged."""
        self.differences: dict[TargetTable, tuple[Difference, ...]] = {}

    @property
    def looks(self) -> bool:
        """Whether a look is running."""
        return self._asked is not None

    def load(self) -> None:
        """Read the differences that the store keeps; raises ``TargetError``."""
        if self._store is not None:
            self.differences = self._store.load()

    def begun(self, target: TargetTable) -> None:
        """Note that a statement begins on a target. A running look does not count for it."""
        self._begun[target] += 1

    def ended(self) -> None:
        """Note that a statement has ended. The next look then begins soon."""
        self._due_at = min(self._due_at, self._clock() + _SOON_S)

    def step(
        self,
        executed: Mapping[TargetTable, Collection[StatementKey]],
        busy: Collection[TargetTable],
    ) -> None:
        """Take the result of a look that has ended, and begin the next look if it is due.

        Args:
            executed: Target → its executed statements. A target without one has no table yet.
            busy: Targets to leave out: a statement runs on them, or they were cut over.

        Raises:
            WriterReplaced: Another writer took over.
            TargetError: The target cannot store the differences (``retryable``).
        """
        if self._store is None:
            return
        look = self._thread.ended()
        if look is not None and self._asked is not None:
            self._take(self._store, look, self._asked)
        if self._asked is not None or self._clock() < self._due_at:
            return
        asked = {
            target: self._begun[target]
            for target, keys in executed.items()
            if target not in busy and any(key.ordinal >= 0 for key in keys)
        }
        self._due_at = self._clock() + self._interval_s
        if asked:
            self._asked, self._asked_ms = asked, self._now_ms()
            self._thread.begin(asked)

    def _take(
        self,
        store: DriftStore,
        look: Look | Exception,
        asked: Mapping[TargetTable, int],
    ) -> None:
        self._asked = None
        if isinstance(look, Exception):
            # Rows and statements go on: the next look tries again.
            if isinstance(look, TargetError) and look.retryable:
                log.warning("drift_look_delayed", error=look)
            else:
                log.error("drift_look_failed", error=look)
            return
        if look.left:
            self._due_at = min(self._due_at, self._clock() + _SOON_S)
        try:
            self._keep_all(store, look, asked)
        except TargetError:
            for target in asked:
                self._begun[target] += 1  # The next look compares the tables again.
            raise

    def _keep_all(self, store: DriftStore, look: Look, asked: Mapping[TargetTable, int]) -> None:
        for target, number in asked.items():
            if self._begun[target] != number:
                continue
            if (error := look.failed.get(target)) is not None:
                self._keep_failure(store, target, error)
            elif (found := look.compared.get(target)) is not None:
                self._keep(store, target, self._timed(target, found, target in look.unchanged))
                self._compared_ms[target] = self._alike_ms[target] = self._asked_ms
            elif target in look.unchanged:
                self._alike_ms[target] = self._asked_ms

    def _timed(
        self, target: TargetTable, found: tuple[Difference, ...], is_unchanged: bool
    ) -> tuple[Difference, ...]:
        """The differences with their times.

        A fingerprint that was unchanged in an earlier look proves that a change came later, if
        fingerprints show changes of this kind. Otherwise only the last comparison proves it.
        """
        known = self.differences.get(target, ())
        compared_ms = self._compared_ms.get(target, 0)
        alike_ms = compared_ms if is_unchanged else self._alike_ms.get(target, 0)
        timed: list[Difference] = []
        for each in found:
            clear_ms = alike_ms if in_fingerprint(each.subject) else compared_ms
            timed += with_times((each,), known, now_ms=self._asked_ms, clear_ms=clear_ms)
        return tuple(timed)

    def _keep_failure(self, store: DriftStore, target: TargetTable, error: Exception) -> None:
        """Note that a table was not compared. What was known of it before stays."""
        if isinstance(error, TargetError) and error.retryable:
            log.warning("drift_look_delayed", target=target, error=error)
            return
        log.error("drift_look_failed", target=target, error=error, code=CODES[DriftKind.UNREAD])
        known = self.differences.get(target, ())
        unread = unread_difference(f"the comparison failed: {_text(error)}")
        clear_ms = self._compared_ms.get(target, 0)
        timed = with_times((unread,), known, now_ms=self._asked_ms, clear_ms=clear_ms)
        others = tuple(each for each in known if each.subject != unread.subject)
        self._keep(store, target, tuple(sorted((*others, *timed), key=lambda d: d.subject)))

    def _keep(self, store: DriftStore, target: TargetTable, timed: tuple[Difference, ...]) -> None:
        known = self.differences.get(target, ())
        if timed == known:
            return
        store.keep(self._epoch, target, timed)
        self.differences = {**self.differences, target: timed}
        if not timed:
            del self.differences[target]
        _tell(target, known, timed)

    def stop(self) -> None:
        """Tell the thread to end after its present look."""
        self._thread.stop()


def _text(error: Exception) -> str:
    if isinstance(error, ShardMergeError):
        return error.message
    return f"{type(error).__name__}: {error}"


def _tell(
    target: TargetTable, known: tuple[Difference, ...], timed: tuple[Difference, ...]
) -> None:
    before = {each.is_same_as for each in known}
    for each in timed:
        if each.is_same_as in before:
            continue
        if needs_somebody(each.kind):
            log.warning(
                "drift_found", target=target, subject=each.subject, kind=each.kind.value,
                expected=each.expected, found=each.found, code=each.code,
            )  # fmt: skip
        else:
            log.info(
                "drift_noticed", target=target, subject=each.subject, kind=each.kind.value,
                expected=each.expected, found=each.found, code=each.code,
            )  # fmt: skip
    after = {each.subject for each in timed}
    for each in known:
        if each.subject not in after:
            log.info("drift_ended", target=target, subject=each.subject)


class _LookThread:
    """Runs one look at a time, in a thread of its own."""

    def __init__(self, open_looks: Callable[[], TableLooks | None]) -> None:
        self._open_looks = open_looks
        self._asked: queue.SimpleQueue[Mapping[TargetTable, int] | None] = queue.SimpleQueue()
        self._ended: queue.SimpleQueue[Look | Exception] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    def begin(self, tables: Mapping[TargetTable, int]) -> None:
        self._asked.put(tables)
        if self._thread is None:
            # A daemon thread: the process can end although the server does not answer.
            self._thread = threading.Thread(target=self._work, name="drift", daemon=True)
            self._thread.start()

    def ended(self) -> Look | Exception | None:
        """The look that has ended, or why it failed; None when none has."""
        try:
            return self._ended.get_nowait()
        except queue.Empty:
            return None

    def stop(self) -> None:
        if self._thread is not None:
            self._asked.put(None)

    def _work(self) -> None:
        looks: TableLooks | None = None
        while (tables := self._asked.get()) is not None:
            try:
                looks = looks or self._open_looks()
                self._ended.put(looks.look(tables) if looks is not None else Look({}))
            except Exception as error:  # The driver logs it, in its own thread.
                self._ended.put(error)
        if looks is not None:
            looks.close()
