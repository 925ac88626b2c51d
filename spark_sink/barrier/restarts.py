"""Snapshots that begin again: rows of the interrupted snapshot are taken out of the target. Pure.

After an interruption Debezium takes a snapshot again from its beginning. The connector commits each
poll, so rows of the first snapshot are in the row topics, and may be in the target. No record tells
which of these rows were deleted on the source meanwhile. Theory of operation, for one shard:

1. The new snapshot describes every table anew before it reads a row. The decision about the
   description has a gate in the shard's rows, at the snapshot's position. Such a gate of a live
   shard is a *restart*, unless it turns out that no snapshot read rows there.
2. Rows before the gate are applied as always. The shard stops at the gate until a row of the new
   snapshot is seen, from any shard of the source. (The gates of all these shards stand at one
   position, and rows of the binlog stand behind it.) If a shard meets a binlog row first, all rows
   of the snapshot can be read by then, and the sink looks for one in every partition (``peers``).
   Some descriptions bring no rows (``snapshot.mode`` ``no_data`` or ``recovery``), and no row may
   be taken out because of them. A snapshot that finds no row in any table of its source looks the
   same: the rows of the snapshot before stay, and the shard is held at its first binlog row behind
   the gate.
3. ``BEGUN`` is journalled. From now on no row before the gate is applied: the target may have
   dropped what such a row needs. The rows that were applied are taken back. If the target can tell
   the shard's rows, one statement deletes them (``truncations.emptying``). Otherwise they are
   taken back from the end of each partition: a chunk is read, its keys are deleted (or, without a
   key, as many rows as it brought), and the same transaction moves the partition back to the
   chunk's start. So after any crash the offset says what is left to be taken back.
4. ``UNDONE`` is journalled. Rows before the gate are skipped, and rows behind it are applied.

The sink can read a source's first rows itself (``loading``). Then a description orders that they
are read anew. The rows that the load before it brought are taken out by the statement, in step 3;
no topic has them. Before that, a load that is not complete must move its base to the gate
(``LoadPlace``): then the target refuses chunks that were read at an earlier base.

If the source's binlog went back before the gate, within one epoch, positions do not tell which rows
are before it. Then none passes until the restart is settled, and the sink looks for a row of the
snapshot in every partition, again and again.

If the binlog stood still between the two snapshots, the rows of both have the same position. Then
the connector's clock, in its records, tells which rows were read before the new description.

A decision can *reload* shards (``Decision.reloads``): their tables are read again, and the target's
rows of these shards are taken out first, because the two could not be matched. The gates of such a
decision are restarts from the beginning, without step 2. All shards of the decision begin together
and are settled together, under its one version. So one statement can empty a target in which no
other shard has rows.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from shardmerge.schemas.model.names import ShardId, TargetTable
from shardmerge.schemas.model.position import SourcePosition
from shardmerge.schemas.records.decisions import Binding, TargetStatement

from .applied import RowProgress
from .decisions import Decisions, StatementKey, TargetDecisions
from .partitions import Partition
from .shard_gates import Gate, ShardGates
from .truncations import emptying

BEGUN, UNDONE, VOID = -1, -2, -3
"""Marks of a restart in the journal, where they take the place of a statement's ordinal. ``VOID``:
no row has to be taken out."""
CHUNK, KEYLESS_CHUNK = 10_000, 1_000
"""Offsets of a partition whose rows are taken back in one transaction. The second is for tables
without a key, where each row needs a search of its own."""


class Stage(StrEnum):
    """How far a restart has come."""

    AWAITED = "waits for the first row of the snapshot that began again here"
    SOUGHT = "waits for a row of the snapshot that began again here"
    UNPROVEN = "it was described anew, and no row of a snapshot came"
    FOUND = "its snapshot began again here: what the one before brought is taken out next"
    BEGUN = "its snapshot began again here: what the one before brought is being taken out"


_RELOADS = {
    Stage.FOUND: "its table is read again from here on: its rows in the target are taken out next",
    Stage.BEGUN: "its table is read again from here on: its rows in the target are being taken out",
}


@dataclass(frozen=True, slots=True)
class Restart:
    """A restart that is not settled.

    Attributes:
        index: Of its gate.
        removal: The statement that deletes the rows of the shard and of its mates; None before
            ``BEGUN``, and when rows are taken back chunk by chunk or none is left.
        left: Partitions whose rows are to be taken back, each with its stored offset.
        is_last: Whether the shard has no later restart.
        mates: The shards that the same decision reloads, this one among them; only this one when
            its snapshot began again.
    """

    target: TargetTable
    shard: ShardId
    gate: Gate
    index: int
    stage: Stage
    removal: TargetStatement | None = None
    left: tuple[tuple[Partition, int], ...] = ()
    is_last: bool = True
    mates: tuple[ShardId, ...] = ()

    @property
    def leads(self) -> bool:
        """Whether it represents its mates in what is done once for all of them."""
        return self.shard == self.mates[0]

    @property
    def reason(self) -> str:
        """Why its shard waits, for people."""
        return _RELOADS[self.stage] if self.gate.reloads else self.stage.value

    @property
    def position(self) -> SourcePosition:
        """Of the gate."""
        return self.gate.position

    @property
    def lets_rows_pass(self) -> bool:
        """Whether rows before the gate are applied."""
        return self.stage is Stage.AWAITED

    def key(self, mark: int) -> StatementKey:
        """The key of one of its marks (``BEGUN``, ``UNDONE``, ``VOID``) in the journal."""
        return StatementKey(self.gate.version, mark)


Places = Collection[tuple[str, SourcePosition]]
"""Pairs of a source and the position of one of its snapshots that read rows."""


def undone_upto(shard: ShardGates, executed: Collection[StatementKey]) -> int:
    """How many of the shard's gates, from the first, have had their rows taken back."""
    for index in reversed(shard.restarts):
        if StatementKey(shard.gates[index].version, UNDONE) in executed:
            return index
    return 0


def open_restart(shard: ShardGates, executed: Collection[StatementKey]) -> int | None:
    """Index of the first restart that is not settled; None when all are."""
    return next(open_restarts(shard, executed), None)


def open_restarts(shard: ShardGates, executed: Collection[StatementKey]) -> Iterator[int]:
    """Indices of the restarts that are not settled."""
    upto = undone_upto(shard, executed)
    for index in shard.restarts:
        version = shard.gates[index].version
        if index > upto and StatementKey(version, VOID) not in executed:
            yield index


def snapshots_seen(
    decisions: Decisions,
    executed: Mapping[TargetTable, Collection[StatementKey]],
    rows: RowProgress,
    loaded: Collection[str] = (),
) -> Places:
    """The snapshots that began again and are known to have read rows.

    Args:
        decisions: Everything decided.
        executed: Per target, from the journal.
        rows: How far rows are applied.
        loaded: Sources whose rows the sink reads itself. For them the description counts like a
            snapshot's rows: the load that follows it brings all rows.
    """
    found = set()
    for target in decisions.targets.values():
        done = executed.get(target.target, ())
        for name in target.restarted:
            shard = target.shards[name]
            for index in shard.restarts:
                gate = shard.gates[index]
                if not gate.reloads and StatementKey(gate.version, BEGUN) in done:
                    found.add((name.source, gate.position))
            first = open_restart(shard, done)
            if first is not None and not shard.gates[first].reloads:
                place = shard.gates[first].position
                if name.source in loaded or any(
                    rows.at(p).next_position == place for p in rows.partitions_of(name)
                ):
                    found.add((name.source, place))
    return found


def restarts_of(
    target: TargetDecisions,
    executed: Collection[StatementKey],
    rows: RowProgress,
    bound: Mapping[str, Binding],
    seen: Places,
) -> dict[ShardId, Restart]:
    """For each shard of a target its first restart that is not settled.

    Args:
        target: Everything decided for it.
        executed: The target's keys in the journal.
        rows: How far rows are applied.
        bound: Identity → target column (``statements.bindings``).
        seen: See ``snapshots_seen``.
    """
    found = {}
    for name in target.restarted:
        shard = target.shards[name]
        index = open_restart(shard, executed)
        if index is None:
            continue
        gate = shard.gates[index]
        mates = target.reloads[gate.version] if gate.reloads else (name,)
        removal, left = None, list[tuple[Partition, int]]()
        if StatementKey(gate.version, BEGUN) in executed:
            stage = Stage.BEGUN
            left = [(p, at) for p in rows.partitions_of(name) if (at := rows.at(p).offset)]
            # The rows of a first load are in no topic, so no offset tells of them.
            loaded = any(_has_loaded_rows(mate, rows) for mate in mates)
            removal = emptying(target, mates, bound) if left or loaded or len(mates) > 1 else None
        elif gate.reloads or (name.source, gate.position) in seen:
            stage = Stage.FOUND
        elif 0 <= shard.went_back < index:
            stage = Stage.SOUGHT
        elif _is_behind(name, gate.position, rows) or _is_reloaded_later(shard, index):
            stage = Stage.UNPROVEN
        else:
            stage = Stage.AWAITED
        is_last = index == shard.restarts[-1]
        found[name] = Restart(
            target.target, name, gate, index, stage, removal, tuple(left), is_last, mates
        )
    return found


def _has_loaded_rows(name: ShardId, rows: RowProgress) -> bool:
    return (load := rows.loads.get(name)) is not None and load.has_rows


def _is_reloaded_later(shard: ShardGates, index: int) -> bool:
    """Whether a decision reloads the shard behind a restart, which takes out all earlier rows.

    Then it does not matter whether the snapshot read rows. The sink could also wait for ever: a
    shard whose table is empty gets no row that shows it.
    """
    return any(shard.gates[later].reloads for later in shard.restarts if later > index)


def unsettled_reload(
    target: TargetDecisions, version: int, executed: Collection[StatementKey]
) -> int | None:
    """The first version up to ``version`` whose reloads are not settled; None when all are."""
    return next(
        (at for at in target.reloads if at <= version and StatementKey(at, UNDONE) not in executed),
        None,
    )


def peers(
    restart: Restart, decisions: Decisions, rows: RowProgress
) -> dict[Partition, tuple[ShardId, Gate]]:
    """Partition → shard and gate, for every partition that can hold rows of a restart's snapshot.

    These are the partitions of all shards of its source that were described anew at its position.
    """
    return {
        partition: (name, gate)
        for target in decisions.targets.values()
        for name in target.restarted
        if name.source == restart.shard.source
        for gate in target.shards[name].gates
        if gate.began_ms and not gate.reloads and gate.position == restart.position
        for partition in rows.partitions_of(name)
    }


def _is_behind(name: ShardId, place: SourcePosition, rows: RowProgress) -> bool:
    """Whether a row of the shard behind the position was seen."""
    nexts = (rows.at(p).next_position for p in rows.partitions_of(name))
    return any(position is not None and position > place for position in nexts)
