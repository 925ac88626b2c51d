"""Which sink of a pipeline writes: waits for the writer's lease, and keeps it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from shardmerge.connectors.access.lease_names import Sinks
from shardmerge.connectors.event_log import logger
from shardmerge.schemas.model.errors import (
    ConfigError,
    ShardMergeError,
    StackError,
    TargetError,
    WriterReplaced,
)
from shardmerge.spark_sink.targets.interface import taken_over
from shardmerge.spark_sink.targets.lease_interface import Lease

log = logger(__name__)

RENEW_S = 1.0
"""Pause between two renewals; the target frees a lease after several times as long."""
_LOOK_S = 5.0
"""Seconds between two looks for standbys."""
_WAIT_S = 1
_LET_BACK_S = 3.0
"""Pause of a standby when the target answers again. All locks are gone then, and the sink that
wrote before takes the lease back meanwhile, so that nothing changes hands for nothing."""


def await_lease(lease: Lease, stopped: Callable[[], bool]) -> bool:
    """Wait as a standby until the lease is free; returns whether this process has it.

    Args:
        lease: The pipeline's.
        stopped: Whether the process is to end.

    Raises:
        TargetError: The target does not admit this sink.
        ConfigError: Kafka does not, where Kafka keeps the lease.
    """
    was_away = False
    while not stopped():
        try:
            if was_away:
                lease.connect()
                time.sleep(_LET_BACK_S)
                was_away = False
            if lease.wait(_WAIT_S):
                return True
        except TargetError as error:
            if not error.retryable:
                raise
            was_away = True
            log.warning("target_awaited", error=error)
            time.sleep(RENEW_S)
    return False


class LeaseKeeper:
    """Keeps the lease of the sink that writes, in a thread beside the loop.

    It also notices another writer while a batch runs, or nothing is to be done.

    Args:
        lease: The pipeline's.
        epoch: The writer epoch that this sink has taken.

    Attributes:
        sinks: Where this sink runs and where standbys wait, as it was found last. Another thread
            may read it.
    """

    def __init__(self, lease: Lease, epoch: int, renew_s: float = RENEW_S) -> None:
        self._lease, self._epoch, self._renew_s = lease, epoch, renew_s
        self.sinks = Sinks()
        self._is_blind = False
        self._failure: ShardMergeError | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="writer-lease", daemon=True)

    def start(self) -> None:
        """Begin to keep it."""
        self._thread.start()

    def check(self) -> None:
        """Check that the lease can be kept, and that no other writer was seen.

        Raises:
            WriterReplaced: One was seen.
            ConfigError: What keeps the lease refuses this sink.
        """
        if self._failure is not None:
            raise self._failure

    def stop(self) -> None:
        """Free the lease: call it when nothing is written any more."""
        self._stop.set()
        if self._thread.ident is not None:
            self._thread.join()
        self._lease.close()

    def _run(self) -> None:
        try:
            self._keep()
        except (ConfigError, WriterReplaced) as error:
            self._failure = error

    def _keep(self) -> None:
        was_away, look_at = False, 0.0
        while True:
            try:
                current = self._lease.renew()
            except (StackError, TargetError) as error:
                if not was_away:
                    log.warning("lease_lost", error=error)
                was_away = True
            else:
                was_away = False
                if current != self._epoch:
                    raise taken_over(current, self._epoch)
                if time.monotonic() >= look_at:
                    self._look()
                    look_at = time.monotonic() + _LOOK_S
            if self._stop.wait(self._renew_s):
                return

    def _look(self) -> None:
        """Look where standbys wait; what was found last stays when nobody tells it."""
        try:
            self.sinks = self._lease.sinks()
        except (StackError, TargetError) as error:
            if not self._is_blind:
                log.warning("standbys_unknown", error=error)
            self._is_blind = True
        else:
            self._is_blind = False
