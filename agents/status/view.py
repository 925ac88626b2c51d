"""What the status pages show, folded from the pipeline's topics. Pure.

Any worker shows everything: the view is made of joined-schemas, ddl and sink-progress alone, not
of the agents' tables. All three are keyed records of which the last one per key counts, so a
repeated record changes nothing.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from shardmerge.schemas.ddl.describe import column_text
from shardmerge.schemas.model.names import ShardId, TargetTable
from shardmerge.schemas.model.position import SourcePosition
from shardmerge.schemas.model.tables import Column, TableSchema
from shardmerge.schemas.records.codec import Record
from shardmerge.schemas.records.decisions import Decision, JoinedSchema, Outcome
from shardmerge.schemas.records.progress import SinkProgress

MAX_DECISIONS = 500
"""Decisions kept per target, and ignored ones in all."""


@dataclass(frozen=True, slots=True)
class ShardView:
    """One shard of a target.

    Attributes:
        state: ``live``, ``held`` (its rows wait at a gate), ``paused`` (an operator said so) or
            ``left``.
        version: Of the decision that brought it to this state.
        position: Of the same.
        reason, hint, code: Why it is held, what ends it, and the reason's code; "" otherwise.
        column_ids: Identities of its columns that count in the joined schema.
        is_conflict: Whether it is held because there is no joined schema.
        ts_ms: When the schema change of that decision was made, in milliseconds since 1970.
    """

    shard: ShardId
    state: str
    version: int
    position: SourcePosition
    reason: str = ""
    hint: str = ""
    code: str = ""
    column_ids: frozenset[str] = frozenset()
    is_conflict: bool = False
    ts_ms: int = 0


@dataclass(frozen=True, slots=True)
class ColumnView:
    """A joined column.

    Attributes:
        partial: Whether some live shard lacks it.
        missing_on: Those shards, sorted.
    """

    name: str
    definition: str
    id: str
    partial: bool
    missing_on: tuple[ShardId, ...]


@dataclass(frozen=True, slots=True)
class TargetView:
    """One target as a page shows it; shards sorted, decisions newest first."""

    target: TargetTable
    version: int
    columns: tuple[ColumnView, ...]
    schema: TableSchema | None
    shards: tuple[ShardView, ...]
    decisions: tuple[Decision, ...]
    progress: SinkProgress | None

    @property
    def held(self) -> tuple[ShardView, ...]:
        """The shards whose rows wait at a gate of a hold."""
        return tuple(s for s in self.shards if s.state == "held")

    @property
    def live(self) -> tuple[ShardView, ...]:
        """Every shard that counts in the joined schema, held ones included."""
        return tuple(s for s in self.shards if s.state != "left")


@dataclass(slots=True)
class _Target:
    joined: JoinedSchema | None = None
    progress: SinkProgress | None = None
    version: int = 0
    shards: dict[ShardId, ShardView] = field(default_factory=dict)
    paused: set[ShardId] = field(default_factory=set)
    decisions: deque[Decision] = field(default_factory=lambda: deque(maxlen=MAX_DECISIONS))
    outcomes: Counter[Outcome] = field(default_factory=Counter)


class StatusView:
    """The fold: records in, what the pages show out. Without I/O; not thread-safe."""

    def __init__(self) -> None:
        self._targets: dict[TargetTable, _Target] = {}
        self._ignored: dict[str, Decision] = {}

    def apply(self, record: Record) -> None:
        """Fold one record of the three topics; others change nothing."""
        if isinstance(record, Decision):
            self._decision(record)
        elif isinstance(record, JoinedSchema):
            self._target(record.target).joined = record
        elif isinstance(record, SinkProgress):
            self._target(record.target).progress = record

    def targets(self) -> tuple[TargetView, ...]:
        """Every target, sorted by name."""
        return tuple(self._view(t, self._targets[t]) for t in sorted(self._targets))

    def target(self, name: str) -> TargetView | None:
        """The target of that name, as ``database.table``."""
        for target, state in self._targets.items():
            if str(target) == name:
                return self._view(target, state)
        return None

    def states(
        self,
    ) -> Iterator[tuple[TargetTable, int, Mapping[Outcome, int], Iterator[ShardView]]]:
        """Each target with its version, how many decisions had which outcome, and its shards."""
        for target, state in self._targets.items():
            shards = (as_paused(shard, state.paused) for shard in state.shards.values())
            yield target, state.version, state.outcomes, shards

    def ignored(self) -> tuple[Decision, ...]:
        """Decisions about statements that concern no routed shard, newest first."""
        return tuple(reversed(self._ignored.values()))

    def _target(self, target: TargetTable) -> _Target:
        return self._targets.setdefault(target, _Target())

    def _decision(self, decision: Decision) -> None:
        if decision.target is None:
            self._ignored.setdefault(str(decision.id), decision)
            while len(self._ignored) > MAX_DECISIONS:
                del self._ignored[next(iter(self._ignored))]
            return
        state = self._target(decision.target)
        if decision.version <= state.version:
            return
        state.version = decision.version
        state.decisions.append(decision)
        state.outcomes[decision.outcome] += 1
        for release in decision.releases:
            known = state.shards.get(release.shard)
            # A later change of a shard can still wait when an earlier one is let through.
            if known is not None and known.version <= release.through:
                state.shards[release.shard] = replace(
                    known, state="live", reason="", hint="", code=""
                )
        if decision.shard is not None:
            state.shards[decision.shard] = _after(decision, state.shards.get(decision.shard))
        state.paused |= set(decision.pauses)
        state.paused -= {*decision.resumes, *decision.leaves}
        for shard in decision.leaves:
            if (known := state.shards.get(shard)) is not None:
                state.shards[shard] = replace(known, state="left", column_ids=frozenset())
        if not decision.live and decision.shard is not None:
            state.paused.discard(decision.shard)

    def _view(self, target: TargetTable, state: _Target) -> TargetView:
        shards = tuple(as_paused(state.shards[s], state.paused) for s in sorted(state.shards))
        joined = state.joined
        counting = [s for s in shards if s.state != "left" and s.column_ids]
        return TargetView(
            target=target,
            version=max(state.version, joined.version if joined else 0),
            columns=tuple(
                _column(c.id, c.column, counting) for c in (joined.columns if joined else ())
            ),
            schema=joined.schema if joined else None,
            shards=shards,
            decisions=tuple(reversed(state.decisions)),
            progress=state.progress,
        )


def _after(decision: Decision, earlier: ShardView | None) -> ShardView:
    """A shard after a decision about it."""
    assert decision.shard is not None
    ids = frozenset(column.id for column in decision.columns)
    view = ShardView(decision.shard, "live", decision.version, decision.position, column_ids=ids)
    if not decision.live:
        return replace(view, state="left", column_ids=frozenset())
    if decision.outcome is not Outcome.HOLD:
        return view
    # A held shard counts with its columns before the conflicting change.
    held = replace(
        view,
        state="held",
        reason=decision.reason,
        hint=decision.hint,
        code=decision.code,
        is_conflict=bool(decision.conflict),
        ts_ms=decision.ts_ms,
    )
    before = earlier.column_ids if earlier is not None else frozenset()
    return replace(held, column_ids=before)


def as_paused(shard: ShardView, paused: Container[ShardId]) -> ShardView:
    """The shard as paused, if it is one of these and nothing holds it."""
    if shard.state != "live" or shard.shard not in paused:
        return shard
    return replace(
        shard,
        state="paused",
        reason="paused by an operator, or by its route",
        hint=f"shardmerge command resume --pipeline FILE --shard {shard.shard}",
        code="SM-1613",
    )


def _column(column_id: str, column: Column, shards: Iterable[ShardView]) -> ColumnView:
    missing = tuple(s.shard for s in shards if column_id not in s.column_ids)
    return ColumnView(column.name, definition(column), column_id, bool(missing), missing)


def definition(column: Column) -> str:
    """Type and properties of a column, as SQL without its name."""
    return column_text(replace(column, name="")).removeprefix("``").strip()
