"""A toy of Kafka's consumer, as far as it tells where partitions begin and end."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace

from confluent_kafka import KafkaError, TopicPartition


class ToyClient:
    """Gives offsets as it is told to, and errors as librdkafka does.

    Args:
        answer: Topic and partition → its offset, or one of librdkafka's own values, or an error.
        partitions: Topic → how many partitions it has.
        asked_anew: Called when the metadata are read.

    Attributes:
        sizes: How many partitions each request has named.
    """

    def __init__(
        self,
        answer: Callable[[str, int], int | KafkaError],
        partitions: Mapping[str, int] | None = None,
        asked_anew: Callable[[], None] = lambda: None,
    ) -> None:
        self._answer, self._asked_anew = answer, asked_anew
        self._topics = {
            name: SimpleNamespace(partitions=dict.fromkeys(range(count)))
            for name, count in (partitions or {}).items()
        }
        self.sizes: list[int] = []

    def list_topics(self, topic: str = "", timeout: float = 0.0) -> SimpleNamespace:
        self._asked_anew()
        return SimpleNamespace(topics=self._topics)

    def poll(self, _timeout: float) -> None:
        """Nothing to say."""

    def close(self) -> None:
        """Nothing to leave."""

    def offsets_for_times(
        self, partitions: Sequence[TopicPartition], timeout: float
    ) -> list[SimpleNamespace]:
        self.sizes.append(len(partitions))
        return [self._told(place) for place in partitions]

    def _told(self, place: TopicPartition) -> SimpleNamespace:
        answer = self._answer(place.topic, place.partition)
        told = SimpleNamespace(topic=place.topic, partition=place.partition, offset=-1, error=None)
        if isinstance(answer, KafkaError):
            told.error = answer
        else:
            told.offset = answer
        return told
