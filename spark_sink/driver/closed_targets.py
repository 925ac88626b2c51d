"""The driver's copy of the marks of targets that the sink may not change."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from shardmerge.connectors.event_log import logger
from shardmerge.schemas.model.errors import StateReplaced, TargetError
from shardmerge.schemas.model.names import TargetTable
from shardmerge.spark_sink.barrier.closing import Closing
from shardmerge.spark_sink.targets.interface import WriterState

log = logger(__name__)

_LOOK_S = 1.0


class ClosedTargets:
    """Reads the marks of closed targets, and logs when a mark comes or goes.

    A round may not know a new mark yet. That does no harm: the target's transactions read the mark
    themselves, and are refused. A target stays closed here until a look has found it open. The same
    look finds that a rebuilt table took the target's place, so nothing is done with it before.

    Args:
        control: Reads the marks from the control tables.
        clock: Monotonic seconds.

    Attributes:
        targets: The targets with a mark, as of the latest look, and why they are closed.
        swaps: The latest rebuild when the state was read; None before.
    """

    def __init__(self, control: WriterState, clock: Callable[[], float] = time.monotonic) -> None:
        self._control = control
        self._clock = clock
        self._looked_at = float("-inf")
        self.swaps: int | None = None
        self.targets: Mapping[TargetTable, Closing] = {}

    def load(self) -> None:
        """Remember which rebuild was the last one; called before anything else is read.

        Raises:
            TargetError: The target does not answer.
        """
        if self.swaps is None:
            self.swaps = self._control.marks().swaps

    def look(self) -> None:
        """Read the marks, at most once a second.

        If the target's server does not answer, the known marks stay. Whatever writes to the server
        reports that it does not answer.

        Raises:
            StateReplaced: A rebuilt table took a target's place.
            TargetError: The target refuses the query.
        """
        if self._clock() - self._looked_at < _LOOK_S:
            return
        self._looked_at = self._clock()
        try:
            marks = self._control.marks()
        except TargetError as error:
            if not error.retryable:
                raise
            return
        found = marks.closed
        if marks.swaps != (self.swaps or 0):
            raise StateReplaced(
                f"rebuild {marks.swaps} has put a new table in its target's place",
                hint="the sink reads its state anew",
                code="SM-6511",
            )
        for target in sorted(found.keys() - self.targets.keys()):
            log.info("target_closed", target=target)
        for target in sorted(self.targets.keys() - found.keys()):
            log.info("target_opened", target=target)
        self.targets = found
