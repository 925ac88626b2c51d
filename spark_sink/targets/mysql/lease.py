"""The writer's lease: a named lock on the target's server, held by a connection of the sink.

Theory of operation:

1. The lock ends when the connection does. So when the process is killed, the server frees it at
   once, and a waiting sink gets it at once.
2. A machine that loses power closes no connection. So the connection has a ``wait_timeout`` of
   ``SILENCE_S`` seconds, and the sink that has the lease asks something every second (``keep``,
   and ``renew`` from when it writes): the server ends the connection when that stops.
3. The lease only says when a waiting sink takes over. That the sink before writes nothing more is
   the work of the writer epoch (``control``), which the waiting one takes then. A sink that lost
   the lease, and is alive, tries to take it back. It ends when it sees another epoch.
4. The epoch can be taken only when all transactions of the sink before have ended. A machine that
   was cut off in the middle of one would keep it open until the server ends the silent connection.
   So who gets the lease ends the silent sessions of earlier sinks. It finds them by named locks,
   which they have taken for this (``lease_names.session_mark``). A session that executes DDL is not
   silent: it goes on, and the journal sees how it ended.

Source: MySQL Reference Manual, "Locking Functions", "wait_timeout"; measured,
tests/integration/mysql/test_lease.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from shardmerge.connectors.access.lease_names import NO_FUNCTION, Sinks, sinks_at
from shardmerge.connectors.event_log import logger
from shardmerge.schemas.model.errors import TargetError

from .session import MySqlSession

log = logger(__name__)

_NO_THREAD = 1094
SILENCE_S = 6
"""Seconds without a question after which the server frees the lease."""


class MySqlLease:
    """One process's claim to be the pipeline's writer. One thread at a time uses it.

    Args:
        session: Its own.
        epoch: Reads the current writer epoch by that session.
        name: Of the lock.
        standby_names: Of the locks of waiting sinks.
        session_names: Of the locks of the sinks' sessions.
    """

    def __init__(
        self,
        session: MySqlSession,
        epoch: Callable[[], int],
        name: str,
        standby_names: Sequence[str] = (),
        session_names: Sequence[str] = (),
    ) -> None:
        self._session, self._epoch, self._name = session, epoch, name
        self._standby_names, self._session_names = standby_names, session_names
        self._is_held = self._is_alone = False
        self._shown_as = ""

    def connect(self) -> None:
        """Connect, if there is no connection.

        Raises:
            TargetError: The target does not answer (``retryable``).
        """
        if not self._session.is_open:
            # Locks ended with the connection before.
            self._is_held, self._is_alone, self._shown_as = False, False, ""
            try:
                self._session.execute("SET SESSION wait_timeout = %s", (SILENCE_S,))
            except TargetError:
                # Otherwise the server would keep the lease for hours after a power loss.
                self._session.close()
                raise

    def wait(self, wait_s: int) -> bool:
        """Wait for the lease as a standby; returns whether this process has it now.

        Args:
            wait_s: Longest wait, in whole seconds.

        Raises:
            TargetError: The target does not answer (``retryable``).
        """
        self.connect()
        if not self._shown_as:
            free = (name for name in self._standby_names if self._lock(name, 0))
            self._shown_as = next(free, "")
        if not self._is_held and not self._take(wait_s):
            return False
        if not self._is_alone:
            self._end_silent_sessions()
            self._is_alone = True
        if self._shown_as:
            self._session.query("SELECT RELEASE_LOCK(%s)", (self._shown_as,))
            self._shown_as = ""
        return True

    def keep(self) -> None:
        """Keep the lease alive; take it if this process lacks it and it is free.

        Raises:
            TargetError: The target does not answer (``retryable``).
        """
        self.connect()
        if self._is_held:
            self._session.query("SELECT 1")
        else:
            self._take(0)

    def renew(self) -> int:
        """As ``keep``; returns the current writer epoch."""
        self.connect()
        if not self._is_held:
            self._take(0)
        return self._epoch()

    def sinks(self) -> Sinks:
        """Where this sink runs, and where standbys wait, as the server sees them.

        Raises:
            TargetError: The target does not answer (``retryable``).
        """
        try:
            return sinks_at(self._session.query, self._name, self._standby_names)
        except TargetError as error:
            if error.number != NO_FUNCTION:
                raise
            return Sinks()

    def _end_silent_sessions(self) -> None:
        """End the connections of earlier sinks that execute nothing; see the module's text."""
        locks = ", ".join(["IS_USED_LOCK(%s)"] * len(self._session_names))
        if not locks or self._session.is_tidb:
            return
        ((*holders,),) = self._session.query(f"SELECT {locks}", self._session_names)
        held = [holder for holder in holders if holder]
        if not held:
            return
        silent = self._session.query(
            "SELECT ID FROM information_schema.PROCESSLIST WHERE ID IN %s"
            " AND (COMMAND = 'Sleep' OR INFO LIKE 'LOAD DATA LOCAL%%')",
            (held,),
        )
        for (number,) in silent:
            try:
                self._session.execute(f"KILL CONNECTION {int(number)}")
            except TargetError as error:
                if error.number != _NO_THREAD:
                    raise
        if silent:
            log.info("sessions_ended", session_count=len(silent))

    def close(self) -> None:
        """Free it."""
        self._session.close()
        self._is_held = False

    def _take(self, wait_s: int) -> bool:
        self._is_held = self._lock(self._name, wait_s)
        return self._is_held

    def _lock(self, name: str, wait_s: int) -> bool:
        ((got,),) = self._session.query("SELECT GET_LOCK(%s, %s)", (name, wait_s))
        return bool(got == 1)
