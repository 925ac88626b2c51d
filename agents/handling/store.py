"""States ⇄ rows of an agent's table: the only place that knows the row keys.

Reading decodes lazily and keeps what was decoded for as long as the row's bytes stay the same: a
statement touches few of the tracked tables, and a target's state is read for each of its changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Generic, TypeVar

from shardmerge.agents.coordination import coordinator
from shardmerge.agents.coordination.state import state_rows
from shardmerge.agents.coordination.state.restated_texts import NO_SERVERS, Servers
from shardmerge.agents.coordination.state.target_state import TargetState
from shardmerge.agents.tracking import tracked
from shardmerge.agents.tracking.tracked import LastStatement, Tracked
from shardmerge.schemas.model.frozen import replace
from shardmerge.schemas.model.names import ShardId, TargetTable
from shardmerge.schemas.pipeline.server_differences import server_contexts
from shardmerge.schemas.pipeline.settings import Pipeline
from shardmerge.schemas.records import plain
from shardmerge.schemas.target.dialects.dialects import dialect_of
from shardmerge.schemas.target.dialects.mysql_dialect import MySqlDialect

from .effects import Rows

T = TypeVar("T")

MAX_DECODED = 4096
"""Decoded values kept in memory per agent."""


class _Decoded(Generic[T]):
    """Decoded rows by key, valid while the bytes are the same."""

    def __init__(self) -> None:
        self._values: dict[bytes, tuple[bytes, T]] = {}

    def get(self, key: bytes, data: bytes) -> T | None:
        found = self._values.get(key)
        return found[1] if found is not None and found[0] == data else None

    def put(self, key: bytes, data: bytes, value: T) -> T:
        if len(self._values) >= MAX_DECODED:
            self._values.pop(next(iter(self._values)))
        self._values[key] = (data, value)
        return value


class TrackedTables(Mapping[ShardId, Tracked]):
    """The tracker's rows as a mapping of every tracked table."""

    def __init__(self) -> None:
        self._rows: Rows | None = None

    def over(self, rows: Rows) -> TrackedTables:
        """The same mapping over these rows."""
        self._rows = rows
        return self

    def _bound(self) -> Rows:
        if self._rows is None:
            raise LookupError("the mapping stands over no rows yet")
        return self._rows

    def __getitem__(self, shard: ShardId) -> Tracked:
        data = self._bound().get(tracked.row_key(shard))
        if data is None:
            raise KeyError(shard)
        return tracked.from_bytes(data)

    def __iter__(self) -> Iterator[ShardId]:
        for key in self._bound().keys():  # noqa: SIM118 — a Faust table is no plain dict
            shard = tracked.from_row_key(key)
            if shard is not None:
                yield shard

    def __len__(self) -> int:
        return sum(1 for _ in self)


class LastStatements:
    """The sources' last statements. Each is read from its row only if somebody else wrote it."""

    def __init__(self) -> None:
        self._decoded: _Decoded[LastStatement] = _Decoded()

    def get(self, rows: Rows, source: str) -> LastStatement | None:
        """A source's last statement; None: none yet."""
        key = tracked.last_key(source)
        data = rows.get(key)
        if data is None:
            return None
        known = self._decoded.get(key, data)
        if known is not None:
            return known
        return self._decoded.put(key, data, plain.load(LastStatement, data))

    def puts(self, source: str, last: LastStatement | None) -> dict[bytes, bytes | None]:
        """A source's last statement as rows."""
        if last is None:
            return {}
        key, data = tracked.last_key(source), plain.dump(last)
        self._decoded.put(key, data, last)
        return {key: data}


def tracked_puts(puts: Mapping[ShardId, Tracked | None]) -> dict[bytes, bytes | None]:
    """The tracker's puts as rows."""
    return {
        tracked.row_key(shard): None if value is None else tracked.to_bytes(value)
        for shard, value in puts.items()
    }


def servers_of(pipeline: Pipeline) -> Servers:
    """The servers whose texts the states of a pipeline's targets hold."""
    dialect = dialect_of(pipeline.target.kind, pipeline.target.version)
    target = dialect.server if isinstance(dialect, MySqlDialect) else None
    return Servers(server_contexts(pipeline.sources), target)


class TargetStates:
    """The coordinator's rows as states, see ``state_rows``.

    A target's state is read from its rows once, and kept while its header row stays the same.

    Args:
        defaults: See ``TargetState``.
        servers: See ``state_rows.stored_state``.
    """

    def __init__(
        self,
        defaults: frozenset[str] = frozenset(),
        servers: Servers = NO_SERVERS,
    ) -> None:
        self._defaults = defaults
        self._servers = servers
        self._decoded: _Decoded[TargetState] = _Decoded()
        self._listed: dict[TargetTable, tuple[bytes, list[bytes]]] = {}
        """Target → its header and the keys of its other rows, until its state is read."""

    def get(self, rows: Rows, target: TargetTable) -> TargetState:
        """The state of a target; the initial one if it has none."""
        key = state_rows.header_key(target)
        header = rows.get(key)
        if header is None:
            return coordinator.initial(target, self._defaults)
        known = self._decoded.get(key, header)
        if known is not None:
            return known
        keys = self._keys(rows, target, header)
        stored = state_rows.stored_state(target, rows.get, keys, self._servers)
        return self._decoded.put(key, header, replace(stored, defaults=self._defaults))

    def puts(
        self, old: TargetState, new: TargetState, shards: Iterable[ShardId], source: str
    ) -> dict[bytes, bytes | None]:
        """The rows that a decision changes.

        Args:
            old: As ``get`` gave it.
            new: After the decision.
            shards: Those whose state changed.
            source: Of the schema change.
        """
        puts = state_rows.changed_rows(old, new, shards, [source])
        key = state_rows.header_key(new.target)
        header = puts[key]
        assert header is not None
        if new.restated or new.unused:
            new = replace(new, restated=False, unused=frozenset())
        self._decoded.put(key, header, new)
        return puts

    def _keys(self, rows: Rows, target: TargetTable, header: bytes) -> list[bytes]:
        """Keys of a target's rows. The table is looked through once for all its targets."""
        listed = self._listed.pop(target, None)
        if listed is None or listed[0] != header:
            found: dict[TargetTable, list[bytes]] = {}
            for key in rows.keys():  # noqa: SIM118 — a Faust table is no plain dict
                parsed = state_rows.parsed_key(key)
                if parsed is not None:
                    found.setdefault(parsed[0], []).append(key)
            for other, keys in found.items():
                # None: the target's partition is another one than the partition of this record.
                now = rows.get(state_rows.header_key(other))
                if now is not None:
                    self._listed[other] = (now, keys)
            listed = self._listed.pop(target, None)
        return listed[1] if listed else []
