"""First loads in a table's properties: one property for each shard, with its latest load. Pure.

The property changes in the commit of what it says: when a chunk's rows are published, or when the
driver's step is stored. Each commit replaces a table's whole metadata, so it has to stay small. So
a load that is complete keeps one chunk, which stands for all of them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace

from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.records.plain import dump
from shardmerge.schemas.records.plain import load as from_bytes
from shardmerge.spark_sink.loading.chunk_ranges import KeyRange
from shardmerge.spark_sink.loading.load_state import Attempt, Chunk, ChunkState, Load, LoadKind
from shardmerge.spark_sink.planning.chunk_orders import ChunkResult


def load_key(pipeline: str, shard: ShardId) -> str:
    """The table property that holds a shard's load."""
    names = json.dumps([shard.source, shard.database, shard.table], ensure_ascii=False)
    return f"{_prefix(pipeline)}{names}"


def load_text(load: Load) -> str:
    """The property's value; equal loads give equal texts."""
    return dump(_folded(load)).decode()


def load_of(text: str) -> Load:
    """The load in a property's value.

    Raises:
        ContractError: It was not written by this version or an earlier one.
    """
    return from_bytes(Load, text.encode())


def loads_in(pipeline: str, properties: Mapping[str, str]) -> list[Load]:
    """The loads of a pipeline in a table's properties.

    Raises:
        ContractError: See ``load_of``.
    """
    prefix = _prefix(pipeline)
    return [load_of(text) for key, text in properties.items() if key.startswith(prefix)]


def latest_loads(of_control: list[Load], of_tables: list[Load]) -> list[Load]:
    """Each shard's latest load, by shard.

    Args:
        of_control: Stored before the target's table was there.
        of_tables: Stored in the target's tables. A load that is in both has gone on in these.
    """
    found: dict[ShardId, Load] = {}
    for load in (*of_control, *of_tables):
        before = found.get(load.shard)
        if before is None or before.version <= load.version:
            found[load.shard] = load
    return [found[shard] for shard in sorted(found)]


def stepped(stored: Load | None, before: Load | None, after: Load) -> Load:
    """What is stored after a step of the driver.

    The driver does not know yet of chunks that were finished a moment ago. So a chunk that the step
    does not change stays as it is stored.

    Args:
        stored: The shard's load in the property; None without one.
        before: The load as the driver knew it before the step; None for a new load.
        after: The load after the step.
    """
    if stored is None or before is None or stored.is_complete or stored.version != after.version:
        return after
    known = dict(enumerate(before.chunks))
    there = dict(enumerate(stored.chunks))
    chunks = (
        there.get(number, chunk) if known.get(number) == chunk else chunk
        for number, chunk in enumerate(after.chunks)
    )
    return replace(after, chunks=tuple(chunks))


def finished(
    stored: Load | None, given: Load, result: ChunkResult, attempt: Attempt
) -> Load | None:
    """The load to store with a chunk's rows; None when they must not be written.

    Args:
        stored: The shard's load in the property; None without one.
        given: The load as it was when the chunk was given out.
        result: Of the chunk, which is done.
        attempt: Which has read it.
    """
    assert result.read_before is not None
    if stored is None or not accepts(stored, given, attempt):
        return None
    return stored.finish(result.number, result.rows, result.size, result.read_before)


def accepts(stored: Load | None, given: Load, attempt: Attempt) -> bool:
    """Whether what an attempt has read is still wanted; see ``finished``."""
    return stored is not None and stored.version == given.version and stored.accepts(attempt)


def is_done(stored: Load | None, given: Load, attempt: Attempt) -> bool:
    """Whether an attempt's chunk is done by it, after the answer to a commit was lost."""
    if stored is None or stored.version != given.version or attempt.chunk >= len(stored.chunks):
        return False
    chunk = stored.chunks[attempt.chunk]
    return chunk.state is ChunkState.DONE and chunk.given == attempt


def _prefix(pipeline: str) -> str:
    return f"shardmerge.{pipeline}.load"


def _folded(load: Load) -> Load:
    """The load, with one chunk for all of them if it is complete."""
    if not load.is_complete or load.is_void or load.kind is LoadKind.SNAPSHOT:
        return load
    ends = [chunk.read_before for chunk in load.chunks if chunk.read_before is not None]
    one = Chunk(
        0,
        KeyRange(),
        ChunkState.DONE,
        load.base,
        sum(chunk.rows for chunk in load.chunks),
        sum(chunk.size for chunk in load.chunks),
        max(ends),
    )
    return replace(load, chunks=(one,))
