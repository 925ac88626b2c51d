"""What a window of a shared partition has, and records that a task need not fetch. Pure.

A *window* is ``[start, end)`` of a whole partition, below its stable end. The sink reads it before
it plans, and then looks only at the shards that are named there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from typing import NamedTuple, TypeAlias

from shardmerge.spark_sink.barrier.partitions import Partition
from shardmerge.spark_sink.rows.decoding.row_envelope import Names


class Window(NamedTuple):
    """What a window has.

    Attributes:
        end: The offset up to which it was read (exclusive): less than what was asked for if a
            transaction is still open below.
        names: The shards that have records there. None: a record does not say its shard, so any
            shard may have some.
    """

    end: int
    names: AbstractSet[Names] | None


class Kept(NamedTuple):
    """The committed records of a whole partition in ``[start, end)``, as ``Records`` has them."""

    start: int
    end: int
    offsets: list[int]
    values: list[bytes | None]


ReadWindows: TypeAlias = Callable[[Mapping[Partition, tuple[int, int]]], Mapping[Partition, Window]]
"""Whole partition → start and end of its window, to what the window has. Windows that are too large
to be read beforehand are left out.

Raises:
    ContractError: A window's start does not exist any more.
    StackError: Kafka cannot be read, or a schema of the records.
"""
