"""Which shards of a target wait until their tables are read as a whole. Pure.

A fold over the target's decisions. Their order does not matter, and a repeated decision changes
nothing: a shard waits while a decision asks for it that is behind the last one which answers it, or
takes it out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from shardmerge.schemas.model.names import ShardId

from .decisions import Decision, FixupKind


@dataclass(slots=True)
class AwaitedReadings:
    """The shards of one target."""

    _asked: dict[ShardId, set[int]] = field(default_factory=dict)
    """Versions that ask, of shards that wait."""
    _over: dict[ShardId, int] = field(default_factory=dict)
    """The last version up to which nothing is asked any more."""

    def take(self, decision: Decision) -> None:
        """Take a decision of the target.

        What it answers comes before what it asks for; a shard that it takes out is not read.
        """
        version = decision.version
        for reload in decision.reloads:
            self._answer(reload.shard, version - 1)
        for fixup in decision.fixups:
            if fixup.kind is FixupKind.WHOLE and version > self._over.get(fixup.shard, 0):
                self._asked.setdefault(fixup.shard, set()).add(version)
        for shard in decision.leaves:
            self._answer(shard, version)
        if decision.shard is not None and not decision.live:
            self._answer(decision.shard, version)

    def since(self, shard: ShardId) -> int | None:
        """The version from which a shard waits; None when it does not."""
        asked = self._asked.get(shard)
        return None if asked is None else min(asked)

    def latest(self) -> Mapping[ShardId, int]:
        """The shards that wait → the last version that asks: a reading of before does not count."""
        return {shard: max(asked) for shard, asked in self._asked.items()}

    def _answer(self, shard: ShardId, version: int) -> None:
        """Nothing that is asked up to this version is asked any more."""
        self._over[shard] = over = max(version, self._over.get(shard, 0))
        left = {asked for asked in self._asked.pop(shard, ()) if asked > over}
        if left:
            self._asked[shard] = left
