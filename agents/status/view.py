"""What the pages show, folded from the pipeline's topics. Pure.

The view is made from five topics alone: joined-schemas, ddl, sink-progress, validations, commands.
It needs no table of the agents, so any worker can show everything. In all but the last the latest
record of a key counts, and a command has its offset, so a repeated record changes nothing.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from shardmerge.schemas.ddl.describe import definition
from shardmerge.schemas.model.names import ShardId, TargetTable
from shardmerge.schemas.model.position import SourcePosition
from shardmerge.schemas.model.shard_columns import ShardColumn
from shardmerge.schemas.model.tables import Column, TableSchema
from shardmerge.schemas.records.codec import Record
from shardmerge.schemas.records.decisions import Decision, JoinedSchema, Outcome
from shardmerge.schemas.records.operator_commands import OperatorCommand
from shardmerge.schemas.records.progress import SinkProgress
from shardmerge.schemas.records.validations import TargetValidation

from .column_history import ColumnEvent, ColumnHistory
from .command_log import AnsweredCommand, CommandLog
from .rates import Rates, Sample
from .rollouts import Rollout, Rollouts
from .validations import NEVER, ValidationLog, ValidationView

MAX_DECISIONS = 500
"""Decisions kept per target, and ignored ones in all."""
_MOST_SHARED = 100_000
"""Most columns and column lists that shards can share. Beyond that, sharing starts anew."""


@dataclass(frozen=True, slots=True)
class ShardView:
    """One shard of a target.

    Attributes:
        state: ``live``, ``held`` (its rows wait at a gate), ``paused`` (by an operator or its
            route) or ``left``.
        version: Version of the decision that brought the shard to this state.
        position: The place in the source's binlog that this decision is about.
        reason, hint, code: Why the shard is held or paused, what ends that, and the code of the
            reason; "" otherwise.
        columns: Its columns that count in the joined schema. Shards with equal columns mostly share
            one object, so that comparing them is cheap.
        latest: Its columns after all its changes; while it is held, these differ from ``columns``.
        dropped: Identities of columns that it had once and has no more.
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
    columns: tuple[ShardColumn, ...] = ()
    latest: tuple[ShardColumn, ...] = ()
    dropped: frozenset[str] = frozenset()
    is_conflict: bool = False
    ts_ms: int = 0


@dataclass(frozen=True, slots=True)
class ColumnView:
    """A joined column.

    Attributes:
        column: The joined column.
        history: What happened to the column, in version order.
        partial: Whether some live shard lacks the column.
        missing_on: The live shards that lack it, sorted.
    """

    name: str
    definition: str
    id: str
    partial: bool
    missing_on: tuple[ShardId, ...]
    column: Column
    history: tuple[ColumnEvent, ...] = ()


@dataclass(frozen=True, slots=True)
class TargetView:
    """One target as a page shows it; shards sorted, decisions newest first.

    Attributes:
        samples: The sink's reports of some hours, oldest first; see ``Rates``.
        rollouts: The latest changes of shards, equal ones together; the latest one first.
        disabled: The command ``disable`` that counts now; None when the target follows its shards.
        validation: The comparisons with its shards that count now.
    """

    target: TargetTable
    version: int
    columns: tuple[ColumnView, ...]
    schema: TableSchema | None
    shards: tuple[ShardView, ...]
    decisions: tuple[Decision, ...]
    progress: SinkProgress | None
    samples: tuple[Sample, ...] = ()
    rollouts: tuple[Rollout, ...] = ()
    disabled: AnsweredCommand | None = None
    validation: ValidationView = NEVER

    @property
    def held(self) -> tuple[ShardView, ...]:
        """The held shards: their rows wait at the gate of a hold."""
        return tuple(s for s in self.shards if s.state == "held")

    @property
    def live(self) -> tuple[ShardView, ...]:
        """Every shard that counts in the joined schema, held ones included."""
        return tuple(s for s in self.shards if s.state != "left")


@dataclass(frozen=True, slots=True)
class SinksView:
    """Where the pipeline's sinks run, by the latest report of a sink.

    Attributes:
        writer: Host of the sink that writes, as the target's server sees it.
        standbys: Hosts of those that wait to take over.
        ts_ms: When the report was written, in milliseconds since 1970.
    """

    writer: str
    standbys: tuple[str, ...]
    ts_ms: int


@dataclass(slots=True)
class _Target:
    joined: JoinedSchema | None = None
    progress: SinkProgress | None = None
    version: int = 0
    shards: dict[ShardId, ShardView] = field(default_factory=dict)
    paused: dict[ShardId, int] = field(default_factory=dict)
    """Shard → since when, in milliseconds since 1970."""
    decisions: deque[Decision] = field(default_factory=lambda: deque(maxlen=MAX_DECISIONS))
    outcomes: Counter[Outcome] = field(default_factory=Counter)
    history: ColumnHistory = field(default_factory=ColumnHistory)
    rates: Rates = field(default_factory=Rates)
    rollouts: Rollouts = field(default_factory=Rollouts)


class StatusView:
    """Takes records, and gives what the pages show. Does no I/O; not thread-safe."""

    def __init__(self) -> None:
        self._targets: dict[TargetTable, _Target] = {}
        self._ignored: dict[str, Decision] = {}
        self._columns: dict[ShardColumn, ShardColumn] = {}
        self._lists: dict[tuple[ShardColumn, ...], tuple[ShardColumn, ...]] = {}
        self._commands = CommandLog()
        self._validations = ValidationLog()
        self.revision = 0
        """How many records were applied. A page is stale when this has grown since it was made."""

    def apply(self, record: Record) -> None:
        """Apply one record of the topics. The id of a command must have its offset.

        Any other record changes nothing that is shown.
        """
        self.revision += 1
        if isinstance(record, Decision):
            self._commands.add_answer(record)
            self._decision(record)
        elif isinstance(record, OperatorCommand):
            self._commands.add_command(record)
        elif isinstance(record, JoinedSchema):
            self._target(record.target).joined = record
        elif isinstance(record, SinkProgress):
            state = self._target(record.target)
            state.progress = record
            state.rates.add(record)
            state.rollouts.take(record)
        elif isinstance(record, TargetValidation):
            self._validations.add(record)

    def forget_validation(self, key: str) -> None:
        """Apply the tombstone of a comparison; ``key``: of its record."""
        self.revision += 1
        self._validations.forget(key)

    def targets(self) -> tuple[TargetView, ...]:
        """Every target, sorted by name."""
        return tuple(self._view(t, self._targets[t]) for t in sorted(self._targets))

    def target(self, name: str) -> TargetView | None:
        """The target of that name, as ``database.table``."""
        for target, state in self._targets.items():
            if str(target) == name:
                return self._view(target, state)
        return None

    def sinks(self) -> SinksView | None:
        """Where the sinks run; None when the latest report does not tell it."""
        reports = [t.progress for t in self._targets.values() if t.progress is not None]
        latest = max(reports, key=lambda report: report.ts_ms, default=None)
        if latest is None or not latest.writer:
            return None
        return SinksView(latest.writer, latest.standbys, latest.ts_ms)

    def commands(self, target: TargetTable) -> tuple[AnsweredCommand, ...]:
        """The commands to a target with their answers, newest first."""
        return self._commands.of(target)

    def states(
        self,
    ) -> Iterator[tuple[TargetTable, int, Mapping[Outcome, int], Iterator[ShardView]]]:
        """Each target with its version, the number of decisions by outcome, and its shards."""
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
        state.rollouts.release(decision)
        for release in decision.releases:
            known = state.shards.get(release.shard)
            # The shard stays held if the release ends before its latest change.
            if known is not None and known.version <= release.through:
                columns = self._without(known.latest, release.left_out)
                state.shards[release.shard] = replace(
                    known, state="live", reason="", hint="", code="", columns=columns
                )
        state.history.add_statements(decision)
        if decision.shard is not None:
            before = state.shards.get(decision.shard)
            columns = self._shared(decision.columns)
            state.shards[decision.shard] = _after(decision, columns, before)
            if decision.live:
                state.history.add_shard(decision, before.latest if before else None, columns)
            if before is not None:
                state.rollouts.add(decision, before.latest, columns)
        for shard in decision.pauses:
            state.paused.setdefault(shard, decision.ts_ms)
        for shard in (*decision.resumes, *decision.leaves):
            state.paused.pop(shard, None)
        for shard in decision.leaves:
            if (known := state.shards.get(shard)) is not None:
                state.shards[shard] = replace(known, state="left", columns=())
        if not decision.live and decision.shard is not None:
            state.paused.pop(decision.shard, None)

    def _without(
        self, columns: tuple[ShardColumn, ...], left_out: Container[str]
    ) -> tuple[ShardColumn, ...]:
        if not left_out:
            return columns
        return self._shared(
            tuple(ShardColumn("", c.column) if c.id in left_out else c for c in columns)
        )

    def _shared(self, columns: tuple[ShardColumn, ...]) -> tuple[ShardColumn, ...]:
        """The first list object with equal columns, so that 10,000 shards share few lists."""
        if len(self._columns) + len(self._lists) > _MOST_SHARED:
            self._columns.clear()
            self._lists.clear()
        known = self._lists.get(columns)
        if known is None:
            known = tuple(self._columns.setdefault(column, column) for column in columns)
            self._lists[known] = known
        return known

    def _view(self, target: TargetTable, state: _Target) -> TargetView:
        shards = tuple(as_paused(state.shards[s], state.paused) for s in sorted(state.shards))
        joined = state.joined
        missing = _Missing(shards)
        return TargetView(
            target=target,
            version=max(state.version, joined.version if joined else 0),
            columns=tuple(
                _column(c, missing.of(c.id), state.history)
                for c in (joined.columns if joined else ())
            ),
            schema=joined.schema if joined else None,
            shards=shards,
            decisions=tuple(reversed(state.decisions)),
            progress=state.progress,
            samples=state.rates.samples(),
            rollouts=state.rollouts.found(),
            disabled=self._commands.disabled(target),
            validation=self._validations.of(target),
        )


class _Missing:
    """Finds the live shards that lack a column. Shards with one list object are checked once.

    Args:
        shards: Sorted. Places in it are sorted faster than names.
    """

    def __init__(self, shards: Sequence[ShardView]) -> None:
        self._shards = shards
        self._alike: dict[int, tuple[frozenset[str], list[int]]] = {}
        for place, shard in enumerate(shards):
            if shard.state != "left" and shard.columns:
                key = id(shard.columns)
                if key not in self._alike:
                    self._alike[key] = (frozenset(c.id for c in shard.columns), [])
                self._alike[key][1].append(place)

    def of(self, column_id: str) -> tuple[ShardId, ...]:
        """These shards, sorted."""
        alike = self._alike.values()
        places = sorted(n for ids, found in alike if column_id not in ids for n in found)
        return tuple(self._shards[place].shard for place in places)


def _after(
    decision: Decision, columns: tuple[ShardColumn, ...], earlier: ShardView | None
) -> ShardView:
    """A shard after a decision about it."""
    assert decision.shard is not None
    had = {c.id for c in earlier.latest} | earlier.dropped if earlier else frozenset[str]()
    view = ShardView(
        decision.shard,
        "live",
        decision.version,
        decision.position,
        columns=columns,
        latest=columns,
        dropped=frozenset(had - {c.id for c in columns} - {""}),
        ts_ms=decision.ts_ms,
    )
    if not decision.live:
        return replace(view, state="left", columns=(), latest=(), dropped=frozenset())
    if decision.outcome is not Outcome.HOLD:
        return view
    # A held shard counts with its columns before the conflicting change.
    return replace(
        view,
        state="held",
        reason=decision.reason,
        hint=decision.hint,
        code=decision.code,
        is_conflict=bool(decision.conflict),
        columns=earlier.columns if earlier is not None else (),
    )


def as_paused(shard: ShardView, paused: Mapping[ShardId, int]) -> ShardView:
    """The shard, with the state ``paused`` if it is paused and not held.

    Args:
        shard: The shard.
        paused: Paused shard → since when, in milliseconds since 1970; 0 if that is not known.
    """
    if shard.state != "live" or shard.shard not in paused:
        return shard
    return replace(
        shard,
        state="paused",
        reason="paused by an operator, or by its route",
        hint=f"shardmerge command resume --pipeline FILE --shard {shard.shard}",
        code="SM-1613",
        ts_ms=paused[shard.shard],
    )


def _column(
    joined: ShardColumn, missing: tuple[ShardId, ...], history: ColumnHistory
) -> ColumnView:
    column = joined.column
    return ColumnView(
        column.name,
        definition(column),
        joined.id,
        bool(missing),
        missing,
        column,
        history.of(joined.id, column.name),
    )
