"""Row topics of a source, read as they grow."""

from __future__ import annotations

import json
import threading
import time

from confluent_kafka import Consumer, IsolationLevel, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from shardmerge.connectors.kafka.topics_admin import create_topics
from shardmerge.schemas.pipeline.settings import Kafka
from shardmerge.schemas.pipeline.topics import TopicSpec

from .chaos_rows import Seen, seen_record


class TopicWatch:
    """Reads row topics of a source as they grow, with the end of its schema-change topic."""

    def __init__(self, bootstrap_servers: str, source: str, database: str) -> None:
        self._source, self._database = source, database
        self._servers = bootstrap_servers
        self._tables: list[str] = []
        self._seen: list[Seen] = []
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._failures: list[BaseException] = []
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap_servers,
                "group.id": f"chaos-{source}",
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "fetch.wait.max.ms": 20,
                "log_level": 0,
            }
        )
        self._admin = AdminClient({"bootstrap.servers": bootstrap_servers, "log_level": 0})
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def add(self, *tables: str) -> None:
        """Make the topics of tables, and read them too."""
        names = [f"{self._source}.{self._database}.{table}" for table in tables]
        create_topics(Kafka(self._servers), [TopicSpec(name, 1, 1) for name in names])
        with self._lock:
            self._tables += tables
            self._consumer.incremental_assign([TopicPartition(name, 0, 0) for name in names])

    def seen(self) -> list[Seen]:
        """Every record so far, in the order of each topic."""
        with self._lock:
            if self._failures:
                raise AssertionError("the row topics cannot be read") from self._failures[0]
            return list(self._seen)

    def close(self) -> None:
        """Read no more."""
        self._stop.set()
        self._thread.join()
        self._consumer.close()

    def _run(self) -> None:
        try:
            while not self._stop.is_set():
                with self._lock:
                    ready = bool(self._tables)
                    messages = self._consumer.consume(500, timeout=0.05) if ready else ()
                if not messages:
                    self._stop.wait(0.01)
                    continue
                now = time.monotonic()
                high = self._high_watermark()
                for message in messages:
                    if message.error() is not None:
                        continue  # a leader that moves; what cannot be read stays unread
                    table = str(message.topic()).rpartition(".")[2]
                    record = seen_record(table, json.loads(message.value() or b""), high, now)
                    if record is not None:
                        with self._lock:
                            self._seen.append(record)
        except BaseException as error:  # told to whoever asks for the records
            self._failures.append(error)

    def _high_watermark(self) -> int:
        at = TopicPartition(self._source, 0)
        answer = self._admin.list_offsets(
            {at: OffsetSpec.latest()}, isolation_level=IsolationLevel.READ_UNCOMMITTED
        )
        return int(answer[at].result(30).offset)
