"""A toy of Kafka's admin client, as far as it tells where partitions begin and end."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

from confluent_kafka import KafkaError, KafkaException, TopicPartition


class ToyAdmin:
    """Gives offsets as it is told to, and errors as librdkafka does.

    Args:
        answer: Topic and partition → its offset, or one of librdkafka's own values, or an error.
        partitions: Topic → how many partitions it has.
        asked_anew: Called when the metadata are read.
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

    def list_topics(self, timeout: float) -> SimpleNamespace:
        self._asked_anew()
        return SimpleNamespace(topics=self._topics)

    def list_offsets(
        self, partitions: Mapping[TopicPartition, Any], **_settings: object
    ) -> dict[TopicPartition, Future[SimpleNamespace]]:
        futures = {}
        for place in partitions:
            futures[place] = future = Future[SimpleNamespace]()
            answer = self._answer(place.topic, place.partition)
            if isinstance(answer, KafkaError):
                future.set_exception(KafkaException(answer))
            else:
                future.set_result(SimpleNamespace(offset=answer))
        return futures
