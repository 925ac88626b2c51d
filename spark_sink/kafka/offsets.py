"""Asks Kafka about many topics at once: their ids, their partitions, and where these end."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager

from confluent_kafka import (
    Consumer,
    IsolationLevel,
    KafkaError,
    KafkaException,
    TopicCollection,
    TopicPartition,
    Uuid,
)
from confluent_kafka.admin import OffsetSpec, TopicDescription

from shardmerge.connectors.access.kafka import admin_client, assigned_consumer, client_error
from shardmerge.connectors.event_log import logger
from shardmerge.connectors.kafka.client_offsets import valid_offset
from shardmerge.connectors.kafka.partition_offsets import partition_ends
from shardmerge.connectors.kafka.silence import Silence
from shardmerge.schemas.model.errors import StackError
from shardmerge.schemas.pipeline.settings import Kafka
from shardmerge.spark_sink.barrier.partitions import Partition

from .row_topics import RowTopic

log = logger(__name__)

_REQUEST_TIMEOUT_S = 5.0
_AHEAD_TIMEOUT_S = 1.0
"""Longest wait for an answer that is taken later: the target may keep rows locked meanwhile."""
_CHUNK = 1_000
_DESCRIBE_S = 5.0
"""Seconds after which the topics of an unchanged list are described again. A topic whose rows are
about to be applied is described just before (``identify``): if it was made anew between two lists,
only its id shows that."""
LIST_SHARE, _DESCRIBE_SHARE = 20, 50
"""A question about topics is repeated only after this many times the time that its answer took,
unless there is a reason: there may be thousands of topics. The list shows topics whose first rows
wait."""


class OffsetReader:
    """Answers where partitions end. A query that fails raises, so nothing advances."""

    def __init__(self, kafka: Kafka) -> None:
        self._kafka = kafka
        self._clients = _Clients(kafka)
        self._silence = Silence()

    def partitions(self, topics: Collection[str]) -> dict[str, int]:
        """Topic → number of its partitions; only topics that exist.

        Raises:
            StackError: Kafka does not answer.
        """
        with self._renewing():
            try:
                metadata = self._clients.admin.list_topics(timeout=_REQUEST_TIMEOUT_S).topics
            except KafkaException as error:
                raise client_error(self._kafka, error) from error
        found = {}
        for topic in topics:
            known = metadata.get(topic)
            if known is None:
                continue
            if known.error is not None:
                raise StackError(
                    f"the metadata of topic {topic}: {known.error.str()}", code="SM-4101"
                )
            found[topic] = len(known.partitions)
        return found

    def described(self, topics: Collection[str]) -> dict[str, RowTopic]:
        """Topic → its id and number of partitions; only topics that exist.

        Raises:
            StackError: Kafka does not answer.
        """
        with self._renewing():
            return self._asked_topics(topics)()

    def high_watermarks(self, partitions: Iterable[Partition]) -> dict[Partition, int]:
        """Whole partition → end offset, open transactions included (read uncommitted, exclusive).

        Raises:
            StackError: Kafka does not answer for one of them.
        """
        with self._renewing():
            return self._ends(self._clients.uncommitted, partitions)

    def stable_ends(self, partitions: Iterable[Partition]) -> dict[Partition, int]:
        """Whole partition → end offset of what is readable (read committed, exclusive).

        Raises:
            StackError: Kafka does not answer for one of them.
        """
        with self._renewing():
            return self._ends(self._clients.committed, partitions)

    def both_ends(
        self, partitions: Iterable[Partition], readable: Iterable[Partition]
    ) -> tuple[dict[Partition, int], dict[Partition, int]]:
        """``high_watermarks`` of partitions, and then ``stable_ends`` of readable ones.

        Raises:
            StackError: Kafka does not answer for one of them.
        """
        return self.high_watermarks(partitions), self.stable_ends(readable)

    def high_watermarks_and_topics(
        self, partitions: Iterable[Partition], topics: Collection[str]
    ) -> tuple[dict[Partition, int], dict[str, RowTopic]]:
        """``high_watermarks`` of partitions, and topics ``described``, asked at once.

        Raises:
            StackError: Kafka does not answer for one of them.
        """
        with self._renewing():
            described = self._asked_topics(topics)
            return self._ends(self._clients.uncommitted, partitions), described()

    def begin_asking(
        self, partitions: Iterable[Partition], topics: Collection[str]
    ) -> Callable[[], tuple[dict[Partition, int], dict[str, RowTopic]]]:
        """``high_watermarks_and_topics``, but the result waits for the answers.

        librdkafka's admin client asks. Its answer about ends comes later than a consumer's, but
        nothing here waits for it meanwhile.

        Raises:
            StackError: Kafka does not answer; the result may raise it.
        """
        described = self._asked_topics(topics, _AHEAD_TIMEOUT_S)
        ends = self._asked_ends(partitions, _AHEAD_TIMEOUT_S)

        def answers() -> tuple[dict[Partition, int], dict[str, RowTopic]]:
            with self._renewing():
                return ends(), described()

        return answers

    def _asked_topics(
        self, topics: Collection[str], timeout_s: float = _REQUEST_TIMEOUT_S
    ) -> Callable[[], dict[str, RowTopic]]:
        """Ask for descriptions; the result waits for the answers."""
        names, asked = sorted(topics), dict[str, Future[TopicDescription]]()
        admin = self._clients.admin
        try:
            for first in range(0, len(names), _CHUNK):
                chunk = TopicCollection(names[first : first + _CHUNK])
                asked |= admin.describe_topics(chunk, request_timeout=timeout_s)
        except KafkaException as error:
            raise client_error(self._kafka, error) from error
        return lambda: self._described(asked)

    def _described(self, asked: Mapping[str, Future[TopicDescription]]) -> dict[str, RowTopic]:
        found = {}
        try:
            for name, future in asked.items():
                try:
                    topic = future.result()
                except KafkaException as error:
                    if (told := error.args[0]).code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
                        continue
                    raise StackError(
                        f"the metadata of topic {name}: {told.str()}", code="SM-4101"
                    ) from error
                found[name] = RowTopic(_topic_id(topic.topic_id), len(topic.partitions))
        except KafkaException as error:
            raise client_error(self._kafka, error) from error
        return found

    def _asked_ends(
        self, partitions: Iterable[Partition], timeout_s: float
    ) -> Callable[[], dict[Partition, int]]:
        """Ask for high watermarks; the result waits for the answers."""
        latest = OffsetSpec.latest()
        places = [(partition.topic, partition.number) for partition in partitions]
        asked = {TopicPartition(topic, number): latest for topic, number in places}
        open_too = IsolationLevel.READ_UNCOMMITTED
        try:
            futures = self._clients.admin.list_offsets(
                asked, isolation_level=open_too, request_timeout=timeout_s
            )
        except KafkaException as error:
            raise _no_ends(places, error) from error

        def answered() -> dict[Partition, int]:
            found = {}
            try:
                for told, future in futures.items():
                    end = valid_offset(future.result().offset, told.topic, told.partition)
                    found[Partition(told.topic, told.partition)] = end
            except KafkaException as error:
                raise _no_ends(places, error) from error
            return found

        return answered

    def _ends(self, client: Consumer, partitions: Iterable[Partition]) -> dict[Partition, int]:
        asked = [(partition.topic, partition.number) for partition in partitions]
        try:
            ends = partition_ends(client, asked, _REQUEST_TIMEOUT_S)
        except KafkaException as error:
            raise _no_ends(asked, error) from error
        return {Partition(topic, number): end for (topic, number), end in ends.items()}

    @contextmanager
    def _renewing(self) -> Iterator[None]:
        """Ask a question; make new clients when none was answered for long."""
        try:
            yield
        except StackError:
            if self._silence.is_too_long():
                log.warning("kafka_client_renewed", client="offsets")
                self._clients = _Clients(self._kafka)
            raise
        self._silence.ends()


class _Clients:
    """Of one broker connection each. They do not log: a query that fails raises an error.

    Attributes:
        admin: Asks for topics.
        uncommitted: Asks for ends, open transactions included.
        committed: Asks for ends of what can be read.
    """

    def __init__(self, kafka: Kafka) -> None:
        name = "shardmerge-sink-offsets"
        # Questions are small packets: Nagle's algorithm would hold the second of two back.
        self.admin = admin_client(kafka, client_id=name, socket_nagle_disable=True)
        own = {"client.id": name, "log_level": 0, "socket.nagle.disable": True}
        self.uncommitted = assigned_consumer(
            kafka, name, {**own, "isolation.level": "read_uncommitted"}
        )
        self.committed = assigned_consumer(kafka, name, own)


def _no_ends(asked: Collection[tuple[str, int]], error: KafkaException) -> StackError:
    names = sorted(f"{topic}/{number}" for topic, number in asked)
    others = f" and {len(names) - 1} others" if len(names) > 1 else ""
    return StackError(
        f"Kafka does not tell the end of {names[0]}{others}: {error.args[0].str()}",
        hint="see the brokers' logs",
        code="SM-4101",
    )


def _topic_id(told: Uuid | None) -> str:
    """A topic's id as text; "" from a broker before Kafka 2.8, which has no topic ids."""
    if told is None:
        return ""
    halves = (told.get_most_significant_bits(), told.get_least_significant_bits())
    return str(told) if any(halves) else ""


class DescribedTopics:
    """The row topics, described as often as it is worth it.

    Attributes:
        row_topics: The row topics that exist, as described last.
        news: Names that are to be compared: described anew, listed for the first time, or gone.
            Whoever compares them takes them out (``take_news``).
    """

    def __init__(self, offsets: OffsetReader) -> None:
        self.row_topics: dict[str, RowTopic] = {}
        self.news: set[str] = set()
        self._offsets = offsets
        self._describe_at = 0.0
        self._listed: Mapping[str, int] = {}
        self._identified: set[str] = set()

    def renew(self, listed: Mapping[str, int]) -> None:
        """Describe the listed topics that are new or were changed; all of them now and then.

        Args:
            listed: Topic → number of its partitions; 0 for a topic that does not exist.

        Raises:
            StackError: Kafka does not answer.
        """
        now = time.monotonic()
        counts = {name: count for name, count in listed.items() if count}
        known = {name: topic.partitions for name, topic in self.row_topics.items()}
        if now >= self._describe_at:
            found = self._offsets.described(counts)
            self._describe_at = ask_again(now, _DESCRIBE_S, _DESCRIBE_SHARE)
            self.news.update(counts, known)
        elif known != counts:
            same = {name for name in counts if known.get(name) == counts[name]}
            found = self._offsets.described(counts.keys() - same)
            self.news.update(counts.keys() - same, known.keys() - same)
            found |= {name: self.row_topics[name] for name in same}
        else:
            found = self.row_topics
        self.news.update(listed.keys() - self._listed.keys())
        self._listed = dict(listed)
        self.row_topics = {name: found[name] for name in counts if name in found}

    def take_news(self) -> set[str]:
        """The names in ``news``, each once."""
        news, self.news = self.news, set()
        return news

    def begin_round(self) -> None:
        """Note that ends were just read: what is described from now on was so after that."""
        self._identified.clear()

    def identify(self, names: Collection[str]) -> None:
        """Describe those of some topics that were not described since the round began.

        Raises:
            StackError: Kafka does not answer.
        """
        if unknown := set(names) - self._identified:
            self.take(unknown, self._offsets.described(unknown))

    def take(self, names: Collection[str], found: Mapping[str, RowTopic]) -> None:
        """Take what topics are now; those that are not found do not exist."""
        for name in names:
            now = found.get(name)
            if now == self.row_topics.get(name):
                continue
            self.news.add(name)
            if now is None:
                del self.row_topics[name]
            else:
                self.row_topics[name] = now
        self._identified.update(names)


def ask_again(since: float, pause_s: float, share: int = LIST_SHARE) -> float:
    """When to repeat a question that was asked at ``since`` and is answered now.

    Args:
        since: Monotonic seconds.
        pause_s: At least so many seconds later.
        share: At least so many times the time that the answer took later.
    """
    now = time.monotonic()
    return since + max(pause_s, share * (now - since))
