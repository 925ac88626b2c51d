"""The state of a shard's first load, and the steps that change it. Pure; see docs/explanation.

A load belongs to one shard and to the decision that orders it. It stands at one of the shard's
gates, its *base*: chunks are read with the schema behind that gate, and the shard's stream is
applied up to that gate and no further. The state is stored in the target, and each step that a
chunk's rows depend on is stored in the transaction of these rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum

from shardmerge.schemas.model.names import ShardId, TargetTable
from shardmerge.schemas.model.position import SourcePosition

from .chunk_ranges import KeyRange, ranges
from .key_order import Boundary


class LoadKind(StrEnum):
    """How a shard is read."""

    CHUNKS = "chunks"
    """Each chunk at a moment of its own; rows go straight into the target."""
    SNAPSHOT = "snapshot"
    """The whole table at one position of its binlog, as one chunk, into a table beside the target,
    which is then copied into the target in one transaction. All parallel readers of such a chunk
    belong to one attempt, which is written as a whole or not at all."""


class ChunkState(StrEnum):
    """What became of a chunk."""

    PLANNED = "planned"
    RUNNING = "running"
    DONE = "done"


@dataclass(frozen=True, slots=True)
class Attempt:
    """Names a chunk as it was given out once. Whatever a reader brings later belongs to that.

    Attributes:
        chunk: The chunk's number.
        base: The base at which it was given out.
        number: See ``Chunk.attempt``.
    """

    chunk: int
    base: int
    number: int


@dataclass(frozen=True, slots=True)
class Chunk:
    """A part of a shard that is read in one transaction.

    Attributes:
        number: Number of the chunk in its load, from 0. It never changes, so a late reader is not
            taken for the reader of another chunk.
        range: Its keys.
        base: Version of the gate at which it was given out; of a chunk that is done, at which it
            was read. 0 while it is planned.
        rows: How many rows were read; rows that were filtered out do not count. 0 before it is
            done.
        size: About how many bytes these rows' values have.
        read_before: The binlog's end at a moment after the chunk's snapshot was taken. The chunk
            has nothing from there on. Of a ``SNAPSHOT`` it is the snapshot's own position: the
            chunk has everything from before it. None before the chunk is done.
        attempt: ``Load.attempts`` when it was given out. 0 while it is planned, and for a chunk
            that an earlier version gave out.
    """

    number: int
    range: KeyRange
    state: ChunkState = ChunkState.PLANNED
    base: int = 0
    rows: int = 0
    size: int = 0
    read_before: SourcePosition | None = None
    attempt: int = 0

    @property
    def given(self) -> Attempt:
        """The attempt for which the chunk is given out, or was done."""
        return Attempt(self.number, self.base, self.attempt)


@dataclass(frozen=True, slots=True)
class Load:
    """A shard's first load.

    Attributes:
        version: Of the decision that orders it.
        base: Version of the gate at which it stands.
        chunks: In the order of their numbers.
        planned_to: Up to which key there are chunks; None when there is none, or all are planned.
        is_planned: Whether the chunks cover the whole table.
        is_paused: Whether an operator wants no more chunks to be given out.
        dropped: Position at which the table was dropped: there is nothing more to read. None while
            the table exists.
        is_proven: Whether every schema change is known behind which a chunk could have been read.
        is_copied: Whether a snapshot's rows are in the target.
        has_rows: Whether this load, or one before it, may have written rows of the shard.
        attempts: How often chunks were given out, by this version.
        may_be_mixed: Whether ``CHUNKS`` of this load, or of one before it, may have written rows.
            It stays so when the chunks are planned again or cut anew, since their rows are in the
            target. An earlier version did not set it (``has_mixed_rows``).
        clears: Of a snapshot: whether the target may have rows of the shard from before it, which
            are deleted before the snapshot is copied (``begin_again``).
    """

    shard: ShardId
    target: TargetTable
    version: int
    kind: LoadKind
    base: int
    chunks: tuple[Chunk, ...] = ()
    planned_to: Boundary | None = None
    is_planned: bool = False
    is_paused: bool = False
    dropped: SourcePosition | None = None
    is_proven: bool = False
    is_copied: bool = False
    has_rows: bool = False
    attempts: int = 0
    may_be_mixed: bool = False
    clears: bool = False

    @property
    def is_void(self) -> bool:
        """Whether there is nothing more to read, because the table is gone."""
        return self.dropped is not None

    @property
    def position(self) -> SourcePosition | None:
        """The position of the snapshot, which has nothing from there on.

        None for ``CHUNKS``, and before the snapshot is taken. If the table was dropped, the
        snapshot counts as one of an empty table at the position of the DROP.
        """
        if self.kind is LoadKind.CHUNKS:
            return None
        if self.dropped is not None:
            return self.dropped
        return self.chunks[0].read_before if self.chunks else None

    @property
    def has_begun(self) -> bool:
        """Whether a part of the shard was given out, since the load stands at its base or before.

        A part that could not be written does not count.
        """
        return any(c.state is not ChunkState.PLANNED for c in self.chunks)

    @property
    def is_read(self) -> bool:
        """Whether every row was read."""
        return self.is_planned and all(c.state is ChunkState.DONE for c in self.chunks)

    @property
    def is_complete(self) -> bool:
        """Whether the shard's stream may go on."""
        if self.is_void:
            return True
        return self.is_proven and (self.kind is LoadKind.CHUNKS or self.is_copied)

    @property
    def has_mixed_rows(self) -> bool:
        """Whether rows that were read at different moments may have come into the target."""
        done = any(c.state is ChunkState.DONE for c in self.chunks)
        return self.may_be_mixed or (done and self.kind is LoadKind.CHUNKS)

    @property
    def running(self) -> tuple[Chunk, ...]:
        """The chunks that are given out."""
        return tuple(c for c in self.chunks if c.state is ChunkState.RUNNING)

    # --- plan -----------------------------------------------------------------

    def plan(self, *boundaries: Boundary) -> Load:
        """The whole table as chunks, cut at boundaries."""
        found = ranges(boundaries)
        return replace(self, chunks=tuple(map(Chunk, range(len(found)), found)), is_planned=True)

    def plan_next(self, end: Boundary | None) -> Load:
        """One more chunk, up to ``end``; None when it is the last one."""
        chunk = Chunk(len(self.chunks), KeyRange(self.planned_to, end))
        return replace(self, chunks=(*self.chunks, chunk), planned_to=end, is_planned=end is None)

    def split(self, number: int, boundary: Boundary) -> Load:
        """Cut a chunk that is too large for one transaction; both parts are planned.

        The second part is the load's last chunk, wherever its keys are.
        """
        left, right = self.chunks[number].range.cut(boundary)
        cut = self._with(Chunk(number, left))
        return replace(cut, chunks=(*cut.chunks, Chunk(len(cut.chunks), right)))

    def read_as(self, kind: LoadKind) -> Load:
        """Read the shard in this way (``load_rules.chosen``); nothing of it is read yet."""
        if kind is self.kind:
            return self
        return replace(self, kind=kind, chunks=(), planned_to=None, is_planned=False)

    def begin_again(self) -> Load:
        """Read the shard as a snapshot: chunks are not right any more.

        Chunks that were given out may have brought rows. So may the stream, up to the base.
        """
        may_have_rows = self.has_rows or self.base > self.version
        mixed = self.may_be_mixed or may_have_rows
        again = self.read_as(LoadKind.SNAPSHOT)
        return replace(again, clears=may_have_rows, may_be_mixed=mixed)

    # --- chunks ---------------------------------------------------------------

    def begin(self, number: int) -> Load:
        """Give a chunk out, to be read behind the base."""
        attempt, mixed = self.attempts + 1, self.may_be_mixed or self.kind is LoadKind.CHUNKS
        load = replace(self, has_rows=True, attempts=attempt, may_be_mixed=mixed)
        chunk = self.chunks[number]
        return load._with(replace(chunk, state=ChunkState.RUNNING, base=self.base, attempt=attempt))

    def accepts(self, attempt: Attempt) -> bool:
        """Whether what an attempt has read may be written now.

        The target asks this in the transaction of the rows, with the chunk's row locked. So an
        attempt writes nothing if the base has moved, the chunk was given out again, or another
        writer has taken over, since it was given out.
        """
        if self.is_void or attempt.base != self.base or attempt.chunk >= len(self.chunks):
            return False
        chunk = self.chunks[attempt.chunk]
        return chunk.state is ChunkState.RUNNING and chunk.given == attempt

    def finish(self, number: int, rows: int, size: int, read_before: SourcePosition) -> Load:
        """A chunk's rows are written; see ``Chunk``."""
        chunk = self.chunks[number]
        return self._with(
            replace(chunk, state=ChunkState.DONE, rows=rows, size=size, read_before=read_before)
        )

    def give_back(self, number: int) -> Load:
        """A chunk could not be read or written: it is planned again."""
        return self._with(_planned(self.chunks[number]))

    def give_all_back(self) -> Load:
        """Another writer takes over: it does not know what became of the chunks given out."""
        return self._each(lambda c: _planned(c) if c.state is ChunkState.RUNNING else c)

    # --- steps of the whole load ----------------------------------------------

    def move(
        self, base: int, changed: SourcePosition, *, anew: bool = False, new_key: bool = False
    ) -> Load:
        """Stand at a later gate.

        Chunks that are given out are refused from now on, and planned again. A chunk that is done
        is planned again if it may have been read behind the next schema change, which was not known
        then. What a snapshot has read so far is of no use: its next attempt has another position.

        Args:
            base: Version of the gate.
            changed: Position of the first gate behind the old base.
            anew: Whether a decision since the old base wants the table read again. Then all chunks
                that are done are planned again.
            new_key: Whether the primary key has changed. Then the chunks are cut anew.
        """
        moved = replace(self, base=base, is_proven=False, may_be_mixed=self.has_mixed_rows)
        if self.kind is LoadKind.SNAPSHOT or new_key:
            return replace(moved, chunks=(), planned_to=None, is_planned=False)

        def stays(chunk: Chunk) -> bool:
            before = chunk.read_before
            return not anew and before is not None and before <= changed

        return moved._each(lambda c: c if stays(c) else _planned(c))

    def end_void(self, base: int, dropped: SourcePosition) -> Load:
        """The table was dropped at a position: nothing is left to read."""
        return replace(self.give_all_back(), base=base, dropped=dropped)

    def proven(self) -> Load:
        """Every chunk was read before the next schema change (``load_rules.proves``)."""
        return replace(self, is_proven=True)

    def cleared(self) -> Load:
        """The rows from before the snapshot are deleted."""
        return replace(self, clears=False)

    def copied(self) -> Load:
        """The snapshot's rows are in the target."""
        return replace(self, is_copied=True)

    def pause(self) -> Load:
        """Give no more chunks out."""
        return replace(self, is_paused=True)

    def resume(self) -> Load:
        """Give chunks out again."""
        return replace(self, is_paused=False)

    def _with(self, chunk: Chunk) -> Load:
        before, after = self.chunks[: chunk.number], self.chunks[chunk.number + 1 :]
        return replace(self, chunks=(*before, chunk, *after))

    def _each(self, changed: Callable[[Chunk], Chunk]) -> Load:
        return replace(self, chunks=tuple(map(changed, self.chunks)))


def _planned(chunk: Chunk) -> Chunk:
    return Chunk(chunk.number, chunk.range)
