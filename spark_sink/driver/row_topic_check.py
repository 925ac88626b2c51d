"""Makes sure that every row topic is the one for which the offsets were stored."""

from __future__ import annotations

import time
from collections.abc import Callable

from shardmerge.schemas.model.errors import StackError
from shardmerge.spark_sink.kafka.intake import Intake
from shardmerge.spark_sink.kafka.row_topics import (
    RowTopic,
    gone_error,
    gone_topics,
    live_topics,
    topics_to_store,
)
from shardmerge.spark_sink.targets.interface import WriterState

GONE_S = 5.0
"""Seconds that Kafka must lack a topic before the sink ends: a broker may learn of it late."""


class RowTopicCheck:
    """Compares the row topics in Kafka with those that the target has stored.

    Args:
        intake: Tells which topics there are.
        control: Stores their ids and numbers of partitions.
        epoch: Of this writer.
        clock: Monotonic seconds.
    """

    def __init__(
        self,
        intake: Intake,
        control: WriterState,
        epoch: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._intake = intake
        self._control = control
        self._epoch = epoch
        self._clock = clock
        self._stored: dict[str, RowTopic] = {}
        self._open: set[str] = set()
        """Topics that are to be compared, or were and did not pass."""
        self._gone_since: dict[str, float] = {}

    def load(self) -> None:
        """Read what the target has stored; raises ``TargetError``."""
        self._stored = dict(self._control.row_topics())

    def compare(self) -> None:
        """Compare the topics of which there is news; store the topics that are new.

        Raises:
            ContractError: One is another topic than before, or has been gone for ``GONE_S``.
            StackError: One has been gone for less than that: nothing is done without it.
            TargetError: The target does not answer, or another writer took over.
        """
        self._open |= self._intake.described.take_news()
        if not self._open:
            return
        described = self._intake.described.row_topics
        there = {name: described[name] for name in self._open if name in described}
        live = live_topics(self._intake.decisions, self._open)
        live &= self._intake.watermarks.partitions.keys()
        if new := topics_to_store(self._stored, there, live):
            # This is done before the first offset in these topics is stored.
            self._control.keep_row_topics(self._epoch, new)
            self._stored |= new
        now, lacking = self._clock(), gone_topics(self._stored, there, live)
        self._gone_since = {name: self._gone_since.get(name, now) for name in lacking}
        for name, since in self._gone_since.items():
            if now - since >= GONE_S:
                raise gone_error(name, self._stored[name])
        if lacking:
            raise StackError(
                f"row topic {min(lacking)} is gone", hint="it is looked for again", code="SM-4102"
            )
        self._open.clear()
