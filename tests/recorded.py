"""A pipeline's records as its agents write them, made in memory, and bundles of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from zlib import crc32

from shardmerge.agents.handling.effects import Send
from shardmerge.agents.handling.handlers import CoordinatorHandler, TrackerHandler
from shardmerge.agents.handling.memory_rows import MemoryRows
from shardmerge.agents.handling.stored_table import COORDINATOR_TABLE, changelog, table_of
from shardmerge.agents.replay.bundle import Bundle, Manifest, write_bundle
from shardmerge.agents.replay.log import Refold, in_time
from shardmerge.cli.bundles import exported_topics, without_passwords
from shardmerge.connectors.formats.stored_record import Extent, StoredRecord
from shardmerge.schemas.model.names import ShardId, TargetTable
from shardmerge.schemas.pipeline import topics
from shardmerge.schemas.pipeline.file import parse_pipeline
from shardmerge.schemas.pipeline.settings import Pipeline
from shardmerge.schemas.pipeline.text import pipeline_text
from shardmerge.schemas.records import codec
from shardmerge.schemas.records.operator_commands import CommandKind, OperatorCommand
from shardmerge.schemas.records.schema_changes import ChangeId

Alter = Callable[[StoredRecord], Iterable[StoredRecord]]

_PIPELINE = """
[pipeline]
name = "p"
mode = "{mode}"
[kafka]
bootstrap_servers = "kafka:9092"
[connect]
url = "http://connect:8083"
[target]
host = "target"
port = 1
user = "u"
password = "target-secret"
[[routes]]
database = "shop"
table = 'tbl\\d+'
target = "merged.tbl"
[[routes]]
database = "shop"
table = 'log\\d+'
target = "merged.log"
"""
_SOURCE = """
[[sources]]
name = "{name}"
host = "{name}"
port = 1
user = "u"
password = "source-secret"
server_id = {server_id}
"""


def pipeline(sources: int = 2, mode: str = "optimistic") -> Pipeline:
    """Sources ``s1``, ``s2``, …; shards ``tbl…`` of merged.tbl and ``log…`` of merged.log."""
    text = _PIPELINE.format(mode=mode)
    for number in range(1, sources + 1):
        text += _SOURCE.format(name=f"s{number}", server_id=number)
    return parse_pipeline(text, {})


class Recorded:
    """Sources that execute statements, and the agents' answers, as the topics would hold them."""

    def __init__(self, sources: int = 2, mode: str = "optimistic") -> None:
        self.pipeline = pipeline(sources, mode)
        self.records: dict[tuple[str, int], list[StoredRecord]] = {}
        self._tracker = Refold(TrackerHandler(self.pipeline))
        self._coordinator = Refold(CoordinatorHandler(self.pipeline))
        self._log = topics.schema_log(self.pipeline)
        self._now = 1_700_000_000_000
        for name in exported_topics(self.pipeline):
            partitions = self._log.partitions if name == self._log.name else 1
            for number in range(partitions):
                self.records[name, number] = []

    def execute(self, source: str, *statements: str, snapshot: bool = False) -> None:
        """Execute statements on a source; the agents answer each before the next."""
        for ddl in statements:
            place = 100 + 50 * len(self.records[source, 0])
            block = {
                "name": source,
                "snapshot": str(snapshot).lower(),
                "db": "shop",
                "table": "",
                "file": "binlog.000001",
                "pos": place,
                "row": 0,
            }
            value = {
                "source": block,
                "databaseName": "shop",
                "ddl": ddl,
                "ts_ms": self._now,
                "tableChanges": [],
            }
            self._told(
                self.append(source, 0, b'{"databaseName":"shop"}', json.dumps(value).encode())
            )

    def command(self, kind: CommandKind, shard: str = "", argument: str = "") -> None:
        """Give a command to merged.tbl about a shard ``source/table``."""
        topic = topics.commands(self.pipeline).name
        source, _, table = shard.partition("/")
        command = OperatorCommand(
            ChangeId(topic, 0),
            TargetTable("merged", "tbl"),
            kind,
            ShardId(source, "shop", table) if shard else None,
            argument,
            by="anna",
            ts_ms=self._now,
        )
        self._told(self.append(topic, 0, b"merged.tbl", codec.encode(command)))

    def _told(self, event: StoredRecord) -> None:
        """The agents' answers to a record that the tracker reads."""
        for sent in self._fold(self._tracker, event):
            if sent.topic == self._log.name:
                self._fold(self._coordinator, sent)

    def append(
        self,
        topic: str,
        partition: int,
        key: bytes | None,
        value: bytes | None,
        headers: tuple[tuple[str, bytes | None], ...] = (),
    ) -> StoredRecord:
        """A record at a partition's end, some milliseconds after the one before."""
        records = self.records[topic, partition]
        self._now += 7
        record = StoredRecord(
            topic, partition, len(records), key, value, headers, self._now, timestamp_type=1
        )
        records.append(record)
        return record

    def _fold(self, fold: Refold, record: StoredRecord) -> list[StoredRecord]:
        effects = fold.effects(record)
        fold.rows.take(effects)
        return [self._send(send) for send in effects.sends]

    def _send(self, send: Send) -> StoredRecord:
        partitions = self._log.partitions if send.topic == self._log.name else 1
        headers = tuple((name, text.encode()) for name, text in send.headers)
        return self.append(send.topic, crc32(send.key) % partitions, send.key, send.value, headers)

    def topic(self, name: str) -> list[StoredRecord]:
        """All records of a topic, partition by partition."""
        return [r for (topic, _), records in self.records.items() if topic == name for r in records]

    def log(self) -> Iterator[StoredRecord]:
        """The schema-log as it is folded."""
        return in_time(r for (topic, _), r in self.records.items() if topic == self._log.name)

    def changelog(self, table: str = COORDINATOR_TABLE) -> list[StoredRecord]:
        """The rows of an agent's table, as its changelog has them."""
        fold = self._coordinator if table == COORDINATOR_TABLE else self._tracker
        topic, rows = changelog(self.pipeline, table), fold.rows
        return [StoredRecord(topic, 0, n, key, rows.get(key)) for n, key in enumerate(rows.keys())]

    def rows(self, table: str = COORDINATOR_TABLE) -> MemoryRows:
        """An agent's table, read from its changelog."""
        rows = MemoryRows()
        rows.take(table_of(self.changelog(table)))
        return rows

    def write(self, path: Path, alter: Alter | None = None, *, begin: int = 0) -> Path:
        """A bundle of the records, as they are or altered."""
        path.write_bytes(self.bundle_bytes(alter, begin=begin))
        return path

    def bundle_bytes(self, alter: Alter | None = None, *, begin: int = 0) -> bytes:
        """The bytes of such a bundle."""
        parts = []
        for (topic, partition), records in self.records.items():
            kept = [new for old in records for new in (alter(old) if alter else (old,))]
            extent = Extent(topic, partition, begin, len(records), len(records))
            parts.append((extent, kept))
        file = BytesIO()
        _write(file, self.pipeline, parts)
        return file.getvalue()


def altered(path: Path, alter: Alter) -> None:
    """Alter the records of a bundle in its place."""
    with path.open("rb") as file:
        bundle = Bundle(file, str(path))
        parts = [
            (
                Extent(p.topic, p.partition, p.begin, p.end, p.high_watermark),
                [new for old in bundle.records(p) for new in alter(old)],
            )
            for p in bundle.manifest.parts
        ]
    with path.open("wb") as new:
        _write(new, bundle.pipeline, parts)


def changed(record: StoredRecord, **fields: object) -> StoredRecord:
    """The record with other fields."""
    return replace(record, **fields)  # type: ignore[arg-type]


def _write(
    file: object, pipeline: Pipeline, parts: list[tuple[Extent, list[StoredRecord]]]
) -> Manifest:
    return write_bundle(
        file,  # type: ignore[arg-type]
        pipeline_text(without_passwords(pipeline)),
        parts,
        pipeline=pipeline.name,
        written_by="0",
        exported_at="2026-11-21T00:00:00+00:00",
    )
