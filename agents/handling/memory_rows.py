"""The rows of an agent's table, in memory. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from shardmerge.agents.coordination.state import state_rows
from shardmerge.agents.coordination.state.restated_texts import NO_SERVERS, Servers
from shardmerge.agents.coordination.state.target_state import TargetState
from shardmerge.schemas.model.names import TargetTable

from .effects import Effects


class MemoryRows:
    """The rows of an agent's table, in memory."""

    def __init__(self) -> None:
        self._rows: dict[bytes, bytes] = {}
        self._of_target: dict[TargetTable, dict[bytes, None]] = {}
        """The keys of each target's rows besides its header, in order of their coming."""

    def get(self, key: bytes) -> bytes | None:
        """The row, or None."""
        return self._rows.get(key)

    def keys(self) -> Iterable[bytes]:
        """All row keys."""
        return self._rows.keys()

    def take(self, effects: Effects) -> None:
        """Perform the puts of a record."""
        for key, value in effects.puts.items():
            parsed = state_rows.parsed_key(key)
            if parsed is not None:
                keys = self._of_target.setdefault(parsed[0], {})
                if value is None:
                    keys.pop(key, None)
                else:
                    keys[key] = None
            if value is None:
                self._rows.pop(key, None)
            else:
                self._rows[key] = value

    def targets(self) -> list[TargetTable]:
        """The coordinator's targets, sorted."""
        keys = map(state_rows.parsed_key, self._rows)
        return sorted({parsed[0] for parsed in keys if parsed is not None})

    def state(
        self,
        target: TargetTable,
        servers: Servers = NO_SERVERS,
    ) -> TargetState:
        """The coordinator's state of a target; the initial one before its first change.

        Args:
            target: Any.
            servers: See ``state_rows.stored_state``; needed where something is decided.
        """
        if self.get(state_rows.header_key(target)) is None:
            return TargetState(target)
        keys = self._of_target.get(target, {})
        return state_rows.stored_state(target, self.get, keys, servers)
