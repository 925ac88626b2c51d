"""What a sink process is now, for its metrics and for probes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from shardmerge.connectors.metrics import catalog
from shardmerge.connectors.metrics.family import Sample

STARTING, STANDBY, ACTIVE = "starting", "standby", "active"


class SinkRole:
    """``starting``, ``standby`` or ``active``; the metrics of the driver when there is one.

    Attributes:
        name: See above. Another thread may read it.
    """

    def __init__(self) -> None:
        self.name = STARTING
        self._of_driver: Callable[[], Sequence[Sample]] = tuple

    def waits(self) -> None:
        """It waits for the lease."""
        self.name = STANDBY

    def writes(self, of_driver: Callable[[], Sequence[Sample]]) -> None:
        """It is the writer; ``of_driver`` gives the driver's metrics."""
        self._of_driver = of_driver
        self.name = ACTIVE

    def is_ready(self) -> bool:
        """Whether it does what it was started for: it writes, or waits to take over."""
        return self.name != STARTING

    def samples(self) -> list[Sample]:
        """The metrics now; any thread may ask."""
        is_active = float(self.name == ACTIVE)
        return [Sample(catalog.SINK_ACTIVE, (), is_active), *self._of_driver()]
