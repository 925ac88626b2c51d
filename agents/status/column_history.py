"""What happened to each column of a target, on its shards and in the target itself. Pure.

Many shards make the same change. So equal changes are one event, with the first shard, the last
version, and the number of changes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from shardmerge.schemas.ddl.describe import definition
from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.model.shard_columns import ShardColumn
from shardmerge.schemas.records.decisions import Decision

MAX_EVENTS = 40
"""Different events that are kept per column. A new one beyond that replaces the oldest."""

_SUBJECT = "column:"


@dataclass(frozen=True, slots=True)
class ColumnEvent:
    """Equal changes of a column, as one event.

    Attributes:
        kind: ``first`` (a shard came with it), ``added``, ``dropped``, ``renamed``, ``changed``,
            ``left out``, or ``target`` (the target got a statement).
        detail: The definition after the change, the new name, or the target's statement.
        version: Version of the decision about the first of the changes.
        ts_ms: When the first change was made, in milliseconds since 1970.
        shard: The shard that made the first change; None for the target.
        last_version: Version of the decision about the last change.
        count: The number of changes.
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
    """The history of one target's columns. Decisions are added in the order of their versions."""

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
            decision: The decision about the change.
            before: The shard's columns before the change; None for a new shard.
            after: The shard's columns after the change; empty if its schema is not known.
        """
        if before is after or not after:
            return
        for column_id, kind, detail in differences(before, after):
            self._add(self._by_id.setdefault(column_id, {}), kind, detail, decision)

    def add_statements(self, decision: Decision) -> None:
        """Note the statements that a decision has for the target."""
        for statement in decision.statements:
            for subject in statement.subjects:
                if subject.startswith(_SUBJECT):
                    name = subject.removeprefix(_SUBJECT)
                    events = self._by_name.setdefault(name, {})
                    self._add(events, "target", statement.sql, replace(decision, shard=None))

    def of(self, column_id: str, name: str) -> tuple[ColumnEvent, ...]:
        """The events of a column, by version. In one version, events of shards come first.

        Args:
            column_id: The identity of the column.
            name: The name of the column in the target. It finds the target's statements.
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


def differences(
    before: tuple[ShardColumn, ...] | None, after: tuple[ShardColumn, ...]
) -> Iterator[tuple[str, str, str]]:
    """Identity, kind and detail of each difference, see ``ColumnEvent``.

    Args:
        before: A shard's columns before a change; None for a new shard.
        after: Its columns after the change.
    """
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
