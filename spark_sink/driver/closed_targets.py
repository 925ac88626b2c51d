"""The driver's copy of the marks of targets that were cut over."""

from __future__ import annotations

import time
from collections.abc import Callable

from shardmerge.connectors.event_log import logger
from shardmerge.schemas.model.errors import TargetError
from shardmerge.schemas.model.names import TargetTable
from shardmerge.spark_sink.targets.interface import WriterState

log = logger(__name__)

_LOOK_S = 1.0


class ClosedTargets:
    """Reads the marks of targets that were cut over, and logs when a mark comes or goes.

    A round may not know a new mark yet. That does no harm: the target's transactions read the mark
    themselves, and are refused.

    Args:
        control: Reads the marks from the control tables.
        clock: Monotonic seconds.

    Attributes:
        targets: The targets with a mark, as of the latest look.
    """

    def __init__(self, control: WriterState, clock: Callable[[], float] = time.monotonic) -> None:
        self._control = control
        self._clock = clock
        self._looked_at = float("-inf")
        self.targets: frozenset[TargetTable] = frozenset()

    def look(self) -> None:
        """Read the marks, at most once a second.

        If the target's server does not answer, the known marks stay. Whatever writes to the server
        reports that it does not answer.

        Raises:
            TargetError: The target refuses the query.
        """
        if self._clock() - self._looked_at < _LOOK_S:
            return
        self._looked_at = self._clock()
        try:
            found = self._control.closed_targets()
        except TargetError as error:
            if not error.retryable:
                raise
            return
        for target in sorted(found - self.targets):
            log.info("target_closed", target=target)
        for target in sorted(self.targets - found):
            log.info("target_opened", target=target)
        self.targets = found
