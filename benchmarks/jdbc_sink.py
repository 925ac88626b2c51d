"""Rows per second into the target, beside Debezium's own JDBC sink on the same topics.

Produces a backlog in Debezium's JSON form with schemas, which the JDBC sink needs, one topic per
shard. It is applied by the sink's own tasks under Spark, then by the JDBC sink connector (upserts,
4 tasks, batches of 2,000) from the same topics into a table of the same definition on the same
server. The connector's clock runs from its first row until its last; what it started before is not
counted. Both tables are compared in the end.

    python -m benchmarks.jdbc_sink [--events 1000000] [--rows 30000] [--shards 8] [--partitions 2]
"""

from __future__ import annotations

import argparse
import os
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import AdminClient
from msgspec.json import encode

from benchmarks.bench_events import Backlog, Size, produce
from benchmarks.bench_measures import measuring, print_ways
from benchmarks.bench_target import Bench, apply_backlog, spark
from shardmerge.connectors.connect.connect_rest import ConnectRest
from shardmerge.local.install.artifacts import (
    find_java,
    read_checksums,
    resolve,
    retrieve,
    verify_checksums,
)
from shardmerge.local.install.files import exclusive_lock
from shardmerge.local.servers.connect import connect_spec
from shardmerge.local.servers.mysql import PASSWORD, USER
from shardmerge.local.servers.stack import LocalStack, Ports
from shardmerge.schemas.model.names import TargetTable

ROOT = Path(__file__).resolve().parents[1]
CACHE = ROOT / ".local" / "cache"
JDBC = TargetTable("bench", "reference")
CONNECTOR = "jdbc"
PATIENCE_S = 1_800
_TYPES = {
    "id": ("int64", None), "customer": ("int32", None),
    "status": ("string", "io.debezium.data.Enum"),
    "amount": ("string", None), "quantity": ("int32", None), "email": ("string", None),
    "note": ("string", None), "created": ("int64", "io.debezium.time.Timestamp"),
    "changed": ("string", "io.debezium.time.ZonedTimestamp"),
    "due": ("int32", "io.debezium.time.Date"), "score": ("double", None), "flag": ("int16", None),
}  # fmt: skip


def _field(name: str, kind: str, semantic: str | None = None) -> dict[str, Any]:
    named = {"name": semantic, "version": 1} if semantic else {}
    return {"type": kind, "optional": name != "id", "field": name, **named}


def envelope_schema(shard: int) -> bytes:
    """Connect's schema of a shard's row records, as Debezium writes it."""
    prefix = f"bench.app.t{shard}"
    row = {
        "type": "struct", "optional": True, "name": f"{prefix}.Value",
        "fields": [_field(name, *kind) for name, kind in _TYPES.items()],
    }  # fmt: skip
    texts = ("version", "connector", "name", "snapshot", "db", "sequence", "table", "gtid", "file")
    source = {
        "type": "struct", "optional": False, "name": "io.debezium.connector.mysql.Source",
        "field": "source",
        "fields": [
            *(_field(name, "string") for name in (*texts, "query")),
            *(_field(name, "int64") for name in ("ts_ms", "server_id", "pos", "thread")),
            _field("row", "int32"),
        ],
    }  # fmt: skip
    block = {
        "type": "struct", "optional": True, "name": "event.block", "version": 1,
        "field": "transaction", "fields": [_field("id", "string")],
    }  # fmt: skip
    return encode(
        {
            "type": "struct", "optional": False, "name": f"{prefix}.Envelope", "version": 2,
            "fields": [
                {**row, "field": "before"}, {**row, "field": "after"}, source, block,
                {"type": "string", "optional": False, "field": "op"},
            ],
        }
    )  # fmt: skip


def key_schema(shard: int) -> bytes:
    """Connect's schema of the records' keys."""
    name = f"bench.app.t{shard}.Key"
    fields = [{"type": "int64", "optional": False, "field": "id"}]
    return encode({"type": "struct", "fields": fields, "optional": False, "name": name})


class WithSchemas:
    """Puts the schemas around what ``produce`` writes."""

    def __init__(self, shards: int) -> None:
        self._values = [envelope_schema(shard) for shard in range(shards)]
        self._keys = [key_schema(shard) for shard in range(shards)]

    def value(self, shard: int, payload: bytes) -> bytes:
        """Schema and envelope."""
        return b'{"schema":%b,"payload":%b}' % (self._values[shard], payload)

    def key(self, shard: int, key: int) -> bytes:
        """Schema and key."""
        return b'{"schema":%b,"payload":{"id":%d}}' % (self._keys[shard], key)


def plugin(folder: Path) -> Path:
    """A folder with Debezium's JDBC sink, for ``plugin.path``."""
    home = CACHE / "jdbc-sink"
    with exclusive_lock(CACHE / "jdbc-sink.lock"):
        if not home.is_dir():
            fetched, fresh = folder / "fetched", CACHE / "jdbc-sink-unpacked"
            here = Path(__file__).parent
            retrieve(here / "ivy-jdbc.xml", fetched, CACHE, find_java(), print)
            sums = read_checksums((here / "checksums-jdbc.txt").read_text())
            verify_checksums(fetched, sums)
            with tarfile.open(next((fetched / "jdbc").glob("*.tar.gz"))) as tar:
                tar.extractall(fresh, filter="data")
            fresh.rename(home)
    return home


def connector(stack: LocalStack, backlog: Backlog) -> Mapping[str, str]:
    """The JDBC sink's configuration."""
    json = "org.apache.kafka.connect.json.JsonConverter"
    return {
        "connector.class": "io.debezium.connector.jdbc.JdbcSinkConnector",
        "tasks.max": "4",
        "topics": ",".join(backlog.topics),
        "connection.url": f"jdbc:mysql://127.0.0.1:{stack.ports.target}/bench"
        "?allowPublicKeyRetrieval=true&useSSL=false&rewriteBatchedStatements=true",
        "connection.username": USER,
        "connection.password": PASSWORD,
        "insert.mode": "upsert",
        "delete.enabled": "true",
        "primary.key.mode": "record_key",
        "primary.key.fields": "id",
        "schema.evolution": "none",
        "collection.name.format": JDBC.table,
        "batch.size": "2000",
        "consumer.override.max.poll.records": "2000",
        "consumer.override.auto.offset.reset": "earliest",
        "key.converter": json,
        "value.converter": json,
    }


def applied(admin: AdminClient, backlog: Backlog, partitions: int) -> int:
    """Events that the connector has committed."""
    wanted = [TopicPartition(t, p) for t in backlog.topics for p in range(partitions)]
    group = ConsumerGroupTopicPartitions(f"connect-{CONNECTOR}", wanted)
    (done,) = admin.list_consumer_group_offsets([group]).values()
    return sum(max(place.offset, 0) for place in done.result().topic_partitions)


@contextmanager
def running_connect(stack: LocalStack, folder: Path) -> Iterator[ConnectRest]:
    """A Connect worker that knows the JDBC sink."""
    artifacts = resolve(CACHE)
    plugins = folder / "plugins"
    plugins.mkdir()
    (plugins / "jdbc").symlink_to(next(plugin(folder).iterdir()))
    spec = connect_spec(
        replace(artifacts, plugin_path=plugins),
        stack.directory / "connect",
        stack.ports.connect,
        stack.bootstrap_servers,
    )
    stack.add(spec)
    rest = ConnectRest(stack.connect_url)
    try:
        yield rest
    finally:
        rest.close()


def run_jdbc(
    stack: LocalStack, bench: Bench, backlog: Backlog, partitions: int, folder: Path
) -> tuple[float, Mapping[str, Any]]:
    """Seconds from the connector's first row to its last event, and what it used."""
    admin = AdminClient({"bootstrap.servers": stack.bootstrap_servers})
    changed = f"SELECT COUNT(*) FROM {JDBC.sql}"
    before = bench.session.query(changed)
    deadline = time.monotonic() + PATIENCE_S
    with running_connect(stack, folder) as rest:
        rest.create_or_update(CONNECTOR, connector(stack, backlog))
        while bench.session.query(changed) == before:
            _check(rest, deadline)
            time.sleep(0.05)
        with measuring(stack) as (seconds, used):
            while applied(admin, backlog, partitions) < backlog.events:
                _check(rest, deadline)
                time.sleep(0.2)
    return seconds[0], used


def _check(rest: ConnectRest, deadline: float) -> None:
    status = rest.status(CONNECTOR)
    if status is not None and status.is_failed:
        sys.exit(f"the JDBC sink failed: {status.reason(30)}")
    if time.monotonic() > deadline:
        sys.exit(f"the JDBC sink has not applied everything after {PATIENCE_S} s")


def measure(stack: LocalStack, size: Size, folder: Path) -> None:
    """The measurement, on a running stack."""
    bench = Bench(stack)
    schemas = WithSchemas(size.shards)
    backlog = produce(stack, size, schemas)
    for table in (TargetTable("bench", "merged"), JDBC):
        bench.load(table, backlog.base, sorted(backlog.base))
    tasks = bench.tasks(backlog.topics, size.partitions, bench.control.take_epoch())
    with spark(bench) as runner:
        ours_s, ours = apply_backlog(bench, runner, tasks)
    theirs_s, theirs = run_jdbc(stack, bench, backlog, size.partitions, folder)
    print(
        f"beside the JDBC sink: {backlog.events:,} events, 12 columns, JSON with schemas,"
        f" {backlog.size_bytes / backlog.events:.0f} bytes each, {len(tasks)} partitions,"
        f" onto {len(backlog.base):,} rows\n"
    )
    print_ways(
        backlog.events,
        ("Debezium's JDBC sink, 4 tasks, batch 2,000", theirs_s, theirs),
        ("shardmerge, Spark local[2]", ours_s, ours),
    )
    wrong = bench.differences()
    print("both tables are equal" if not wrong else f"the tables differ in {wrong:,} rows")


def main() -> None:
    """Run it and print its table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--rows", type=int, default=30_000, help="in the table before")
    parser.add_argument("--shards", type=int, default=8)
    parser.add_argument("--partitions", type=int, default=2, help="of each shard's topic")
    arguments = parser.parse_args()
    size = Size(
        arguments.events, arguments.rows, arguments.shards, arguments.partitions, (0.6, 0.35, 0.05)
    )
    # Spark's workers are given functions of bench_target by name.
    os.environ["PYTHONPATH"] = os.pathsep.join(
        filter(None, (str(ROOT), os.environ.get("PYTHONPATH")))
    )
    (ROOT / ".local").mkdir(exist_ok=True)
    directory = Path(tempfile.mkdtemp(prefix="bench-", dir=ROOT / ".local"))
    stack = LocalStack(directory, Ports.free(), cache=CACHE)
    try:
        for part in ("target", "kafka"):
            stack.start(part)
        measure(stack, size, directory)
    finally:
        stack.clean()


if __name__ == "__main__":
    main()
