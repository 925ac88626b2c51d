"""Which sink of a pipeline writes: waits for the writer's lease, and keeps it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from shardmerge.connectors.access.lease_names import Sinks
from shardmerge.connectors.event_log import logger
from shardmerge.schemas.model.errors import (
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
    """Wait as a standby until the lease is free; returns whether this process is to write.

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
                return not stopped()
        except TargetError as error:
            if not error.retryable:
                raise
            was_away = True
            log.warning("target_awaited", error=error)
            time.sleep(RENEW_S)
    return False


class LeaseKeeper:
    """Keeps the lease of a sink, in a thread, from when it may write.

    Taking over can take longer than the target keeps a silent lease: another standby must not take
    over meanwhile. From when the sink has its epoch (``compare``), the keeper also notices another
    writer while a batch runs, or nothing is to be done.

    Args:
        lease: The pipeline's.

    Attributes:
        sinks: Where this sink runs and where standbys wait, as it was found last. Another thread
            may read it.
    """

    def __init__(self, lease: Lease, renew_s: float = RENEW_S) -> None:
        self._lease, self._renew_s = lease, renew_s
        self._epoch: int | None = None
        self.sinks = Sinks()
        self._is_blind = False
        self._failure: Exception | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="writer-lease", daemon=True)

    def start(self) -> None:
        """Begin to keep it."""
        self._thread.start()

    def compare(self, epoch: int) -> None:
        """From now on compare the target's writer epoch with this one, which the sink has taken."""
        self._epoch = epoch

    def check(self) -> None:
        """Check that the lease can be kept, and that no other writer was seen.

        Raises:
            WriterReplaced: One was seen.
            ConfigError: What keeps the lease refuses this sink.
            Exception: Whatever else ended the keeping: nobody would renew the lease.
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
        except Exception as error:
            self._failure = error

    def _keep(self) -> None:
        was_away, look_at = False, 0.0
        while True:
            try:
                replaced = self._renew()
            except (StackError, TargetError) as error:
                if not was_away:
                    log.warning("lease_lost", error=error)
                was_away = True
            else:
                was_away = False
                if replaced is not None:
                    raise replaced
                if time.monotonic() >= look_at:
                    self._look()
                    look_at = time.monotonic() + _LOOK_S
            if self._stop.wait(self._renew_s):
                return

    def _renew(self) -> WriterReplaced | None:
        """Renew the lease; the error when another writer has the epoch."""
        epoch = self._epoch
        if epoch is None:
            self._lease.keep()
            return None
        current = self._lease.renew()
        return None if current == epoch else taken_over(current, epoch)

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
