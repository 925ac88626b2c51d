"""What the watchdog knows of its connectors, as metrics. Pure, and safe to read beside the fold."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from . import catalog
from .family import Sample


@dataclass(frozen=True, slots=True)
class _Seen:
    state: str = ""
    tasks: tuple[str, ...] = ()
    restarts: int = 0
    is_given_up: bool = False
    at_s: float = 0.0


@dataclass(slots=True)
class ConnectorStates:
    """The last known state of each connector. A connector's state is replaced as a whole."""

    names: Iterable[str]
    _seen: dict[str, _Seen] = field(init=False)

    def __post_init__(self) -> None:
        self._seen = {name: _Seen() for name in self.names}

    def seen(self, name: str, state: str, tasks: Iterable[str], at_s: float) -> None:
        """Connect has answered.

        Args:
            name: The connector.
            state: Of the connector; "ABSENT" when Connect does not know it.
            tasks: The state of each task.
            at_s: Seconds since 1970.
        """
        known = self._seen[name]
        failed = "FAILED" in (state, *tasks)
        given_up = known.is_given_up and failed
        self._seen[name] = replace(
            known, state=state, tasks=tuple(tasks), at_s=at_s, is_given_up=given_up
        )

    def restarted(self, name: str) -> None:
        """The watchdog restarted or repaired it."""
        known = self._seen[name]
        self._seen[name] = replace(known, restarts=known.restarts + 1)

    def given_up(self, name: str, *, is_so: bool) -> None:
        """Whether the watchdog expects nothing of restarts of a failed connector any more."""
        self._seen[name] = replace(self._seen[name], is_given_up=is_so)

    def samples(self) -> Iterator[Sample]:
        """The metrics of all connectors."""
        for name, seen in self._seen.items():
            yield Sample(catalog.CONNECTOR_RESTARTS, (name,), seen.restarts)
            yield Sample(catalog.CONNECTOR_GIVEN_UP, (name,), int(seen.is_given_up))
            if not seen.state:
                continue
            yield Sample(catalog.CONNECTOR_STATE, (name, seen.state), 1)
            yield Sample(catalog.WATCHDOG_LOOK, (name,), seen.at_s)
            for state in sorted({"RUNNING", "FAILED", *seen.tasks}):
                yield Sample(catalog.CONNECTOR_TASKS, (name, state), seen.tasks.count(state))
