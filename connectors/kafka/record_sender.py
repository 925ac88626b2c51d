"""Writes records now and then, and waits until Kafka has them. For processes that live long."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from confluent_kafka import KafkaException, Producer

from shardmerge.connectors.access.kafka import producer
from shardmerge.connectors.event_log import logger
from shardmerge.schemas.model.errors import StackError
from shardmerge.schemas.pipeline.settings import Kafka

log = logger(__name__)


class RecordSender:
    """Writes to partition 0 of topics. One thread uses it.

    After a silence of Kafka it begins with a new client, which leaves the records that were not
    written: see ``silence``. Who asked for them asks again.

    Args:
        kafka: The brokers.
        timeout_s: Longest wait for Kafka.
        settings: Further settings of librdkafka.
    """

    def __init__(
        self, kafka: Kafka, timeout_s: float, settings: Mapping[str, Any] | None = None
    ) -> None:
        self._kafka, self._timeout_s = kafka, timeout_s
        self._settings = {"log_level": 0, **(settings or {})}
        self._producer: Producer | None = None

    def send(self, topic: str, records: Iterable[tuple[bytes | None, bytes]]) -> None:
        """Write records, each a key and a value, in their order.

        Raises:
            StackError: Kafka does not take them all; some may be written.
        """
        failed: list[str] = []

        def reported(error: Any, _: Any) -> None:
            if error is not None:
                failed.append(str(error))

        if self._producer is None:
            self._producer = producer(self._kafka, self._settings)
        try:
            for key, value in records:
                self._producer.produce(topic, value, key, partition=0, on_delivery=reported)
            left = self._producer.flush(self._timeout_s)
        except (KafkaException, BufferError) as error:
            self._producer = None
            raise StackError(f"{topic} cannot be written: {error}", code="SM-4107") from error
        if left:
            log.warning("kafka_client_renewed", client="records")
            self._producer.purge()
            self._producer = None
        if left or failed:
            reason = failed[0] if failed else f"no answer within {self._timeout_s:.0f} s"
            raise StackError(
                f"{topic} cannot be written: {reason}",
                hint="see whether the brokers run",
                code="SM-4107",
            )
