"""Until when Kafka keeps the oldest waiting row of each held shard.

A thread of its own asks for that every few seconds, with a consumer of its own, while shards are
held: the driver does not wait for it. A row that was read is not read again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping
from typing import TypeAlias

from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import ConfigResource

from shardmerge.connectors.access.kafka import admin_client
from shardmerge.connectors.event_log import logger
from shardmerge.schemas.pipeline.settings import Kafka
from shardmerge.spark_sink.barrier.partitions import Partition

from .range_reader import row_consumer

log = logger(__name__)

Pair: TypeAlias = tuple[str, str]
"""A source and a target."""
Waiting: TypeAlias = Mapping[Pair, Collection[tuple[Partition, int]]]
"""By source and target: whole partitions with waiting rows, and the offset of the first one."""
MAX_PLACES = 500
"""Most partitions that are looked at; the rest waits for the next look after these are known."""
_PAUSE_S = 5.0
_TIMEOUT_S = 10.0


class RetentionWatch:
    """Finds out when Kafka may delete waiting rows.

    Args:
        kafka: Where, and how to connect.
        waiting: Says which rows wait; called in the watch's thread.
        take: Gets the earliest time of deletion, in seconds since 1970, for each source and target
            that has one: rows in topics that keep them for ever have none.
    """

    def __init__(
        self,
        kafka: Kafka,
        waiting: Callable[[], Waiting],
        take: Callable[[Mapping[Pair, float]], None],
    ) -> None:
        self._kafka = kafka
        self._waiting = waiting
        self._take = take
        self._stop = threading.Event()
        self._came: dict[tuple[Partition, int], float] = {}
        self._thread = threading.Thread(target=self._run, name="retention", daemon=True)

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread after its present look, which is not waited for long."""
        self._stop.set()
        self._thread.join(_PAUSE_S)

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                self._take(self.look())
            except (KafkaException, TimeoutError) as error:
                log.warning("retention_unread", error=error)
            self._stop.wait(_PAUSE_S)

    def look(self) -> dict[Pair, float]:
        """The earliest time of deletion by source and target.

        Raises:
            KafkaException, TimeoutError: Kafka did not answer.
        """
        waiting = self._waiting()
        places = {place for some in waiting.values() for place in some}
        self._came = {place: came for place, came in self._came.items() if place in places}
        if not places:
            return {}
        keeps = self._retention_s({partition.topic for partition, _ in places})
        limited = [place for place in sorted(places) if place[0].topic in keeps]
        self._read([place for place in limited if place not in self._came][:MAX_PLACES])
        found: dict[Pair, float] = {}
        for pair, some in waiting.items():
            ends = [
                self._came[place] + keeps[place[0].topic]
                for place in some
                if place in self._came and place[0].topic in keeps
            ]
            if ends:
                found[pair] = min(ends)
        return found

    def _retention_s(self, names: Collection[str]) -> dict[str, float]:
        """Topic → seconds for which it keeps records; only topics that delete them by age."""
        admin = admin_client(self._kafka)
        asked = admin.describe_configs(
            [ConfigResource(ConfigResource.Type.TOPIC, name) for name in sorted(names)],
            request_timeout=_TIMEOUT_S,
        )
        found = {}
        for resource, answer in asked.items():
            entries = answer.result(_TIMEOUT_S)
            retention_ms = int(entries["retention.ms"].value)
            if "delete" in entries["cleanup.policy"].value and retention_ms >= 0:
                found[str(resource.name)] = retention_ms / 1000
        return found

    def _read(self, places: Collection[tuple[Partition, int]]) -> None:
        """Note when the first record at or behind each place came.

        A place before the beginning of its partition has lost rows: it counts as of 1970.
        """
        if not places:
            return
        consumer = row_consumer(self._kafka)
        try:
            for place in places:
                partition, offset = place
                at = TopicPartition(partition.topic, partition.number, offset)
                beginning, _ = consumer.get_watermark_offsets(at, timeout=_TIMEOUT_S)
                if offset < beginning:
                    self._came[place] = 0.0
                    continue
                consumer.assign([at])
                for record in consumer.consume(1, _TIMEOUT_S):
                    if record.error() is None:
                        self._came[place] = record.timestamp()[1] / 1000
        finally:
            consumer.close()
