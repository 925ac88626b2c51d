"""Snapshots that begin again: what the interrupted one brought, and the new one lacks, goes. Pure.

Debezium takes a snapshot that was interrupted again from its beginning. The connector commits each
poll, so rows of the first one are in the row topics, and may be in the target; what was deleted
meanwhile no record tells. Theory of operation, for one shard:

1. The new snapshot describes every table anew before it reads a row. The decision about that has a
   gate in the shard's rows, at the snapshot's position. A gate like that, of a shard that lives, is
   a *restart*, unless it turns out that no snapshot read rows there.
2. Rows before the gate are applied as ever. The shard stops at the gate until a row of that
   snapshot is seen, of whichever shard of the source: all of its gates stand at one position, and
   rows of the binlog stand behind it. When such a row is seen first, all rows of the snapshot can
   be read, and are looked for. Some descriptions bring no rows (``snapshot.mode`` ``no_data`` or
   ``recovery``), and nothing may go for their sake. A snapshot that finds no row in any table of
   its source cannot be told from those: what the one before brought stays, and the shard is held
   at its first row of the binlog behind the gate.
3. ``BEGUN`` is journalled. From here on no row before the gate is applied any more: the target may
   have given up since what they need. What was applied of them is taken back. Either by one
   statement, where the target tells the shard's rows (``truncations.emptying``), or row by row,
   from the end: a chunk of the partition is read, its keys are deleted (or, without a key, as many
   rows as it brought), and in the same transaction the partition moves back to the chunk's start.
   So an offset tells at every moment what is left to be taken back, whatever crashes.
4. ``UNDONE`` is journalled. Rows before the gate are passed over, and those behind it applied.

The binlog may have stood still between the two snapshots; then their rows name one position. The
connector's clock, in its records, tells which of them were read before the new description.

A decision can *reload* shards (``Decision.reloads``): their tables are read again, and what the
target has of them goes first, because nobody could match the two. Its gates are restarts that are
found from the beginning. All shards of the decision are begun together and settled together, by its
one version: so a target that nobody else has rows in can be emptied by one statement.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
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
"""Stand for statements of a restart's decision in the journal: their ordinals. ``VOID``: nothing
has to go there."""
CHUNK, KEYLESS_CHUNK = 10_000, 1_000
"""Offsets of a partition whose rows are taken back in one transaction; without a key each row is
looked for by itself."""


class Stage(StrEnum):
    """How far a restart has come."""

    AWAITED = "waits for the first row of the snapshot that began again here"
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
        removal: Deletes the rows of the shard and of its mates; None when they are taken back one
            by one.
        left: Partitions of which rows are to be taken back, with the offset where each stands.
        is_last: Whether no later snapshot has begun again since.
        mates: The shards that the same decision reloads, itself among them; only itself when its
            snapshot began again.
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
        """Whether it stands for its mates in what is done for all of them at once."""
        return self.shard == self.mates[0]

    @property
    def reason(self) -> str:
        """Why its shard stands, for people."""
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
        """Under which the journal has a mark of it."""
        return StatementKey(self.gate.version, mark)


Places = Collection[tuple[str, SourcePosition]]
"""Sources, and positions of snapshots of theirs that read rows."""


def undone_upto(shard: ShardGates, executed: Collection[StatementKey]) -> int:
    """How many of the shard's first gates have rows that were taken back."""
    for index in reversed(shard.restarts):
        if StatementKey(shard.gates[index].version, UNDONE) in executed:
            return index
    return 0


def open_restart(shard: ShardGates, executed: Collection[StatementKey]) -> int | None:
    """Index of the first restart that is not settled; None when all are."""
    upto = undone_upto(shard, executed)
    for index in shard.restarts:
        version = shard.gates[index].version
        if index > upto and StatementKey(version, VOID) not in executed:
            return index
    return None


def snapshots_seen(
    decisions: Decisions,
    executed: Mapping[TargetTable, Collection[StatementKey]],
    rows: RowProgress,
) -> Places:
    """The snapshots that began again and read rows, as far as that was seen."""
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
                if any(rows.at(p).next_position == place for p in rows.partitions_of(name)):
                    found.add((name.source, place))
    return found


def restarts_of(
    target: TargetDecisions,
    executed: Collection[StatementKey],
    rows: RowProgress,
    bound: Mapping[str, Binding],
    seen: Places,
) -> dict[ShardId, Restart]:
    """The restarts of a target's shards that are not settled: the first one of each.

    Args:
        target: Everything decided for it.
        executed: What the journal has of it.
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
            removal = emptying(target, mates, bound) if left or len(mates) > 1 else None
        elif gate.reloads or (name.source, gate.position) in seen:
            stage = Stage.FOUND
        elif _is_behind(name, gate.position, rows) or _is_reloaded_later(shard, index):
            stage = Stage.UNPROVEN
        else:
            stage = Stage.AWAITED
        is_last = index == shard.restarts[-1]
        found[name] = Restart(
            target.target, name, gate, index, stage, removal, tuple(left), is_last, mates
        )
    return found


def _is_reloaded_later(shard: ShardGates, index: int) -> bool:
    """Whether a decision reloads the shard behind a restart: whatever came before goes then.

    Nobody needs to know what the snapshot read, and of an empty table no row would ever tell.
    """
    return any(shard.gates[later].reloads for later in shard.restarts if later > index)


def unsettled_reload(
    target: TargetDecisions, version: int, executed: Collection[StatementKey]
) -> int | None:
    """The first version up to that one whose reloads are not settled; None when all are."""
    return next(
        (at for at in target.reloads if at <= version and StatementKey(at, UNDONE) not in executed),
        None,
    )


def peers(
    restart: Restart, decisions: Decisions, rows: RowProgress
) -> dict[Partition, tuple[ShardId, Gate]]:
    """Where rows of a restart's snapshot can be: shard and gate, by partition.

    Of all shards of its source that were described anew at its position.
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
    """Whether a row behind the place was seen."""
    nexts = (rows.at(p).next_position for p in rows.partitions_of(name))
    return any(position is not None and position > place for position in nexts)
