"""How long Kafka still keeps the oldest waiting row of each held shard.

A thread of its own asks for that every few seconds, with a consumer of its own, while shards are
held: the driver does not wait for it. A row that was read is not read again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping
from typing import TypeAlias

from confluent_kafka import Consumer, KafkaException, Message, TopicPartition
from confluent_kafka.admin import ConfigResource

from shardmerge.connectors.access.kafka import admin_client
from shardmerge.connectors.event_log import logger
from shardmerge.schemas.model.errors import StackError
from shardmerge.schemas.pipeline.settings import Kafka
from shardmerge.spark_sink.barrier.partitions import Partition
from shardmerge.spark_sink.planning.retention import (
    Bounds,
    OldestRow,
    RetentionLeft,
    retention_left,
)

from .offsets import OffsetReader
from .range_reader import row_consumer

log = logger(__name__)

Pair: TypeAlias = tuple[str, str]
"""A source and a target."""
Place: TypeAlias = tuple[Partition, int]
"""A whole partition, and the offset of its first waiting row."""
Waiting: TypeAlias = Mapping[Pair, Collection[Place]]
MAX_PLACES = 500
"""Most partitions whose first rows are read in one look; later looks read the rest."""
SAMPLE = 100
"""Most records that are read for their mean size."""
_PAUSE_S = 5.0
_TIMEOUT_S = 10.0


class RetentionWatch:
    """Finds out when Kafka may delete waiting rows.

    Args:
        kafka: Where, and how to connect.
        waiting: Says which rows wait; called in the watch's thread.
        take: Gets what is left, for each source and target whose waiting rows Kafka may delete:
            rows in topics that keep them for ever have no entry.
    """

    def __init__(
        self,
        kafka: Kafka,
        waiting: Callable[[], Waiting],
        take: Callable[[Mapping[Pair, RetentionLeft]], None],
    ) -> None:
        self._kafka = kafka
        self._waiting = waiting
        self._take = take
        self._stop = threading.Event()
        self._seen: dict[Place, OldestRow] = {}
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
            except (KafkaException, StackError, TimeoutError) as error:
                log.warning("retention_unread", error=error)
            self._stop.wait(_PAUSE_S)

    def look(self) -> dict[Pair, RetentionLeft]:
        """What is left by source and target.

        Raises:
            KafkaException, StackError, TimeoutError: Kafka did not answer.
        """
        waiting = self._waiting()
        places = {place for some in waiting.values() for place in some}
        self._seen = {place: row for place, row in self._seen.items() if place in places}
        if not places:
            return {}
        bounds = self._bounds({partition.topic for partition, _ in places})
        bounded = [place for place in sorted(places) if bounds.get(place[0].topic)]
        self._read([place for place in bounded if place not in self._seen][:MAX_PLACES])
        known = [place for place in bounded if place in self._seen]
        sized = {partition for partition, _ in known if bounds[partition.topic].size is not None}
        ends = self._ends(sized)
        found: dict[Pair, RetentionLeft] = {}
        for pair, some in waiting.items():
            left = retention_left(
                (bounds[partition.topic], self._seen[partition, offset],
                 ends.get(partition, offset) - offset)
                for partition, offset in some
                if (partition, offset) in self._seen and partition.topic in bounds
            )  # fmt: skip
            if left is not None:
                found[pair] = left
        return found

    def _bounds(self, names: Collection[str]) -> dict[str, Bounds]:
        """Topic → what it keeps; a topic that cannot be described has no entry."""
        admin = admin_client(self._kafka)
        asked = admin.describe_configs(
            [ConfigResource(ConfigResource.Type.TOPIC, name) for name in sorted(names)],
            request_timeout=_TIMEOUT_S,
        )
        found = {}
        for resource, answer in asked.items():
            try:
                entries = answer.result(_TIMEOUT_S)
            except KafkaException as error:
                # It was deleted just now, or the sink's user may not describe it.
                log.warning("retention_unread", topic=resource.name, error=error)
                continue
            ms, size = (int(entries[f"retention.{of}"].value) for of in ("ms", "bytes"))
            deletes = "delete" in entries["cleanup.policy"].value
            found[str(resource.name)] = Bounds(
                ms / 1000 if deletes and ms >= 0 else None, size if deletes and size >= 0 else None
            )
        return found

    def _ends(self, partitions: Collection[Partition]) -> dict[Partition, int]:
        """Partition → the offset behind its last committed record."""
        return OffsetReader(self._kafka).stable_ends(partitions) if partitions else {}

    def _read(self, places: Collection[Place]) -> None:
        """Look at the first records at or behind each place."""
        if not places:
            return
        consumer = row_consumer(self._kafka)
        try:
            for place in places:
                partition, offset = place
                at = TopicPartition(partition.topic, partition.number, offset)
                beginning, _ = consumer.get_watermark_offsets(at, timeout=_TIMEOUT_S)
                if offset < beginning:
                    self._seen[place] = OldestRow(0.0, 0.0, is_deleted=True)
                    continue
                consumer.assign([at])
                if records := _first(consumer):
                    sizes = [len(r.value() or b"") + len(r.key() or b"") for r in records]
                    came_s = records[0].timestamp()[1] / 1000
                    self._seen[place] = OldestRow(came_s, sum(sizes) / len(sizes))
        finally:
            consumer.close()


def _first(consumer: Consumer) -> list[Message]:
    """The records from the consumer's place on, at most ``SAMPLE``, up to the partition's end."""
    found: list[Message] = []
    while len(found) < SAMPLE:
        record = consumer.poll(_TIMEOUT_S)
        if record is None or record.error() is not None:
            break
        found.append(record)
    return found
