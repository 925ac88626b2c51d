"""The fold of the ddl topic: per target its decisions, per shard its gates. Pure.

The topic is written at least once and compacted. So it can hold a decision twice, and compaction
can keep only the second copy, which stands behind decisions of higher versions. The fold therefore
shows a target's decisions only as far as their versions have no gap, and keeps later ones back. A
schema change counts as decided when all its decisions are shown.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from shardmerge.schemas.model.errors import ContractError
from shardmerge.schemas.model.names import ShardId, TargetTable
from shardmerge.schemas.model.position import BEGINNING
from shardmerge.schemas.model.shard_columns import ShardColumn
from shardmerge.schemas.pipeline.topics import RowTopics, decision_key
from shardmerge.schemas.records.awaited_readings import AwaitedReadings
from shardmerge.schemas.records.decisions import Decision, FixupKind, Outcome, TargetStatement
from shardmerge.schemas.records.reloads import Reload

from .partitions import Stream, stream_of
from .shard_gates import Gate, ShardGates


@dataclass(frozen=True, slots=True, order=True)
class StatementKey:
    """Names a statement of a target: the decision's version, and the index in it, from 0."""

    version: int
    ordinal: int


@dataclass(frozen=True, slots=True)
class Reread:
    """A request to read a shard's table again.

    Attributes:
        version: Of the decision that makes the request.
        columns: Identities of the columns in which the target's rows may have wrong values until
            the table is read. None means any column: all rows come anew, or the shard has dropped
            one of the columns.
    """

    version: int
    columns: frozenset[str] | None

    def is_about(self, columns: frozenset[str]) -> bool:
        """Whether the reading may bring other values in one of these columns."""
        return self.columns is None or not self.columns.isdisjoint(columns)


@dataclass(slots=True)
class TargetDecisions:
    """What is decided for one target, as far as the versions have no gap.

    Attributes:
        version: Of the latest decision shown; 0 when there is none.
        statements: Every statement in execution order.
        shards: Every shard that a decision names, whether it still lives or not.
        paused: Shards whose rows wait because an operator, or their route, paused them.
        left: Shards that an operator took out, and that have had no schema change since.
        fixups: Version of a decision with fix-ups → the shards of the fix-ups.
        read_again: The shards in ``fixups`` whose rows may come again by a snapshot.
        rereads: Shard → the requests to read it again since it last joined the target, in order.
        restarted: Shards with at least one gate in ``ShardGates.restarts``, in the order of their
            first such gates.
        reloads: Version of a decision that reloads shards → those shards, sorted.
        awaited: Shards whose tables still have to be read as a whole.
        key_changed: Shards with at least one gate in ``ShardGates.key_changes``.
    """

    target: TargetTable
    version: int = 0
    statements: dict[StatementKey, TargetStatement] = field(default_factory=dict)
    shards: dict[ShardId, ShardGates] = field(default_factory=dict)
    paused: set[ShardId] = field(default_factory=set)
    left: set[ShardId] = field(default_factory=set)
    fixups: dict[int, tuple[ShardId, ...]] = field(default_factory=dict)
    read_again: set[ShardId] = field(default_factory=set)
    rereads: dict[ShardId, list[Reread]] = field(default_factory=dict)
    restarted: list[ShardId] = field(default_factory=list)
    reloads: dict[int, tuple[ShardId, ...]] = field(default_factory=dict)
    awaited: AwaitedReadings = field(default_factory=AwaitedReadings)
    key_changed: dict[ShardId, None] = field(default_factory=dict)
    _reached: dict[ShardId, int] = field(default_factory=dict)
    _held: dict[ShardId, None] = field(default_factory=dict)

    def touched(self, name: ShardId) -> None:
        """Note that a shard has got a gate, or that its gates were opened."""
        shard = self.shards[name]
        if shard.key_changes:
            self.key_changed[name] = None
        if shard.first_held is not None:
            self._reached.pop(name, None)
            self._held[name] = None
            return
        self._held.pop(name, None)
        reached = shard.reached
        if self._reached.get(name) != reached:
            # The version of the decision at hand, so it is the highest.
            self._reached.pop(name, None)
            self._reached[name] = reached

    def stopped_at(self, frontier: int) -> list[ShardId]:
        """The shards with a gate that may not be passed before the frontier is reached.

        The work is O(such shards): there may be thousands of others.
        """
        found = list(self._held)
        for name, reached in reversed(self._reached.items()):
            if reached < frontier:
                break
            found.append(name)
        return found

    def lives(self, shard: ShardId) -> bool:
        """Whether the shard still counts."""
        return shard not in self.left and self.shards[shard].gates[-1].live


class Decisions:
    """Folds decisions and answers what the planning asks. The work is O(new decisions).

    Args:
        topics: Where the shards' rows are; by default each has a topic of its own.

    Attributes:
        seen: How many decisions are shown, ignored ones included.
        topics: Of the arguments.
    """

    def __init__(self, topics: RowTopics | None = None) -> None:
        self.seen = 0
        self.topics = topics if topics is not None else RowTopics()
        self._targets: dict[TargetTable, TargetDecisions] = {}
        self._early: dict[TargetTable, dict[int, Decision]] = {}
        self._records: dict[str, Decision] = {}
        self._undecided: dict[tuple[str, int], set[int]] = {}
        self._decided: dict[str, set[int]] = {}
        self._streams: dict[Stream, list[tuple[TargetTable, ShardId]]] = {}
        self._ordered: set[Stream] = set()

    @property
    def targets(self) -> Mapping[TargetTable, TargetDecisions]:
        """Every target that a decision names."""
        return self._targets

    @property
    def streams(self) -> Mapping[Stream, Sequence[tuple[TargetTable, ShardId]]]:
        """Stream → the target and shard that its rows belong to; more than one is an error."""
        return self._streams

    @property
    def ordered_streams(self) -> Collection[Stream]:
        """The streams whose rows must keep their order across partitions: see ``ShardGates``."""
        return self._ordered

    def unread(self, sources: Collection[str]) -> frozenset[Stream]:
        """The streams whose source is not in ``sources`` and whose shards no longer live."""
        return frozenset(
            stream
            for stream, owners in self._streams.items()
            if owners[0][1].source not in sources
            and not any(self._targets[target].lives(shard) for target, shard in owners)
        )

    def record(self, target: TargetTable, version: int) -> Decision | None:
        """A decision as the topic has it; None when it was not read."""
        return self._records.get(decision_key(target, version, ""))

    def is_decided(self, source: str, offset: int) -> bool:
        """Whether every decision of the schema-change event at ``offset`` is shown."""
        return offset in self._decided.get(source, ())

    def add(self, decision: Decision) -> bool:
        """Fold one record of the topic.

        Returns:
            Whether anything new is shown now.

        Raises:
            ContractError: The topic has other content under the same key, or the decision
                contradicts an earlier one of its shard.
        """
        key = decision_key(decision.target, decision.version, str(decision.id))
        known = self._records.get(key)
        if known is not None:
            if known != decision:
                raise ContractError(
                    f"the ddl topic holds two different decisions {key}: for {known.id} and "
                    f"for {decision.id}",
                    hint="two coordinators wrote it, or it was made anew: replay the schema-log "
                    "into an empty ddl topic",
                    code="SM-2112",
                )
            return False
        self._records[key] = decision
        if decision.target is None:
            self._show(decision)
            return True
        early = self._early.setdefault(decision.target, {})
        early[decision.version] = decision
        target = self._targets.setdefault(decision.target, TargetDecisions(decision.target))
        shown = False
        while (following := early.pop(target.version + 1, None)) is not None:
            self._extend(target, following)
            self._show(following)
            shown = True
        return shown

    def _show(self, decision: Decision) -> None:
        self.seen += 1
        change = decision.id
        seen = self._undecided.setdefault((change.source, change.offset), set())
        seen.add(change.ordinal)
        if len(seen) == change.count:
            del self._undecided[change.source, change.offset]
            self._decided.setdefault(change.source, set()).add(change.offset)

    def _extend(self, target: TargetDecisions, decision: Decision) -> None:
        target.version = decision.version
        for ordinal, statement in enumerate(decision.statements):
            target.statements[StatementKey(decision.version, ordinal)] = statement
        if decision.shard is not None:
            self._set_gate(target, decision, decision.shard)
        for release in decision.releases:
            if release.shard in target.shards:
                leaves = release.shard in decision.leaves
                target.shards[release.shard].release(decision.version, release, passed_over=leaves)
                target.touched(release.shard)
        if decision.origin is not None:
            for gates in target.shards.values():
                gates.give_origin(decision.origin)
        target.paused |= set(decision.pauses)
        target.paused -= {*decision.resumes, *decision.leaves}
        target.left |= set(decision.leaves)
        if decision.fixups:
            target.fixups[decision.version] = tuple(fixup.shard for fixup in decision.fixups)
            # What the sink itself loads comes by no snapshot.
            snapshots = (f.shard for f in decision.fixups if f.kind is not FixupKind.LOAD)
            target.read_again.update(snapshots)
            for fixup in decision.fixups:
                if fixup.kind.asks_for_snapshot:
                    names = target.shards[fixup.shard].ids_by_name
                    # FixupKind.RELOAD takes the shard's rows out first: all columns come anew.
                    has_all = fixup.kind is FixupKind.SNAPSHOT
                    has_all = has_all and names.keys() >= set(fixup.columns)
                    columns = frozenset(names[n] for n in fixup.columns) if has_all else None
                    asked = Reread(decision.version, columns)
                    target.rereads.setdefault(fixup.shard, []).append(asked)
        target.awaited.take(decision)
        for reload in decision.reloads:
            self._reload(target, decision, reload)
        if not decision.live and decision.shard is not None:
            target.paused.discard(decision.shard)

    def _reload(self, target: TargetDecisions, decision: Decision, reload: Reload) -> None:
        """Set the gate at which the shard is reloaded: the rows before it are taken out."""
        shard = target.shards[reload.shard]
        last = shard.gates[-1]
        loads = any(f.shard == reload.shard for f in decision.fixups if f.kind is FixupKind.LOAD)
        # A load that is ordered by a command begins wherever the stream stands.
        position = last.position if loads else reload.position
        if position < last.position:
            raise ContractError(
                f"decision {decision.version} of {target.target} reloads {reload.shard} at "
                f"{reload.position}, before its gate at {last.position}",
                hint="the ddl topic was written by another version, or by two coordinators",
                code="SM-2113",
            )
        without = set(last.left_out)
        columns = (ShardColumn("", c.column) if c.id in without else c for c in last.columns)
        shard.append(
            Gate(
                version=decision.version,
                position=position,
                outcome=Outcome.NOOP,
                columns=tuple(columns),
                key=last.key,
                live=last.live,
                seen=self.seen + 1,
                began_ms=reload.began_ms,
                reloads=True,
                loads=loads,
            )
        )
        known = target.reloads.get(decision.version, ())
        target.reloads[decision.version] = tuple(sorted({*known, reload.shard}))
        target.touched(reload.shard)
        if len(shard.restarts) == 1:
            target.restarted.append(reload.shard)

    def _set_gate(self, target: TargetDecisions, decision: Decision, name: ShardId) -> None:
        shard = target.shards.get(name)
        if shard is None:
            shard = target.shards[name] = ShardGates(name)
            owners = self._streams.setdefault(stream_of(name, self.topics), [])
            owners.append((target.target, name))
        if name in target.left or not shard.gates or not shard.gates[-1].live:
            target.rereads.pop(name, None)
        target.left.discard(name)
        position = decision.position
        if decision.snapshot:
            shard.described = position
        if decision.snapshot and not shard.gates:
            # The description of the table's first state: it holds for every row in the topic.
            position = BEGINNING
        went_back = bool(shard.gates) and position < shard.gates[-1].position
        if went_back and decision.outcome is Outcome.HOLD:
            # Gates stand in order. What this one says of the shard's rows needs no position.
            position = shard.gates[-1].position
        elif went_back:
            raise ContractError(
                f"decision {decision.version} of {target.target} stands at {position} in "
                f"{name}, before the gate at {shard.gates[-1].position}",
                hint="the ddl topic was written by another version, or by two coordinators",
                code="SM-2113",
            )
        shard.append(
            Gate(
                version=decision.version,
                position=position,
                outcome=decision.outcome,
                columns=decision.columns,
                key=decision.key,
                live=decision.live,
                seen=self.seen + 1,
                reason=decision.reason,
                hint=decision.hint,
                code=decision.code,
                renewed=decision.renewed,
                # The gate is no restart if the table was dropped before: it starts anew here.
                began_ms=max(decision.ts_ms, 1)
                if decision.snapshot and shard.gates and shard.gates[-1].live
                else 0,
                went_back=went_back,
            )
        )
        target.touched(name)
        if shard.restarts == [len(shard.gates) - 1]:
            target.restarted.append(name)
        if shard.needs_order:
            self._ordered.add(stream_of(name, self.topics))
