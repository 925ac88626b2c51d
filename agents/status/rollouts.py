"""The same change on shard after shard: where its gates are, and when they were passed. Pure.

The sink's reports say of each shard at which gate or row it waits, and how many rows it has not
applied. So one report tells whether a gate is passed. When it was passed is known only within two
reports, of which the first one did not have it passed yet.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from shardmerge.schemas.ddl.describe import definition
from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.model.position import SourcePosition
from shardmerge.schemas.model.shard_columns import ShardColumn
from shardmerge.schemas.records.decisions import Decision, Outcome
from shardmerge.schemas.records.progress import ShardProgress, SinkProgress

from .column_history import differences
from .same_statement import same_statement

MAX_GATES = 20_000
"""Gates kept per target. Beyond that the changes that were made longest ago are forgotten."""

StatementPlace = tuple[int, int]
"""Version of a decision, and the place among its statements."""
_Change = tuple[tuple[str, str, str], ...]
_STATEMENT = "statement"
_WORDS = ("lacks", "differs", "without")
"""What a shard can be, seen from a change: what is first counts, if parts of the change differ."""


@dataclass(frozen=True, slots=True)
class ShardGate:
    """The gate of one shard's change.

    Attributes:
        version: Version of the decision about the change.
        ts_ms: When the shard made the change, in milliseconds since 1970.
        passed_ms: When the sink reported for the first time that it is passed; 0 if it is not, and
            if the report before that one is not known.
        released: Version of the decision that ended the shard's hold here; 0 if there was no hold,
            or if it has not ended.
    """

    shard: ShardId
    version: int
    position: SourcePosition
    ts_ms: int
    passed_ms: int = 0
    released: int = 0


@dataclass(frozen=True, slots=True)
class Rollout:
    """Equal changes of shards.

    Attributes:
        ddl: The statement of the shard that made the change first.
        change: Identity, kind and detail of each difference of columns, see ``ColumnEvent``; empty
            for a change that leaves all columns as they were. Such changes are equal when their
            statements are, apart from the shards' names.
        gates: One for each shard that made the change, in the order of their versions; not empty.
        executed: Statement → when the sink reported for the first time that it is executed; only
            those of which that is known.
    """

    ddl: str
    change: _Change
    gates: tuple[ShardGate, ...]
    executed: Mapping[StatementPlace, int]

    @property
    def first(self) -> int:
        """Version of the decision about the first of the changes."""
        return self.gates[0].version

    @property
    def last(self) -> int:
        """Version of the decision about the last of the changes."""
        return self.gates[-1].version

    def standing_of(self, columns: Iterable[ShardColumn]) -> str:
        """Whether a shard with these columns has the change.

        ``has`` and ``lacks`` say it. ``differs``: the shard has what the change makes, with another
        definition. ``without``: it does not have the column that the change renames or redefines.
        """
        known = {c.id: c for c in columns if c.id}
        found = {_standing(known.get(id_), kind, detail) for id_, kind, detail in self.change}
        return next((word for word in _WORDS if word in found), "has")


def _standing(column: ShardColumn | None, kind: str, detail: str) -> str:
    if kind == "dropped":
        return "has" if column is None else "lacks"
    if kind == "left out":
        return "has"
    if column is None:
        return "lacks" if kind == "added" else "without"
    is_there = column.column.name if kind == "renamed" else definition(column.column)
    if is_there == detail:
        return "has"
    return "differs" if kind == "added" else "lacks"


def is_passed(gate: ShardGate, shard: ShardProgress | None, executed_version: int) -> bool:
    """Whether a shard has no row left before or behind a gate, as the sink tells it.

    Args:
        gate: The gate.
        shard: What the sink tells of the gate's shard; None for nothing.
        executed_version: What it tells of the target.
    """
    if shard is None or shard.waiting or shard.parked:
        return False
    return executed_version >= gate.version


@dataclass(slots=True)
class _Rollout:
    change: _Change
    ddl: str
    gates: dict[ShardId, ShardGate] = field(default_factory=dict)
    executed: dict[StatementPlace, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.gates)


@dataclass(slots=True)
class Rollouts:
    """The latest changes of one target's shards."""

    _changes: dict[_Change, _Rollout] = field(default_factory=dict)
    _open: dict[ShardId, dict[int, _Change]] = field(default_factory=dict)
    """Shard → version of each gate that is not passed → its change."""
    _held: dict[ShardId, dict[int, _Change]] = field(default_factory=dict)
    """Shard → version of each gate at which it is held → its change."""
    _statements: dict[StatementPlace, _Change] = field(default_factory=dict)
    """Those that are not executed."""
    _count: int = 0
    _report: SinkProgress | None = None
    _told: dict[ShardId, ShardProgress] | None = None
    """Of the last report; None until somebody asks."""

    def add(
        self,
        decision: Decision,
        before: tuple[ShardColumn, ...],
        after: tuple[ShardColumn, ...],
    ) -> None:
        """Note a shard's change. Decisions are added in the order of their versions.

        Args:
            decision: The decision about the change.
            before: The shard's columns before the change; empty if they are not known.
            after: The shard's columns after it, likewise.
        """
        assert decision.shard is not None
        is_known = before and after and before is not after
        found = tuple(sorted(differences(before, after))) if is_known else ()
        if not found:
            found = (("", _STATEMENT, same_statement(decision.ddl, decision.shard)),)
        rollout = self._changes.pop(found, None) or _Rollout(found, decision.ddl)
        change = rollout.change  # one object for all shards
        self._changes[change] = rollout  # the latest one is last
        gate = ShardGate(decision.shard, decision.version, decision.position, decision.ts_ms)
        self._count += gate.shard not in rollout.gates
        rollout.gates.pop(gate.shard, None)
        rollout.gates[gate.shard] = gate
        # What the last report has passed was passed some time before it.
        if not is_passed(gate, self._told_of(gate.shard), self._executed):
            self._open.setdefault(gate.shard, {})[gate.version] = change
        if decision.outcome is Outcome.HOLD:
            self._held.setdefault(gate.shard, {})[gate.version] = change
        self._await(decision, change)
        self._forget()

    def release(self, decision: Decision) -> None:
        """Note which holds a decision ends. This comes before ``add`` of the same decision."""
        for release in decision.releases:
            held = self._held.get(release.shard, {})
            for version in [v for v in held if v <= release.through]:
                change = held.pop(version)
                rollout = self._changes[change]
                gate = rollout.gates[release.shard]
                if gate.version == version:
                    rollout.gates[release.shard] = replace(gate, released=decision.version)
                    self._await(decision, change)
            if not held:
                self._held.pop(release.shard, None)

    def take(self, progress: SinkProgress) -> None:
        """Note what a report of the sink says. It is the next one behind those before."""
        # Of the first report it is not known since when it has been so.
        ts_ms = progress.ts_ms if self._report is not None else 0
        self._report, self._told = progress, None
        if self._statements:
            for place in [p for p in self._statements if _is_executed(p, progress)]:
                rollout = self._changes.get(self._statements.pop(place))
                if rollout is not None and ts_ms:
                    rollout.executed[place] = ts_ms
        for shard in progress.shards if self._open else ():
            if shard.shard in self._open and not (shard.waiting or shard.parked):
                self._pass(shard.shard, progress.executed_version, ts_ms)

    def found(self) -> tuple[Rollout, ...]:
        """The changes, the latest one first."""
        return tuple(
            Rollout(
                kept.ddl,
                () if change[0][1] == _STATEMENT else change,
                tuple(kept.gates.values()),
                dict(kept.executed),
            )
            for change, kept in reversed(self._changes.items())
        )

    @property
    def _executed(self) -> int:
        return self._report.executed_version if self._report else 0

    def _told_of(self, shard: ShardId) -> ShardProgress | None:
        if self._told is None:
            self._told = {s.shard: s for s in self._report.shards} if self._report else {}
        return self._told.get(shard)

    def _await(self, decision: Decision, change: _Change) -> None:
        """Watch when the decision's statements are executed, for this change."""
        for ordinal in range(len(decision.statements)):
            place = (decision.version, ordinal)
            if self._report is None or not _is_executed(place, self._report):
                self._statements[place] = change

    def _pass(self, shard: ShardId, executed_version: int, ts_ms: int) -> None:
        versions = self._open[shard]
        for version in [v for v in versions if v <= executed_version]:
            rollout = self._changes.get(versions.pop(version))
            gate = rollout.gates.get(shard) if rollout is not None else None
            if rollout is not None and gate is not None and gate.version == version:
                rollout.gates[shard] = replace(gate, passed_ms=ts_ms)
        if not versions:
            del self._open[shard]

    def _forget(self) -> None:
        while self._count > MAX_GATES and len(self._changes) > 1:
            change = next(iter(self._changes))
            self._count -= len(self._changes.pop(change))
            for gates in (self._open, self._held):
                for shard in [s for s, versions in gates.items() if change in versions.values()]:
                    left = {v: c for v, c in gates[shard].items() if c != change}
                    if left:
                        gates[shard] = left
                    else:
                        del gates[shard]
            for place in [p for p, of in self._statements.items() if of == change]:
                del self._statements[place]


def _is_executed(place: StatementPlace, progress: SinkProgress) -> bool:
    if place[0] > progress.executed_version:
        return False
    return all((s.version, s.ordinal) != place for s in progress.open)
