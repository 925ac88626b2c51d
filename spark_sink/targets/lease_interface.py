"""What a sink asks of a target to find out whether it writes or stands by."""

from __future__ import annotations

from typing import Protocol

from shardmerge.connectors.access.lease_names import Sinks


class Lease(Protocol):
    """Which of several sinks of a pipeline writes. One thread at a time uses it.

    It only says when a waiting sink takes over: the writer epoch keeps others from writing.
    """

    def connect(self) -> None:
        """Connect, if that is not done; raises ``TargetError`` if the target is away."""
        ...

    def wait(self, wait_s: int) -> bool:
        """Wait for the lease as a standby, up to ``wait_s`` seconds.

        Returns:
            Whether this process has it now.

        Raises:
            TargetError: The target does not answer (``retryable``).
            ConfigError: This process is not admitted.
        """
        ...

    def keep(self) -> None:
        """Keep it, or take it if it is free.

        Raises:
            TargetError: The target does not answer (``retryable``).
            ConfigError: This process is not admitted.
        """
        ...

    def renew(self) -> int:
        """As ``keep``; returns the current writer epoch, which must have been taken before.

        Raises:
            TargetError: The target does not answer (``retryable``).
            ConfigError: This process is not admitted.
        """
        ...

    def sinks(self) -> Sinks:
        """Where the sink that has it runs, and where others wait for it.

        Raises:
            TargetError: The target does not answer (``retryable``).
            StackError: Kafka does not answer.
        """
        ...

    def close(self) -> None:
        """Free it."""
        ...
