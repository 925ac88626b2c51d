"""Tells with each fetched record from which offset on nothing stands before it.

A record of a transaction follows the marker of the transaction before. So an agent sees a gap in
the offsets, and has to know whether the gap holds a record (``delivery``). The consumer that
brought the record has read the gap already, as part of its fetches: what it took from them, and
what it left out, is all that is there. To read the gap a second time cost an answer of the broker
per schema change that came alone, and a consumer per source.

What is told is a fact about the log, whichever consumer found it out: no committed record stands
from ``empty_since`` up to the record. A seek breaks the chain, since the next fetch then begins at
another offset than the one where the last fetch ended.
"""

from __future__ import annotations

from typing import Any

import aiokafka.consumer.fetcher
from aiokafka import TopicPartition
from aiokafka.consumer.fetcher import PartitionRecords


class FetchedRecords(PartitionRecords):  # type: ignore[misc]
    """The records of one partition in an answer to a fetch; each one has ``empty_since``.

    Args:
        tp: The partition.
        records: The answer's batches.
        aborted_transactions: Those whose records do not count.
        fetch_offset: The offset from which the fetch read.
        options: Of aiokafka's class.
    """

    _passed: dict[TopicPartition, tuple[int, int]] = {}  # noqa: RUF012 - of all consumers
    """Where the last answer about a partition ended, behind its last record: no record stands
    from the first offset up to the second one."""

    def __init__(
        self,
        tp: TopicPartition,
        records: Any,
        aborted_transactions: Any,
        fetch_offset: int,
        *options: Any,
    ) -> None:
        super().__init__(tp, records, aborted_transactions, fetch_offset, *options)
        since, until = self._passed.get(tp, (fetch_offset, fetch_offset))
        self._empty_since = since if until == fetch_offset else fetch_offset

    def __next__(self) -> Any:
        try:
            return super().__next__()
        except StopIteration:
            self._passed[self._tp] = (self._empty_since, self.next_fetch_offset)
            raise

    def _consumer_record(self, tp: TopicPartition, record: Any) -> Any:
        made = super()._consumer_record(tp, record)
        made.empty_since = self._empty_since
        self._empty_since = record.offset + 1
        return made


def tell_empty_offsets() -> None:
    """Have the consumers of this process read their answers as ``FetchedRecords``."""
    aiokafka.consumer.fetcher.PartitionRecords = FetchedRecords
