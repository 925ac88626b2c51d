"""Makes tasks out of the ranges that may be applied now. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from shardmerge.schemas.model.names import ShardId, TargetTable
from shardmerge.schemas.records.decisions import Binding
from shardmerge.spark_sink.barrier.decisions import Decisions
from shardmerge.spark_sink.barrier.gates import Stop
from shardmerge.spark_sink.barrier.partitions import Partition, Stream
from shardmerge.spark_sink.barrier.restarts import CHUNK, KEYLESS_CHUNK, Restart
from shardmerge.spark_sink.barrier.statements import bindings

from .ordered_partitions import closed_ranges
from .ranges import RangeTask, ShardStream
from .readings import OrderedReading, Reading, ordered_readings, readings, share_fairly
from .shard_streams import shard_stream
from .sink_state import SinkState

_UNDOING = 1 << 40
"""Readings with this number or a higher one take rows back."""


class RangeTasks:
    """Makes the tasks of a plan. They share the streams of shards and the bindings of targets.

    Args:
        decisions: Everything decided, as far as it was read.
        state: Everything else that a plan depends on.
    """

    def __init__(self, decisions: Decisions, state: SinkState) -> None:
        self._decisions = decisions
        self._state = state
        self._streams: dict[ShardId, ShardStream] = {}
        self._bindings: dict[TargetTable, Mapping[str, Binding]] = {}

    def applying(
        self, partition: Partition, offsets: tuple[int, int], stop: Stop | None, reading: int
    ) -> RangeTask:
        """The task that applies a range of a shard's partition.

        Args:
            partition: Of the shard.
            offsets: The first offset, and the one behind the last.
            stop: The first gate that the shard's rows may not pass.
            reading: The number of the reading; ranges with one number are read together.
        """
        [(target, shard)] = self._decisions.streams[partition.stream]
        start, end = offsets
        if shard not in self._streams:
            known = self._decisions.targets[target]
            self._streams[shard] = shard_stream(known, shard, stop, self._state)
        closure = self._state.ordered.get(partition.stream)
        return RangeTask(
            topic=partition.topic,
            partition=partition.number,
            start_offset=start,
            end_offset=end,
            stream=self._streams[shard],
            bindings=self._bound(target),
            writer_epoch=self._state.writer_epoch,
            reading=reading,
            closure=closure.of(partition) if closure is not None else None,
            stored_offset=self._state.rows.stored(partition),
        )

    def undoing(self, restart: Restart) -> list[RangeTask]:
        """The tasks that take back the last chunk of each partition of a restarted shard."""
        target, state = self._decisions.targets[restart.target], self._state
        load = state.loads.get(restart.shard)
        if load is not None and load.version == restart.gate.version:
            # The restart itself ordered the load. What the load passes over was applied before.
            places = {n: at for n, at in state.passed_over.items() if n != restart.shard}
            state = replace(state, passed_over=places)
        stream = shard_stream(target, restart.shard, None, state, undoes=True)
        size = CHUNK if all(segment.key for segment in stream.segments) else KEYLESS_CHUNK
        return [
            RangeTask(
                topic=partition.topic,
                partition=partition.number,
                start_offset=max(0, end - size),
                end_offset=end,
                stream=stream,
                bindings=self._bound(restart.target),
                writer_epoch=self._state.writer_epoch,
                reading=_UNDOING + restart.index,
                stored_offset=self._state.rows.stored(partition),
            )
            for partition, end in restart.left
        ]

    def _bound(self, target: TargetTable) -> Mapping[str, Binding]:
        if target not in self._bindings:
            executed = self._state.executed.get(target, ())
            self._bindings[target] = bindings(self._decisions.targets[target], executed)
        return self._bindings[target]


def shared_out(
    available: Mapping[Partition, tuple[int, int]],
    ordered: Mapping[Stream, Mapping[Partition, tuple[int, int]]],
    state: SinkState,
    max_records: int,
) -> Iterator[tuple[int, dict[Partition, tuple[int, int]]]]:
    """The number of each reading, and its ranges.

    Args:
        available: Partition of a stream that is not ordered → start and end of what may be read.
        ordered: The same for the partitions of ordered streams.
        state: See ``plan``.
        max_records: See ``plan``.
    """
    closed = {s: closed_ranges(state.ordered[s], ranges) for s, ranges in ordered.items()}
    found: dict[tuple[Partition, int], Reading | OrderedReading] = {
        **readings(available),
        **ordered_readings({s: ranges for s, ranges in closed.items() if ranges}),
    }
    shares = share_fairly({key: reading.size for key, reading in found.items()}, max_records)
    for key, share in shares.items():
        yield key[1], found[key].first(share)
