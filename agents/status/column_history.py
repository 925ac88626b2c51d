"""What happened to each column of a target, on its shards and in the target itself. Pure.

Many shards make the same change. So what they do is counted: the first shard, the last version, and
how many changes there were.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from shardmerge.schemas.ddl.describe import definition
from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.model.shard_columns import ShardColumn
from shardmerge.schemas.records.decisions import Decision

MAX_EVENTS = 40
"""Different events kept per column; the oldest go first."""

_SUBJECT = "column:"


@dataclass(frozen=True, slots=True)
class ColumnEvent:
    """One kind of change of a column.

    Attributes:
        kind: ``first`` (a shard came with it), ``added``, ``dropped``, ``renamed``, ``changed``,
            ``left out``, or ``target`` (the target got a statement).
        detail: The definition after it, the new name, or the target's statement.
        version: Of the decision about the first such change.
        ts_ms: When that change was made, in milliseconds since 1970.
        shard: The first shard that made it; None for the target.
        last_version: Of the decision about the last such change.
        count: How many changes there were.
    """

    kind: str
    detail: str
    version: int
    ts_ms: int
    shard: ShardId | None = None
    last_version: int = 0
    count: int = 1


_Events = dict[tuple[str, str], ColumnEvent]


@dataclass(slots=True)
class ColumnHistory:
    """The fold of one target's decisions, in version order."""

    _by_id: dict[str, _Events] = field(default_factory=dict)
    _by_name: dict[str, _Events] = field(default_factory=dict)

    def add_shard(
        self,
        decision: Decision,
        before: tuple[ShardColumn, ...] | None,
        after: tuple[ShardColumn, ...],
    ) -> None:
        """Note what a shard's change did to its columns.

        Args:
            decision: About the change.
            before: The shard's columns before it; None for a shard that is new.
            after: The shard's columns after it. Empty when its schema is not known.
        """
        if before is after or not after:
            return
        for column_id, kind, detail in _differences(before, after):
            self._add(self._by_id.setdefault(column_id, {}), kind, detail, decision)

    def add_statements(self, decision: Decision) -> None:
        """Note the statements that the target gets."""
        for statement in decision.statements:
            for subject in statement.subjects:
                if subject.startswith(_SUBJECT):
                    name = subject.removeprefix(_SUBJECT)
                    events = self._by_name.setdefault(name, {})
                    self._add(events, "target", statement.sql, replace(decision, shard=None))

    def of(self, column_id: str, name: str) -> tuple[ColumnEvent, ...]:
        """The events of a column in version order; at one version the shard's come first.

        Args:
            column_id: Its identity.
            name: Its name in the target, under which the target's statements are kept.
        """
        shards = self._by_id.get(column_id, {}).values()
        target = self._by_name.get(name.lower(), {}).values()
        return tuple(sorted((*shards, *target), key=lambda e: (e.version, e.kind == "target")))

    def _add(self, events: _Events, kind: str, detail: str, decision: Decision) -> None:
        known = events.get((kind, detail))
        if known is not None:
            known = replace(known, last_version=decision.version, count=known.count + 1)
            events[kind, detail] = known
            return
        if len(events) >= MAX_EVENTS:
            del events[next(iter(events))]
        version = decision.version
        events[kind, detail] = ColumnEvent(
            kind, detail, version, decision.ts_ms, decision.shard, version
        )


def _differences(
    before: tuple[ShardColumn, ...] | None, after: tuple[ShardColumn, ...]
) -> Iterator[tuple[str, str, str]]:
    """Identity, kind and detail of each difference."""
    had = {c.id: c.column for c in before or () if c.id}
    names = {c.column.name: c.id for c in before or () if c.id}
    for item in after:
        if not item.id:
            if (left := names.get(item.column.name)) is not None:
                had.pop(left, None)
                yield left, "left out", item.column.name
            continue
        old = had.pop(item.id, None)
        if old is item.column:
            continue
        if old is None:
            yield item.id, "first" if before is None else "added", definition(item.column)
            continue
        if old.name != item.column.name:
            yield item.id, "renamed", item.column.name
        if (new := definition(item.column)) != definition(old):
            yield item.id, "changed", new
    for column_id, column in had.items():
        yield column_id, "dropped", column.name
