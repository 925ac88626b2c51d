"""What a worker knows of the pipeline's connectors, and since when. Pure.

No topic tells this: the worker asks Kafka Connect. So it knows a state since the look that first
saw it, and knows nothing of the time before it was started.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from shardmerge.connectors.formats.connector_status import ConnectorState

_PASSING = ("UNASSIGNED", "RESTARTING")
_PASSING_MS = 60_000
"""A rebalance or a restart is over by then, so a connector in such a state is told only then."""


@dataclass(frozen=True, slots=True)
class SeenConnector:
    """A connector as it was at the last look.

    Attributes:
        state: Its state.
        since_ms: When the worker first saw it in this state, in milliseconds since 1970.
    """

    state: ConnectorState
    since_ms: int

    def needs_somebody(self, now_ms: int) -> bool:
        """Whether it does not run, and not only for a moment.

        Args:
            now_ms: Milliseconds since 1970.
        """
        if self.state.is_running:
            return False
        return self.state.state not in _PASSING or now_ms - self.since_ms >= _PASSING_MS


@dataclass(frozen=True, slots=True)
class ConnectorsView:
    """The pipeline's connectors as pages show them.

    Attributes:
        connectors: In the order of the sources; empty while Connect does not answer, and before the
            first look.
        fault: Why the worker does not know the connectors' states, a sentence; "" when it does.
        hint: What helps then.
        code: The code of the fault.
        since_ms: When the worker first missed Connect's answer, in milliseconds since 1970; 0 when
            Connect answers.
    """

    connectors: tuple[SeenConnector, ...] = ()
    fault: str = ""
    hint: str = ""
    code: str = ""
    since_ms: int = 0

    def unread(self, now_ms: int) -> tuple[SeenConnector, ...]:
        """The connectors that do not run: no new rows of their sources come.

        Args:
            now_ms: Milliseconds since 1970.
        """
        return tuple(each for each in self.connectors if each.needs_somebody(now_ms))


UNASKED = ConnectorsView()
"""Before the first look."""


class ConnectorLog:
    """Takes what Connect answers, look by look.

    Attributes:
        view: What is known now.
        revision: How often something has changed.
    """

    def __init__(self) -> None:
        self.view = UNASKED
        self.revision = 0
        self._seen: dict[str, SeenConnector] = {}

    def take(self, states: Iterable[ConnectorState], now_ms: int) -> None:
        """Connect has answered.

        Args:
            states: The connector of each source.
            now_ms: Milliseconds since 1970.
        """
        self._seen = {state.name: self._since(state, now_ms) for state in states}
        self._show(ConnectorsView(tuple(self._seen.values())))

    def miss(self, fault: str, hint: str, code: str, now_ms: int) -> None:
        """Connect has not answered.

        Args:
            fault: A sentence.
            hint: What helps.
            code: The code of the fault.
            now_ms: Milliseconds since 1970.
        """
        if code == self.view.code and self.view.fault:
            return  # the text can have another address each time
        self._show(ConnectorsView((), fault, hint, code, self.view.since_ms or now_ms))

    def _since(self, state: ConnectorState, now_ms: int) -> SeenConnector:
        known = self._seen.get(state.name)
        same = known is not None and known.state.state == state.state
        return SeenConnector(state, known.since_ms if known and same else now_ms)

    def _show(self, view: ConnectorsView) -> None:
        if view != self.view:
            self.view = view
            self.revision += 1
