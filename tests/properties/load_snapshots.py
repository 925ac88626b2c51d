"""How ``load_world`` writes snapshots: attempts, their tables beside the target, copies."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from shardmerge.schemas.model.position import SourcePosition
from shardmerge.spark_sink.loading.load_state import Attempt, LoadKind

from .load_source import Image

if TYPE_CHECKING:
    from .load_sink import Sink

PIECE = 2
"""How many rows are written, or copied, in one transaction."""


@dataclass
class Reading:
    """A chunk, or a snapshot, that some process has read.

    Attributes:
        attempt: Of a snapshot: the table that it writes into; 0 before it has one.
        written: Of a snapshot: how many rows are in this table.
    """

    epoch: int
    load: int
    given: Attempt
    rows: tuple[Image, ...]
    columns: tuple[str, ...] | None
    is_keyed: bool
    position: SourcePosition
    read_before: SourcePosition
    attempt: int = 0
    written: int = 0


def new_attempt(world: Sink) -> int:
    """A table that no other attempt has."""
    return len(world.target.copied_to) + 1


def counts(world: Sink, reading: Reading) -> bool:
    """Whether the attempt is the latest one."""
    return reading.attempt == world.target.attempt


def stage(world: Sink, reading: Reading) -> bool:
    """One step of an attempt: it begins, writes some rows, or marks the chunk as done.

    Returns:
        Whether the attempt has ended.
    """
    target = world.target
    accepts = world.is_current(reading) and world.load.accepts(reading.given)
    if not reading.attempt:
        if not accepts:
            return True
        gate = world.gates.gates[world.base_index]
        if not world.has_schema(reading, gate):
            world.seen["schema"] += 1
            world.give_back(reading)
            return True
        reading.attempt = target.attempt = world.new_attempt()
        target.copied_to[reading.attempt] = 0
        # The tables of other attempts are dropped.
        target.staged = {reading.attempt: []}
        return False
    rows = world.images(reading)
    if reading.written < len(rows):
        if reading.attempt not in target.staged:
            world.seen["late"] += 1
            world.give_back(reading)
            return True
        target.staged[reading.attempt] += rows[reading.written : reading.written + PIECE]
        reading.written += PIECE
        return False
    if not accepts or not world.counts(reading):
        world.give_back(reading)
        return True
    # On a replica, too, the snapshot's position is known.
    world.load = world.load.finish(reading.given.chunk, len(rows), 0, reading.position)
    return True


def run_again(world: Sink) -> bool:
    """A process is taken for dead and goes on; another one gets its task."""
    found = [
        one for one in world.readings if world.is_current(one) and world.load.accepts(one.given)
    ]
    if not found or world.load.kind is LoadKind.CHUNKS:
        return False
    one = world.random.choice(found)
    state, at = world.source.states[world.source.replica], world.place_of_server
    world.readings.append(
        replace(
            one,
            rows=state.rows,
            columns=state.columns,
            is_keyed=state.is_keyed,
            position=at,
            attempt=0,
            written=0,
        )
    )
    world.seen["again"] += 1
    return True


def copy(world: Sink) -> bool:
    """A piece of a snapshot's rows goes into the target, and it is noted how far."""
    load, target = world.load, world.target
    if load.kind is not LoadKind.SNAPSHOT or load.is_copied or load.is_void or not load.is_proven:
        return False
    if load.clears:
        world.empty()
        if world.random.random() < 0.2:
            # The driver dies before it has noted that.
            return world.crash()
        world.load = load.cleared()
        return True
    begin = target.copied_to[target.attempt]
    piece = target.staged[target.attempt][begin : begin + PIECE]
    if not piece:
        world.load = load.copied()
        return True
    is_keyed = bool(world.gates.gates[world.base_index].key)
    for image in piece:
        target.put(image, is_keyed=is_keyed)
    world.note_copied(begin + len(piece))
    return True
