"""Asks Kafka for the barriers of row ends that were read, and may wait for the answer later.

Theory of operation. Kafka nearly always answers that all schema changes and decisions are read
already, so the ends are safe. So the driver may write the rows while it waits for the answer, in a
transaction that it commits only afterwards (``driver.rows_ahead``). That is as safe as to ask
first. The barrier is the same, it is read after the ends as always, and no row is visible before it
is settled.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from shardmerge.spark_sink.barrier.barrier import Barrier, Barriers, is_settled
from shardmerge.spark_sink.barrier.decisions import Decisions
from shardmerge.spark_sink.barrier.partitions import Partition

from .offsets import DescribedTopics, OffsetReader
from .row_topics import RowTopic

BySource = Mapping[str, Mapping[Partition, int]]
"""Source → its row partitions that have grown → their ends."""


@dataclass(frozen=True, slots=True)
class Question:
    """What Kafka is asked.

    Attributes:
        by_source: The ends that it is about.
        answers: Waits for the answer: high watermarks and topics. Raises ``StackError``.
    """

    by_source: BySource
    answers: Callable[[], tuple[Mapping[Partition, int], Mapping[str, RowTopic]]]

    @property
    def ends(self) -> dict[Partition, int]:
        """The ends of all sources together."""
        return {p: end for ends in self.by_source.values() for p, end in ends.items()}

    @property
    def topics(self) -> set[str]:
        """The row topics that are described with the answer."""
        return topics_of(self.by_source)


def topics_of(by_source: BySource) -> set[str]:
    """The row topics of ends."""
    return {partition.topic for ends in by_source.values() for partition in ends}


class BarrierQuestions:
    """Asks for the watermarks behind row ends, and makes barriers of them.

    With the same question it asks which topics these are now: one may have been made anew.

    Args:
        offsets: Asks Kafka.
        ddl: The ddl topic.
        barriers: Take the barriers.
        described: Take what the topics are.

    Attributes:
        awaited: The question whose answer was not taken yet.
    """

    def __init__(
        self, offsets: OffsetReader, ddl: Partition, barriers: Barriers, described: DescribedTopics
    ) -> None:
        self._offsets = offsets
        self._ddl = ddl
        self._barriers = barriers
        self._described = described
        self._has_failed = False
        self.awaited: Question | None = None

    def are_foreseen(self, by_source: BySource, decisions: Decisions) -> bool:
        """Whether ends are safe if Kafka has no more schema changes and decisions than were read.

        False while a barrier is not settled, and after a question that Kafka did not answer.
        """
        if self._has_failed or self._barriers.settling:
            return False
        tails = self._barriers.tails
        return all(
            source in tails
            and is_settled(Barrier(source, tails[source].read_to, {}), tails[source], decisions, 0)
            for source in by_source
        )

    def ask(self, by_source: BySource, *, awaits: bool) -> None:
        """Ask for the barriers of ends that were just read.

        Args:
            by_source: The ends.
            awaits: Whether to wait for the answer, and take it.

        Raises:
            StackError: Kafka does not answer.
            BarrierRegressed: A schema-change topic ends earlier than before.
        """
        asked = [self._ddl, *(Partition(name, 0) for name in by_source)], topics_of(by_source)
        if awaits:
            self._take(
                Question(by_source, partial(self._offsets.high_watermarks_and_topics, *asked))
            )
        else:
            self.awaited = Question(by_source, self._offsets.begin_asking(*asked))

    def drop(self) -> None:
        """Forget an answer that nobody has taken: the ends are read anew."""
        self.awaited = None

    def take(self) -> None:
        """Wait for the awaited answer, and take it; see ``ask`` for the errors."""
        if (question := self.awaited) is None:
            return
        self.awaited, self._has_failed = None, True
        self._take(question)

    def _take(self, question: Question) -> None:
        watermarks, found = question.answers()
        self._has_failed = False
        self._described.take(question.topics, found)
        for source, ends in question.by_source.items():
            watermark = watermarks[Partition(source, 0)]
            self._barriers.take(Barrier(source, watermark, ends, watermarks[self._ddl]))

    def mark_seen(self, source: str) -> Barrier:
        """The barrier of the schema changes before a mark that was just seen in Kafka.

        When it is settled, every schema change before the mark is decided.

        Raises:
            StackError: Kafka does not answer.
        """
        own = Partition(source, 0)
        asked = self._offsets.high_watermarks([self._ddl, own])
        return Barrier(source, asked[own], {}, asked[self._ddl])
