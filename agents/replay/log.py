"""A schema-log folded again: by the worker's own fold, over rows in memory."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator

from shardmerge.agents.handling.effects import Effects, Fold, SourceRecord
from shardmerge.agents.handling.memory_rows import MemoryRows
from shardmerge.connectors.formats.stored_record import StoredRecord
from shardmerge.schemas.model.errors import ContractError


def in_time(partitions: Iterable[Iterable[StoredRecord]]) -> Iterator[StoredRecord]:
    """The records of several partitions as one sequence.

    A partition's own order is kept, and with it every target's, since a target lives in one
    partition. Among the partitions' next records the one with the earliest timestamp comes first,
    then by the partitions' given order: people read it as it happened, as far as clocks agree.
    Timestamps are stored with the records and nothing else counts, so equal records give the same
    sequence at any time, on any machine.
    """
    ahead: list[tuple[int, int, StoredRecord, Iterator[StoredRecord]]] = []
    for place, partition in enumerate(partitions):
        records = iter(partition)
        if (first := next(records, None)) is not None:
            ahead.append((first.timestamp_ms, place, first, records))
    heapq.heapify(ahead)
    while ahead:
        _, place, record, records = ahead[0]
        yield record
        if (following := next(records, None)) is None:
            heapq.heappop(ahead)
        else:
            heapq.heapreplace(ahead, (following.timestamp_ms, place, following, records))


class Refold:
    """One agent's fold over its records, from the beginning."""

    def __init__(self, fold: Fold) -> None:
        self._fold = fold
        self.rows = MemoryRows()

    def effects(self, record: StoredRecord) -> Effects:
        """What the record does; not performed yet, so that the rows are still those before it.

        Raises:
            ContractError: The record is none of this agent's. The message tells its place.
        """
        source = SourceRecord(
            record.topic, record.partition, record.offset, record.key, record.value
        )
        try:
            return self._fold(self.rows, source)
        except ContractError as error:
            if f"{record.topic}@{record.offset}" in error.message or record.place in error.message:
                raise
            raise ContractError(
                f"{record.place}: {error.message}", hint=error.hint, code=error.code
            ) from error


class OnePartition:
    """Checks that every key of the schema-log stays in one partition.

    A target's changes have the order of its partition; across two partitions they have no order.
    """

    def __init__(self) -> None:
        self._first: dict[bytes | None, StoredRecord] = {}

    def check(self, record: StoredRecord) -> None:
        """Look at the next record.

        Raises:
            ContractError: Another partition has a record of the same key.
        """
        first = self._first.setdefault(record.key, record)
        if first.partition != record.partition:
            key = (record.key or b"").decode("utf-8", "replace")
            raise ContractError(
                f"{key!r} has records in two partitions, {first.place} and {record.place}: their "
                "order is not known",
                hint="the order by key is lost: leave the number of the topic's partitions as "
                "it is, and let no other program write to it",
                code="SM-2110",
            )
