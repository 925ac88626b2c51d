"""What the agents manage: decisions per second, latency, recovery and memory.

Usage: ``python -m benchmarks.agents_speed [--shards 1000] [--wide 10000]
[--parts fold,worker,latency,recovery,takeover]``

* ``fold``: so many shards of one table make the same change at once, in each mode; tracker and
  coordinator as pure folds, without Kafka. Reference: what only reading and writing the same
  records as Avro takes.
* ``worker``: the same through one worker on a broker of its own, from the moment when all changes
  are readable until all decisions are. Reference: a producer that awaits the acknowledgement of
  each of the four records that a change needs one after the other, and does nothing else. Then the
  same as the seconds that an ALTER of all shards at once takes, and as the worker's processor time
  for each change, user and system, the reading for the pages included; the reference is processor
  time of this process for the same changes as pure folds.
* ``latency``: from a schema change's commit in Kafka until its decision is readable, one at a time.
  Reference: from the same commit until the schema change itself is readable.
* ``recovery``: a worker with ``--wide`` shards of 50 columns is killed and started again, from its
  RocksDB tables and without them: from the start of the process until the first new decision is
  readable; and the worker's memory. Reference: the same with two shards.

* ``takeover``: of two workers, the one with the tracker is killed: from the kill until the other
  one's first new decision is readable. The other one had no tables on its disk when it was started.
  Reference: the same with ``SHARDMERGE_AGENTS_TABLE_COPIES=0``, so that it has to read the
  changelogs. (``--wide`` shards of 50 columns.)

Everything else is wall time; a killed worker's partitions are free after its session timeout of
6 s, which is part of the recovery.
"""

from __future__ import annotations

import argparse
import asyncio
import io
import itertools
import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import fastavro
from aiokafka import AIOKafkaProducer

from shardmerge.connectors.kafka.topics_admin import create_topics
from shardmerge.local.servers.stack import LocalStack
from shardmerge.schemas.pipeline.topics import TopicSpec
from shardmerge.schemas.records import codec
from shardmerge.schemas.records.decisions import Outcome
from tests.integration.agents.line import Line, broker_alone
from tests.recorded import Recorded

ROOT = Path(__file__).resolve().parents[1]
MODES = ("optimistic", "pessimistic")
NARROW = ", ".join(f"c{i} varchar(40)" for i in range(1, 6))
WIDE = ", ".join(f"c{i} varchar(40) NOT NULL DEFAULT ''" for i in range(1, 50))
CHANGE = "ALTER TABLE tbl{} ADD COLUMN n int"
LATENCIES = 200
BOUND_S = 3_600.0
RECORDS_PER_CHANGE = 4
"""A change alone needs so many: each of the two agents puts it at hand, then sends the answer."""

_numbers = itertools.count(1)
_ROUTES = """
[[routes]]
database = "shop"
table = 'tbl\\d+'
target = "merged.tbl"
"""


def tell(what: str, figure: float, unit: str, reference: float, ratio: float) -> None:
    """One row of the table."""
    print(f"{what:<44}{figure:>12,.1f} {unit:<6}{reference:>12,.1f} {ratio:>8.2f}", flush=True)


def folded(mode: str, shards: int) -> tuple[Recorded, dict[tuple[str, int], int], float]:
    """One change of each shard as pure folds.

    Returns:
        All records, how many there were in each partition before the changes, and the processor
        seconds of the changes.
    """
    made = Recorded(mode=mode)
    for number in range(shards):
        ddl = f"CREATE TABLE tbl{number} (id bigint PRIMARY KEY, {NARROW})"
        made.execute(f"s{1 + number % 2}", ddl, snapshot=True)
    before = {place: len(records) for place, records in made.records.items()}
    started = time.process_time()
    for number in range(shards):
        made.execute(f"s{1 + number % 2}", CHANGE.format(number))
    return made, before, time.process_time() - started


def fold(shards: int) -> None:
    """Decisions per second of processor time, of the folds alone."""
    for mode in MODES:
        made, before, seconds = folded(mode, shards)
        written = [
            record.value
            for place, records in made.records.items()
            for record in records[before[place] :]
            if record.value is not None and record.value.startswith(b"\xc3\x01")
        ]
        reference = shards / avro_s(written)
        rate = shards / seconds
        tell(f"fold, {mode}: {shards:,} shards", rate, "1/s", reference, rate / reference)


def avro_s(written: Sequence[bytes]) -> float:
    """Processor seconds to read and write records as Avro, without what the codec remembers."""
    schemas = {
        header: fastavro.parse_schema(json.loads(text)) for _, header, text in codec.contracts()
    }
    started = time.process_time()
    for data in written:
        header, body = data[: codec.HEADER_BYTES], io.BytesIO(data[codec.HEADER_BYTES :])
        datum = fastavro.schemaless_reader(body, schemas[header], None)
        fastavro.schemaless_writer(io.BytesIO(), schemas[header], datum)
    return time.process_time() - started


@contextmanager
def line(stack: LocalStack, mode: str = "optimistic") -> Iterator[Line]:
    """A pipeline with two sources and one running worker."""
    made = Line(stack, next(_numbers), mode=mode, routes=_ROUTES)
    try:
        made.start()
        yield made
    finally:
        made.close()


def until(condition: Callable[[], bool], what: str) -> None:
    """Poll until the condition holds."""
    deadline = time.monotonic() + BOUND_S
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"still no {what} after {BOUND_S:.0f} s")


def create(made: Line, shards: int, columns: str) -> None:
    """Snapshots of so many shards, halves on two sources, all decided."""
    for half, source in enumerate(made.sources):
        statements = [
            f"CREATE TABLE tbl{number} (id bigint PRIMARY KEY, {columns})"
            for number in range(half, shards, 2)
        ]
        made.execute(source, *statements, snapshot=True, together=500)
    until(lambda: made.decided() >= made.events(), "decided snapshots")


def worker(stack: LocalStack, shards: int) -> None:
    """Decisions per second through a worker."""
    reference = asyncio.run(acknowledged(stack, shards)) / RECORDS_PER_CHANGE
    for mode in MODES:
        with line(stack, mode) as made:
            create(made, shards, NARROW)
            used = processor_s(made)
            for half, source in enumerate(made.sources):
                changes = [CHANGE.format(number) for number in range(half, shards, 2)]
                made.execute(source, *changes, together=shards)
            started = time.monotonic()
            until(lambda made=made: made.decided() >= made.events(), "decisions")  # type: ignore[misc]
            seconds = time.monotonic() - started
            busy = processor_s(made) - used
            changed = sum(
                d.outcome is Outcome.EMIT and d.version > shards for d in made.decisions()
            )
        if not changed:
            raise AssertionError("the target was never changed")
        what, rate = f"{mode}: {shards:,} shards", shards / seconds
        tell(f"worker, {what}", rate, "1/s", reference, rate / reference)
        tell(
            f"ALTER at once, {what}", seconds, "s", shards / reference, seconds * reference / shards
        )
        per_change, alone = 1000 * busy / shards, 1000 * folded(mode, shards)[2] / shards
        tell(f"processor a change, {what}", per_change, "ms", alone, per_change / alone)


async def acknowledged(stack: LocalStack, count: int) -> float:
    """Records per second of a producer that awaits each acknowledgement."""
    create_topics(stack.kafka, [TopicSpec("bench-acknowledged", 1, 1)])
    producer = AIOKafkaProducer(
        bootstrap_servers=stack.bootstrap_servers, acks=-1, compression_type="gzip"
    )
    await producer.start()
    try:
        await producer.send_and_wait("bench-acknowledged", b"x" * 700)
        started = time.monotonic()
        for _ in range(count):
            await producer.send_and_wait("bench-acknowledged", b"x" * 700)
        return count / (time.monotonic() - started)
    finally:
        await producer.stop()


def latency(stack: LocalStack, shards: int) -> None:
    """Milliseconds from a change's commit to its decision."""
    with line(stack) as made:
        create(made, shards, NARROW)
        follower = made.follow(made.sources[0])
        waits: list[float] = []
        references: list[float] = []
        for number in range(LATENCIES):
            ddl = f"ALTER TABLE tbl0 ADD COLUMN l{number} int"
            made.execute(made.sources[0], ddl)
            started = time.monotonic()
            until(lambda: follower.poll(0.001) is not None, "readable schema change")
            references.append(time.monotonic() - started)
            until(lambda: made.decided(wait_s=0.001) >= made.events(), "decision")
            waits.append(time.monotonic() - started)
        follower.close()
    for name, part in (("p50", 0.5), ("p99", 0.99)):
        at = min(int(part * LATENCIES), LATENCIES - 1)
        figure, reference = 1000 * sorted(waits)[at], 1000 * sorted(references)[at]
        tell(f"latency {name}: {shards:,} shards", figure, "ms", reference, figure / reference)


def recovery(stack: LocalStack, shards: int) -> None:
    """Seconds until a killed worker decides again, and its memory."""
    small = _recoveries(stack, 2)
    large = _recoveries(stack, shards)
    what = f"{shards:,} shards of 50 columns"
    for name, figure in large.items():
        unit = "MiB" if "memory" in name else "s"
        tell(f"{name}: {what}", figure, unit, small[name], figure / small[name])


def _recoveries(stack: LocalStack, shards: int) -> dict[str, float]:
    figures: dict[str, float] = {}
    with line(stack) as made:
        started = time.monotonic()
        create(made, shards, WIDE)
        figures["first snapshot"] = time.monotonic() - started
        figures["memory, grown"] = memory_mib(made)
        for name, lose_data in (("warm", False), ("cold", True)):
            made.kill(lose_data=lose_data)
            made.execute(made.sources[0], f"ALTER TABLE tbl0 ADD COLUMN {name} int")
            started = time.monotonic()
            made.start(wait=False)
            until(lambda: made.decided() >= made.events(), "decision after a restart")
            figures[f"recovery, {name}"] = time.monotonic() - started
            figures[f"memory, {name}"] = memory_mib(made)
    return figures


def takeover(stack: LocalStack, shards: int) -> None:
    """Seconds until another worker decides, with copies of the tables and without."""
    with line(stack) as made:
        create(made, shards, WIDE)
        reference = _takeover(made, "bare", copies=False)
        figure = _takeover(made, "copied", copies=True)
    tell(f"takeover: {shards:,} shards of 50 columns", figure, "s", reference, figure / reference)


def _takeover(made: Line, name: str, *, copies: bool) -> float:
    """Start another worker on an empty disk, and kill the one with the tracker."""
    made.table_copies = copies
    made.start(name)
    mine = f"{made.pipeline.name}.commands/0"

    def running() -> list[str]:
        return [each for each in made.supervisor.names() if made.runs(each)]

    def trackers() -> list[str]:
        return [each for each in running() if mine in _partitions(made, each)]

    # The newcomer may be given the tracker: then the other one is made to take it over.
    until(lambda: len(trackers()) == 1, "a worker with the tracker")
    (holder,) = trackers()
    (other,) = set(running()) - {holder}
    if other != name:
        made.kill(other, lose_data=True)
        made.start(other)
    if copies:
        until(lambda: "tables_copied" in made.log(other).rpartition("worker_started")[2], "copies")
    started = time.monotonic()
    made.kill(holder)
    made.execute(made.sources[0], f"ALTER TABLE tbl0 ADD COLUMN {name} int")
    until(lambda: made.decided() >= made.events(), "decision of another worker")
    return time.monotonic() - started


def _partitions(made: Line, worker: str) -> str:
    """The partitions that a worker was last given."""
    return made.log(worker).rpartition("partitions_assigned")[2].partition("\n")[0]


def processor_s(made: Line) -> float:
    """The processor time that the worker has used, user and system."""
    text = Path(f"/proc/{made.supervisor.pid('worker')}/stat").read_text(encoding="ascii")
    user, system = text.rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def memory_mib(made: Line) -> float:
    """The worker's resident memory."""
    status = Path(f"/proc/{made.supervisor.pid('worker')}/status").read_text(encoding="ascii")
    kib = next(row.split()[1] for row in status.splitlines() if row.startswith("VmRSS:"))
    return int(kib) / 1024


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shards", type=int, default=1_000)
    parser.add_argument("--wide", type=int, default=10_000)
    parser.add_argument("--parts", default="fold,worker,latency,recovery,takeover")
    arguments = parser.parse_args()
    parts = arguments.parts.split(",")
    print(f"{'':<44}{'measured':>12} {'':<6}{'reference':>12} {'ratio':>8}")
    if "fold" in parts:
        fold(arguments.shards)
    if set(parts) & {"worker", "latency", "recovery", "takeover"}:
        with broker_alone("bench-agents-") as stack:
            if "worker" in parts:
                worker(stack, arguments.shards)
            if "latency" in parts:
                latency(stack, arguments.shards)
            if "recovery" in parts:
                recovery(stack, arguments.wide)
            if "takeover" in parts:
                takeover(stack, arguments.wide)
    return 0


if __name__ == "__main__":
    sys.exit(main())
