"""Which shards of a target wait for a whole reading of their tables. Pure.

This is a fold over the target's decisions. Their order does not matter, and a repeated decision
changes nothing. A decision asks for a whole reading of a shard; a later one answers it or takes the
shard out of the target. A shard waits while some version that asks is higher than the last version
that answers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from shardmerge.schemas.model.names import ShardId

from .decisions import Decision, FixupKind


@dataclass(slots=True)
class AwaitedReadings:
    """The shards of one target that wait for whole readings."""

    _asked: dict[ShardId, set[int]] = field(default_factory=dict)
    """Waiting shard → the versions that ask for its reading and are not answered."""
    _over: dict[ShardId, int] = field(default_factory=dict)
    """Shard → the version up to which every request is answered."""

    def take(self, decision: Decision) -> None:
        """Apply a decision of the target.

        A decision that answers a shard can ask for the shard's next reading. A shard that the
        decision takes out of the target is not read.
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
        """The first version that a shard waits for; None when it does not wait."""
        asked = self._asked.get(shard)
        return None if asked is None else min(asked)

    def latest(self) -> Mapping[ShardId, int]:
        """Waiting shard → the last version that asks. An earlier reading does not count."""
        return {shard: max(asked) for shard, asked in self._asked.items()}

    def _answer(self, shard: ShardId, version: int) -> None:
        """Record that every request up to this version is answered."""
        self._over[shard] = over = max(version, self._over.get(shard, 0))
        left = {asked for asked in self._asked.pop(shard, ()) if asked > over}
        if left:
            self._asked[shard] = left
