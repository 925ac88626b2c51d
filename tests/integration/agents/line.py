"""A pipeline's agents under test: sources that write like Debezium, workers that can be killed."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition

from shardmerge.agents.handling.effects import Rows, SourceRecord
from shardmerge.agents.handling.handlers import CoordinatorHandler, TrackerHandler
from shardmerge.connectors.kafka.topics_admin import create_topics
from shardmerge.local.servers.processes import LOOPBACK, ProcessSpec, Supervisor
from shardmerge.local.servers.stack import LocalStack, Ports
from shardmerge.schemas.model.policies import Mode
from shardmerge.schemas.pipeline import topics
from shardmerge.schemas.pipeline.file import parse_pipeline
from shardmerge.schemas.pipeline.settings import Kafka
from shardmerge.schemas.records import codec
from shardmerge.schemas.records.decisions import Decision
from shardmerge.schemas.records.record_format import RecordFormat
from shardmerge.schemas.records.schema_changes import SchemaChange
from shardmerge.spark_sink.barrier.partitions import Partition
from shardmerge.spark_sink.kafka.offsets import OffsetReader

HERE = Path(__file__).parent
ROOT = Path(__file__).resolve().parents[3]
PATIENCE_S = 120.0

_PIPELINE = """
[pipeline]
name = "{name}"
mode = "{mode}"
[kafka]
bootstrap_servers = "{servers}"
record_format = "{record_format}"
[connect]
url = "http://127.0.0.1:1"
[target]
host = "127.0.0.1"
port = 1
user = "u"
password = "p"
"""
_ROUTES = """
[[routes]]
database = "shop"
table = 'tbl\\d\\d'
target = "merged.tbl"
[[routes]]
database = "shop"
table = 'log\\d\\d'
target = "merged.log"
"""
_SOURCE = """
[[sources]]
name = "{name}"
host = "127.0.0.1"
port = 1
user = "u"
password = "p"
server_id = {server_id}
"""


@dataclass(frozen=True, slots=True)
class Written:
    """A record as it stands in a topic."""

    partition: int
    offset: int
    key: bytes
    value: bytes


@contextmanager
def broker_alone(prefix: str, host: str = LOOPBACK) -> Iterator[LocalStack]:
    """The embedded stack with nothing but Kafka running, in a folder of its own.

    Args:
        prefix: Of the folder's name.
        host: See ``LocalStack``.
    """
    (ROOT / ".local").mkdir(exist_ok=True)
    directory = Path(tempfile.mkdtemp(prefix=prefix, dir=ROOT / ".local"))
    stack = LocalStack(directory, Ports.free(), cache=ROOT / ".local" / "cache", host=host)
    stack.start("kafka")
    try:
        yield stack
    finally:
        stack.clean()


class Line:
    """One pipeline on the session's broker.

    Args:
        mode: Of the pipeline.
        routes: The routes of its pipeline file.
        record_format: Of its own records.

    Attributes:
        table_copies: Whether workers that are started from now on copy the tables of others.
        web_ports: The port of each worker's pages, as of its last start.
    """

    table_copies = True

    def __init__(
        self,
        broker: LocalStack,
        number: int,
        *,
        mode: str = Mode.OPTIMISTIC,
        routes: str = _ROUTES,
        record_format: str = "avro",
        session_timeout_s: int = 6,
    ) -> None:
        self.servers = broker.bootstrap_servers
        self.session_timeout_s = session_timeout_s
        self.directory = broker.directory / f"line{number}"
        self.directory.mkdir()
        self.sources = (f"one{number}", f"two{number}")
        text = _PIPELINE.format(
            name=f"p{number}", mode=mode, servers=self.servers, record_format=record_format
        )
        text += routes
        for server_id, name in enumerate(self.sources, 1):
            text += _SOURCE.format(name=name, server_id=server_id)
        self.pipeline = parse_pipeline(text, {})
        self.format = RecordFormat(record_format)
        self.pipeline_file = self.directory / "pipeline.toml"
        self.pipeline_file.write_text(text)
        self.supervisor = Supervisor(self.directory)
        self.web_ports: dict[str, int] = {}
        self._producers: dict[str, Producer] = {}
        self._position = 100
        self._events = 0
        self._follower: Consumer | None = None
        self._answers: dict[tuple[str, int], set[int]] = {}
        create_topics(Kafka(self.servers), topics.own_topics(self.pipeline))

    def close(self) -> None:
        """Stop every worker."""
        for name in self.supervisor.names():
            if self.runs(name):
                self.kill(name)
        if self._follower is not None:
            self._follower.close()

    # --- the sources ---

    def execute(
        self, source: str, *statements: str, snapshot: bool = False, together: int = 1
    ) -> None:
        """Write statements as one connector does: so many in a transaction, in order."""
        producer = self._producer(source)
        for start in range(0, len(statements), together):
            producer.begin_transaction()
            for ddl in statements[start : start + together]:
                self._position += 50
                self._events += 1
                value = self._record(source, ddl, snapshot)
                producer.produce(source, key=b'{"databaseName":"shop"}', value=value)
            producer.commit_transaction(PATIENCE_S)

    def _producer(self, source: str) -> Producer:
        if source not in self._producers:
            made = Producer({"bootstrap.servers": self.servers, "transactional.id": source})
            made.init_transactions(PATIENCE_S)
            self._producers[source] = made
        return self._producers[source]

    def _record(self, source: str, ddl: str, snapshot: bool) -> bytes:
        place = {"file": "binlog.000001", "pos": self._position, "row": 0}
        block = {
            "name": source,
            "snapshot": str(snapshot).lower(),
            "db": "shop",
            "table": "",
            **place,
        }
        value = {
            "source": block,
            "databaseName": "shop",
            "ddl": ddl,
            "ts_ms": 1,
            "tableChanges": [],
        }
        return json.dumps(value).encode()

    # --- workers ---

    def start(
        self,
        name: str = "worker",
        *,
        script: Path | None = None,
        failpoint: str = "",
        wait: bool = True,
        within: Sequence[str] = (),
    ) -> None:
        """Start a worker (again), with its own data directory.

        Args:
            name: Of the worker.
            script: Replaces the module.
            failpoint: Where it ends or stands still.
            wait: Whether to wait until it is ready. It must be on this machine.
            within: The words of a command that runs the one behind it.
        """
        self.web_port = self.web_ports[name] = port = Ports.free().web
        program = ("-m", "shardmerge.agents.app") if script is None else (str(script),)
        spec = ProcessSpec(
            name=name,
            argv=(
                *within, sys.executable, *program, "--pipeline", str(self.pipeline_file),
                "--datadir", str(self.data(name)), "--web-port", str(port),
            ),
            ports=(port,),
            env={
                "PYTHONSAFEPATH": "1",
                "SHARDMERGE_AGENTS_FAILPOINT": failpoint,
                "SHARDMERGE_AGENTS_SESSION_TIMEOUT_S": str(self.session_timeout_s),
                "SHARDMERGE_AGENTS_TABLE_COPIES": str(int(self.table_copies)),
            },
            health=lambda: _health(port),
            start_timeout_s=PATIENCE_S,
        )  # fmt: skip
        self.supervisor.spawn(spec)
        if wait:
            self.supervisor.wait_healthy(spec)

    def data(self, name: str = "worker") -> Path:
        """A worker's data directory."""
        return self.directory / f"data-{name}"

    def kill(self, name: str = "worker", *, lose_data: bool = False) -> None:
        """``kill -9``; with ``lose_data`` the machine's disk is gone too."""
        self.supervisor.kill(name)
        if lose_data:
            self.lose(name)

    def lose(self, name: str = "worker") -> None:
        """Take away the disk of a worker that does not run."""
        shutil.rmtree(self.data(name), ignore_errors=True)

    def wake(self, name: str) -> None:
        """Let a worker that stands still go on."""
        pid = self.supervisor.pid(name)
        assert pid is not None
        os.kill(pid, signal.SIGCONT)

    def terminate(self, name: str) -> None:
        """Tell a worker to end."""
        pid = self.supervisor.pid(name)
        assert pid is not None
        os.kill(pid, signal.SIGTERM)

    def wait_ended(self, name: str) -> None:
        """Wait until a worker has ended by itself."""
        wait_for(lambda: not self.runs(name), f"end of {name}")

    def log(self, name: str = "worker") -> str:
        """Everything a worker logged, restarts included."""
        return self.supervisor.log_path(name).read_text()

    def stands_still(self, name: str) -> bool:
        """Whether a worker has come to its failpoint that stops it."""
        pid = self.supervisor.pid(name)
        assert pid is not None, f"{name} has ended: {self.log(name)[-2000:]}"
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        return state == "T"

    def runs(self, name: str = "worker") -> bool:
        """Whether the worker's process is there."""
        return self.supervisor.pid(name) is not None

    # --- the topics ---

    def written(self, topic: str) -> list[Written]:
        """All committed records of a topic, partition by partition; our own as ``codec``'s."""
        found = self.written_as_they_are(topic)
        if topic in topics.own_records(self.pipeline):
            return [replace(r, value=self.format.to_canonical(r.value)) for r in found]
        return found

    def written_as_they_are(self, topic: str) -> list[Written]:
        """All committed records of a topic, with the bytes that stand in Kafka."""
        return written(self.servers, topic)

    def decisions(self) -> list[Decision]:
        """Every decision, repeated ones included."""
        records = (codec.decode(r.value) for r in self.written(topics.ddl(self.pipeline).name))
        return [r for r in records if isinstance(r, Decision)]

    def follow(self, topic: str) -> Consumer:
        """A reader of the records that come into a topic's first partition from now on."""
        follower = Consumer(
            {
                "bootstrap.servers": self.servers,
                "group.id": "follower",
                "isolation.level": "read_committed",
            }
        )
        end = follower.get_watermark_offsets(TopicPartition(topic, 0), PATIENCE_S)[1]
        follower.assign([TopicPartition(topic, 0, end)])
        return follower

    def decided(self, wait_s: float = 0.05) -> int:
        """How many events have every decision; reads on from where it last stopped."""
        if self._follower is None:
            self._follower = Consumer({"bootstrap.servers": self.servers, "group.id": "follower"})
            self._follower.assign([TopicPartition(topics.ddl(self.pipeline).name, 0, 0)])
        while (record := self._follower.poll(wait_s)) is not None:
            assert record.error() is None
            decision = self.format.read(record.value())
            assert isinstance(decision, Decision)
            place = (decision.id.source, decision.id.offset)
            self._answers.setdefault(place, set(range(decision.id.count)))
            self._answers[place].discard(decision.id.ordinal)
        return sum(1 for missing in self._answers.values() if not missing)

    def wait_decided(self, count: int) -> None:
        """Wait until so many events are answered."""
        wait_for(lambda: self.decided() >= count, f"{count} answered events")

    def events(self) -> int:
        """How many events the sources wrote."""
        return self._events

    def readable(self) -> bool:
        """Whether every commit of the sources has its marker: nothing stands behind an open one."""
        offsets = OffsetReader(Kafka(self.servers))
        written = [Partition(source, 0) for source in self._producers]
        return offsets.stable_ends(written) == offsets.high_watermarks(written)

    # --- what must come out ---

    def check_outputs(self) -> None:
        """Outputs are those of the pure folds: byte for byte, none missing, none besides.

        A repeated record is fine when it is equal: at-least-once, recognised by its identity.
        """
        ddl = topics.ddl(self.pipeline).name
        log = self.written(topics.schema_log(self.pipeline).name)
        tracked = {
            name: _fold(TrackerHandler(self.pipeline), name, 0, self.written(name))
            for name in self.sources
        }
        changes = [codec.decode(r.value) for r in log]
        for name in self.sources:
            expected = [s.value for s in tracked[name] if s.topic != ddl]
            written = [
                r.value
                for r, c in zip(log, changes, strict=True)
                if isinstance(c, SchemaChange) and c.id.source == name
            ]
            missing, besides = set(expected) - set(written), set(written) - set(expected)
            assert not missing and not besides, (
                f"{name}: missing {[codec.decode(v) for v in missing]},"
                f" besides {[codec.decode(v) for v in besides]}"
            )
        decided: dict[bytes, bytes] = {}
        for partition in sorted({r.partition for r in log}):
            records = [r for r in log if r.partition == partition]
            for send in _fold(CoordinatorHandler(self.pipeline), "log", partition, records):
                if send.topic == ddl:
                    decided[send.key] = send.value
        for name in self.sources:
            decided.update({s.key: s.value for s in tracked[name] if s.topic == ddl})
        answers: dict[bytes, set[bytes]] = {}
        for r in self.written(ddl):
            answers.setdefault(r.key, set()).add(r.value)
        assert answers == {key: {value} for key, value in decided.items()}


class MemoryRows(dict[bytes, bytes]):
    """An agent's table without Faust."""


def _fold(fold: Any, topic: str, partition: int, records: Sequence[Written]) -> list[Any]:
    rows: Rows = MemoryRows()
    sends: list[Any] = []
    for record in records:
        effects = fold(
            rows, SourceRecord(topic, partition, record.offset, record.key, record.value)
        )
        for key, value in effects.puts.items():
            if value is None:
                rows.pop(key, None)  # type: ignore[attr-defined]
            else:
                rows[key] = value  # type: ignore[index]
        sends += effects.sends
    return sends


def written(servers: str, topic: str) -> list[Written]:
    """All committed records of a topic, partition by partition."""
    consumer = Consumer(
        {
            "bootstrap.servers": servers, "group.id": "test", "enable.auto.commit": False,
            "enable.partition.eof": True, "isolation.level": "read_committed",
        }
    )  # fmt: skip
    partitions = consumer.list_topics(topic, PATIENCE_S).topics[topic].partitions
    consumer.assign([TopicPartition(topic, p, 0) for p in partitions])
    found: list[Written] = []
    open_ends = set(partitions)
    while open_ends:
        record = consumer.poll(PATIENCE_S)
        assert record is not None, f"{topic} cannot be read"
        if record.error():
            open_ends.discard(record.partition())
            continue
        found.append(Written(record.partition(), record.offset(), record.key(), record.value()))
    consumer.close()
    return sorted(found, key=lambda r: (r.partition, r.offset))


def wait_for(condition: Callable[[], bool], what: str) -> None:
    """Poll until the condition holds."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, f"still no {what} after {PATIENCE_S:.0f} s"
        time.sleep(0.05)


def _health(port: int) -> str | None:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=2) as answer:
            return None if answer.status == 200 else f"status {answer.status}"
    except (urllib.error.URLError, ConnectionError, TimeoutError) as error:
        return str(error)
