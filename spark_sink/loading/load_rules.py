"""The rules by which a load, its shard's stream and the target's statements wait. Pure.

Theory of operation. For a key of a shard the binlog behind the load's start has events e1 < e2 < …,
each with the whole row. A chunk that is read at position R gives the key's state after the events
up to R. Let the stream be applied up to A when the chunk is written. The key is right in the end if
A <= R: the chunk includes the events up to A, and the later ones are still to come. So there is one
rule for chunks, and everything here serves it:

    **A chunk is not written if the stream has passed the position at which it was read.**

1. The stream stands at the load's base until the load is complete (``stream_stop``).
2. Chunks are given out only when the source has shown that it has committed everything up to the
   base (``may_give_out``). So they are read behind the base. The stream may still be before it.
3. The base moves on when the next gate is known (``next_base``). From then on no chunk of an
   earlier base is written (``Load.accepts``), and the stream goes on to the new base.
4. If a chunk's table does not have the schema of the base, the chunk is not written
   (``table_shape``). It was read behind the next gate, which will become known. Some changes cannot
   be seen in a table: it was dropped and created again, or two columns have changed their names. So
   after its snapshot each chunk notes the binlog's end. The load is complete when all schema
   changes up to these ends are known (``proves``). A chunk that may have been read behind one of
   these changes is read again (``moved``).
5. A statement can wait for a shard's rows before a gate. It also waits until the load's base is
   that gate or a later one (``may_have_rows_before``): chunks of an earlier base still bring such
   rows.

No wait is circular. A base moves when a gate is known, and waits for nothing else. The stream up to
the base waits for statements of lower versions, as always. Chunks at the base wait for the
statements that rows behind the base wait for. None of these waits for the load to be complete,
except through its base, which has moved already.

Rows that were read at different moments are right only in the end. Where that is not enough, the
whole table is read at one position S (``LoadKind.SNAPSHOT``), and rows of the stream before S are
skipped (``passed_over_to``): see ``kind_of``. A unique key that the target gets while chunks are
loaded waits until the stream has passed the last chunk (``may_have_duplicates``).

If a shard loses its primary key while its chunks are read, two ends are right. Chunks that were all
read before that have nothing which the stream brings again, so the load is complete (``moved``).
Otherwise the load begins again as a snapshot, and the rows that chunks and the stream have brought
are deleted before it is copied (``Load.begin_again``).

Whether the target has another unique key is known when its table is there. Until then a load counts
as a snapshot, so rows before its base are skipped (``chosen``). That is right for chunks, too: they
are read behind the base, so they include what these rows did.
"""

from __future__ import annotations

from collections.abc import Iterable

from shardmerge.schemas.model.origin import origin_part
from shardmerge.schemas.model.position import SourcePosition
from shardmerge.spark_sink.barrier.shard_gates import Gate, ShardGates

from .load_state import Load, LoadKind


def kind_of(
    *, has_key: bool, has_other_unique_key: bool, applies_every_operation: bool
) -> LoadKind:
    """How a shard is to be read.

    Args:
        has_key: Whether the shard has a primary key. Without one, an event that a chunk already
            includes would be applied twice.
        has_other_unique_key: Whether the target's table has a unique key besides its primary key. A
            value that moved to another row could be in two chunks, or in a chunk and in an older
            event.
        applies_every_operation: Whether the route applies updates, deletes, inserts and TRUNCATE.
            If it ignores one of them, what the target must keep depends on the moment from which on
            it is ignored. That moment must be the same for all rows.
    """
    is_simple = has_key and not has_other_unique_key and applies_every_operation
    return LoadKind.CHUNKS if is_simple else LoadKind.SNAPSHOT


def chosen(
    gates: ShardGates, load: Load, *, has_other_unique_key: bool, applies_every_operation: bool
) -> Load:
    """The load, to be read in the way that is right for it.

    Nothing changes once a part of the shard was given out. A load that moved while its shard had no
    primary key stays a snapshot: rows of the stream from before the key would be written twice.
    If chunks are not right any more, the load begins again as a snapshot.

    Args:
        gates: Of the shard.
        load: Its load, at a base whose rows the target's table can take.
        has_other_unique_key: See ``kind_of``.
        applies_every_operation: See ``kind_of``.
    """
    if load.has_begun:
        return load
    passed = gates.gates[gates.upto(load.version) - 1 : base_index(gates, load) + 1]
    kind = kind_of(
        has_key=all(has_own_key(gate) for gate in passed),
        has_other_unique_key=has_other_unique_key,
        applies_every_operation=applies_every_operation,
    )
    if kind is LoadKind.SNAPSHOT and load.kind is LoadKind.CHUNKS:
        return load.begin_again()
    return load.read_as(kind)


def has_own_key(gate: Gate) -> bool:
    """Whether the shard itself has a primary key behind a gate; origin columns do not count."""
    own = {c.column.name.lower() for c in gate.columns if origin_part(c.id) is None}
    return any(name.lower() in own for name in gate.key)


def base_index(gates: ShardGates, load: Load) -> int:
    """Index of the gate at which the load stands."""
    return gates.upto(load.base) - 1


def next_base(gates: ShardGates, load: Load, first_blocked: int) -> int | None:
    """Index of the gate to which the load moves now; None when it stays.

    It moves to the last gate that rows can reach. That is the first gate that they may not pass, or
    the last gate of all. It skips the gates between: there the table no longer has the schema that
    chunks would need.

    Args:
        gates: Of the shard.
        load: Its load.
        first_blocked: Index of the first gate that rows may not pass, for any reason but the load
            (``ShardGates.first_blocked``, ``gates.first_stop``); the number of gates when they may
            pass all.
    """
    if load.is_complete or load.is_proven:
        return None
    reachable = min(first_blocked, len(gates.gates) - 1)
    return reachable if reachable > base_index(gates, load) else None


def moved(gates: ShardGates, load: Load, index: int, reread: Iterable[int]) -> Load:
    """The load at a later gate, or complete at its present one.

    If all chunks were read before the first of the gates, nothing of them has to wait for it.

    Args:
        gates: Of the shard.
        load: Its load, at an earlier gate.
        index: Of the gate, as ``next_base`` gives it.
        reread: Versions of the decisions that order the shard to be loaded because a schema change
            changed rows without row events.
    """
    passed = gates.gates[base_index(gates, load) + 1 : index + 1]
    gate = gates.gates[index]
    # If a table was dropped and created again, all of its rows are in the stream.
    dropped = [some for some in passed if not some.live]
    if dropped:
        # Rows of the table that was created again can need a load of their own (``next_order``).
        return load.end_void(dropped[-1].version, dropped[0].position)
    last = passed[-1].version
    changed = passed[0].position
    anew = any(load.base < version <= last for version in reread)
    if load.kind is LoadKind.CHUNKS and not anew and proves(gates, load, changed):
        return load.proven()
    if load.kind is LoadKind.CHUNKS and not all(map(has_own_key, passed)):
        # From here on rows of the stream are skipped. Those from behind the first of these gates
        # would miss rows that no chunk has brought, or be applied twice.
        load = load.begin_again()
    first = base_index(gates, load) + 1
    new_key = any(first <= changed <= index for changed in gates.key_changes)
    return load.move(gate.version, changed, anew=anew, new_key=new_key)


def proves(gates: ShardGates, load: Load, known_to: SourcePosition) -> bool:
    """Whether it is known that every chunk was read before the shard's next schema change.

    Args:
        gates: Of the shard.
        load: Its load.
        known_to: Every schema change of the source before this position is decided and known. A
            record from behind a position, such as that of a mark in the signal table, shows that
            the connector has passed the position.
    """
    if not load.is_read or load.is_void:
        return False
    after = gates.gates[base_index(gates, load) + 1 :]
    bound = min(known_to, after[0].position) if after else known_to
    return all(c.read_before is not None and c.read_before <= bound for c in load.chunks)


def next_order(load: Load, orders: Iterable[int]) -> int | None:
    """The version of the next decision that orders another load; None when there is none.

    A load that is not complete does itself what a later decision orders (``moved``). After a
    complete load the next one begins. Its base is the gate of the decision that orders it. The
    stream waits at this gate until the next load has begun (``stream_stop``).

    Args:
        load: The shard's latest load.
        orders: Versions of the decisions that order the shard to be loaded.
    """
    return min((version for version in orders if version > load.base), default=None)


def stream_stop(gates: ShardGates, load: Load, orders: Iterable[int]) -> int | None:
    """Index of the gate behind which the shard's rows wait for a load; None when they do not.

    Args:
        gates: Of the shard.
        load: Its latest load.
        orders: See ``next_order``.
    """
    if not load.is_complete:
        return base_index(gates, load)
    version = next_order(load, orders)
    return None if version is None else gates.upto(version) - 1


def may_give_out(
    gates: ShardGates,
    load: Load,
    first_blocked: int,
    *,
    source_has_base: bool,
) -> bool:
    """Whether chunks may be given out.

    Args:
        gates: Of the shard.
        load: Its load.
        first_blocked: As for ``next_base``.
        source_has_base: Whether the server that is read has committed everything in the binlog up
            to the base, the schema change of the base's gate included. A replica may be behind. A
            server with semisynchronous replication can show a transaction to its replicas, and so
            to the connector, before it commits it.
    """
    if load.is_complete or load.is_paused:
        return False
    if first_blocked <= base_index(gates, load):
        return False
    if next_base(gates, load, first_blocked) is not None:
        return False
    return source_has_base


def may_have_rows_before(gates: ShardGates, load: Load, place: SourcePosition) -> bool:
    """Whether the load may still bring rows with a schema from before a gate's position."""
    if load.is_complete:
        return False
    return gates.gates[base_index(gates, load)].position < place


def may_have_duplicates(load: Load, applied_to: SourcePosition, read_to: SourcePosition) -> bool:
    """Whether two rows of the shard in the target may share a value that is unique on the shard.

    While this is so, a statement that adds a unique key waits. Nothing waits for such a statement
    except other statements about the same key, so this wait is not circular, either.

    A load that has ended because its table was dropped counts like others. Its chunks may even have
    been read behind the DROP: the table that was made again can have the same columns. Nor does it
    matter whether the chunks were to be read again, or cut anew, before the DROP.

    Args:
        load: The shard's.
        applied_to: Every row of the shard's stream before this position is applied.
        read_to: Everything that chunks have brought was read before this position, whatever became
            of these chunks.
    """
    if not load.is_complete:
        return load.has_mixed_rows or load.kind is LoadKind.CHUNKS
    return load.has_mixed_rows and read_to > applied_to


def passed_over_to(gates: ShardGates, load: Load) -> SourcePosition | None:
    """The position before which rows of the stream are skipped; None when none are.

    A snapshot includes all rows from before its position. While there is no snapshot, the stream
    stands at the base, and the snapshot will be taken behind the base.
    """
    if load.kind is LoadKind.CHUNKS:
        return None
    if load.is_complete:
        return load.position
    return gates.gates[base_index(gates, load)].position
