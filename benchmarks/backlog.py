"""A whole backlog, MySQL to target, beside what Debezium alone makes of one of the same size.

Writes a backlog into two sources while their connectors pause; lets the connectors work it off
into Kafka while agents and sink stand still (the reference: Debezium's own rate on this machine);
then the same with everything running, until the sink has committed the last row. As many changes
come before, without a clock. The table is of the median round. In the end the target is compared
with the union of the shards.

Two sources keep two cores busy by themselves; of one, a connector's single thread is what limits.
Where there are no more cores, what agents, sink and target use is taken from Debezium:
``--apart`` gives the servers, Debezium and Kafka one core, both alone and in the whole line, and
everything else another. The ratio then says whether the rows are applied as fast as they come.

    python -m benchmarks.backlog [--events 400000] [--partitions 4] [--sources 1|2] [--apart]
        [--rounds 3] [--mix 60/35/5] [--tidb USER:PASSWORD@HOST:PORT]
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, TypeAlias

from benchmarks.bench_events import COLUMNS, KEYS_PER_SHARD
from benchmarks.bench_measures import Round, Use, measuring, pin, print_rounds, tidb_address
from shardmerge.connectors.connect.connect_rest import ConnectRest
from shardmerge.local.keeper import AGENTS, SINK
from shardmerge.local.line import Line
from shardmerge.local.servers.stack import LocalStack
from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.pipeline.first_rows import DEBEZIUM, first_rows_by
from shardmerge.schemas.pipeline.routing import RoutingRule
from shardmerge.schemas.pipeline.settings import Target
from shardmerge.schemas.pipeline.topics import row_topic
from shardmerge.spark_sink.barrier.partitions import Partition
from shardmerge.spark_sink.kafka.offsets import OffsetReader
from shardmerge.spark_sink.targets.mysql.control import ControlStore
from shardmerge.spark_sink.targets.mysql.session import MySqlAddress, MySqlSession

ROOT = Path(__file__).resolve().parents[1]
ROUTES = (RoutingRule(".*", "app", r"tbl\d+", "merged", "tbl"),)
SHARDS_OF = {1: (("s1", "tbl00"), ("s1", "tbl01")), 2: (("s1", "tbl00"), ("s2", "tbl01"))}
"""Number of sources → source and table of each shard."""
Shards: TypeAlias = Sequence[tuple[str, str]]
ROWS_PER_STATEMENT = 1_000
LOOK_S = 0.2
"""How often is looked how far it is: what looking costs is taken from what is measured."""
STILL_S = 3.0
"""Nothing moved for so long: the backlog is worked off."""
PATIENCE_S = 900.0
FIRST_CORE = ("source1", "source2", "connect", "kafka")
"""What ``--apart`` gives the first core."""


def pause(line: Line) -> None:
    """Pause the connectors, and wait until none sends a row any more."""
    line.connectors.pause_all()
    with closing(ConnectRest.of(line.pipeline.connect)) as rest:
        for name in rest.connectors():
            while (found := rest.status(name)) is None or any(
                task.state != "PAUSED" for task in found.tasks
            ):
                time.sleep(LOOK_S)


def write(line: Line, shards: Shards, events: int, mix: Sequence[float], first: int) -> int:
    """A backlog of so many row changes, half of each shard; keys from ``first`` on.

    Args:
        line: With the sources.
        shards: To write to.
        events: How many changes.
        mix: Shares of inserts, updates, deletes.
        first: Key.

    Returns:
        How many row changes that makes, after rounding.
    """
    written = 0
    for number, (source, table) in enumerate(shards):
        start = number * KEYS_PER_SHARD + first
        inserts, updates, deletes = (int(events * share / len(shards)) for share in mix)
        with line.connect(source) as connection, connection.cursor() as cursor:
            for at in range(start, start + inserts, ROWS_PER_STATEMENT):
                rows = ", ".join(
                    f"({key}, {key % 9_973}, 'new', {key % 89_989}.25, {key % 50},"
                    f" 'customer{key}@example.org', 'ordered by customer {key % 9_973}',"
                    " '2026-03-01 10:20:30.123', '2026-03-01 10:20:30.123456', '2026-04-01',"
                    f" {key % 1_000}.5, {key % 2})"
                    for key in range(at, min(at + ROWS_PER_STATEMENT, start + inserts))
                )
                cursor.execute(f"INSERT INTO app.{table} VALUES {rows}")
            for at in range(start, start + updates, ROWS_PER_STATEMENT):
                to = min(at + ROWS_PER_STATEMENT, start + updates) - 1
                cursor.execute(
                    f"UPDATE app.{table} SET status = 'paid', amount = amount + 1,"
                    f" note = CONCAT(note, ', paid') WHERE id BETWEEN {at} AND {to}"
                )
            cursor.execute(
                f"DELETE FROM app.{table} WHERE id BETWEEN {start} AND {start + deletes - 1}"
            )
        written += inserts + updates + deletes
    return written


def partitions(shards: Shards, reader: OffsetReader) -> list[Partition]:
    """Of the shards' row topics."""
    counts = reader.partitions([row_topic(ShardId(s, "app", table)) for s, table in shards])
    return [Partition(topic, number) for topic, count in counts.items() for number in range(count)]


def worked_off(
    where: Callable[[], Mapping[Any, int]],
    ends: Callable[[], Mapping[Any, int]],
    records: int = 0,
    begin: Callable[[], None] = lambda: None,
) -> float:
    """Seconds from ``begin`` until ``where`` stands still, the silence in the end not counted.

    Args:
        where: How far it is.
        ends: How far there is to go, as it is now.
        records: So many come at least. Where transactions end counts in Kafka as well, and is
            seen before a connector that was resumed has sent its first row.
        begin: Lets the records come.

    Raises:
        TimeoutError: Fewer records come, or it never ends.
    """
    first = last = where()
    begun = moved = time.perf_counter()
    begin()
    while time.perf_counter() - begun < PATIENCE_S:
        time.sleep(LOOK_S)
        if (now := where()) != last:
            last, moved = now, time.perf_counter()
        elif (
            sum(last.values()) - sum(first.values()) >= records
            and time.perf_counter() - moved > STILL_S
            and ends() == last
        ):
            return moved - begun
    raise TimeoutError(f"the backlog is not worked off after {PATIENCE_S:.0f} s: {last}")


@contextmanager
def standing_still(line: Line) -> Iterator[None]:
    """Agents and sink do nothing meanwhile; the worker ends by it and is started again."""
    stack = LocalStack(line.directory)
    groups = [os.getpgid(pid) for name in (AGENTS, SINK) if (pid := stack.status()[name])]
    for group in groups:
        os.killpg(group, signal.SIGSTOP)
    try:
        yield
    finally:
        for group in groups:
            os.killpg(group, signal.SIGCONT)


@contextmanager
def applied(line: Line) -> Iterator[Callable[[], dict[Any, int]]]:
    """Asks for the offsets that the sink has committed with their rows, over one connection."""
    target = line.pipeline.target
    session = MySqlSession(MySqlAddress.of(target))
    try:
        control = ControlStore(session, target.control_database, line.pipeline.name)
        yield lambda: dict(control.offsets())
    finally:
        session.close()


def differing(line: Line, shards: Shards) -> int:
    """Rows that are not the same in the target and in the union of the shards."""
    sql = "SELECT id, CONCAT_WS('|', customer, status, amount, quantity, email, note, created," \
        " changed, due, score, flag) FROM {}"  # fmt: skip
    rows: set[tuple[Any, ...]] = set()
    for source, table in shards:
        with line.connect(source) as connection, connection.cursor() as cursor:
            cursor.execute(sql.format(f"app.{table}"))
            rows |= set(cursor.fetchall())
    with line.connect_target() as connection, connection.cursor() as cursor:
        cursor.execute(sql.format("merged.tbl"))
        return len(rows ^ set(cursor.fetchall()))


def tidb_target(text: str) -> Target:
    """``[target]`` of a pipeline that merges into a TiDB; what an earlier run left there goes."""
    address = tidb_address(text)
    session = MySqlSession(address)
    version = ".".join(map(str, session.facts.version))
    server = (address.host, address.port, address.user, address.password)
    target = Target(*server, kind="tidb", version=version)
    for database in (target.control_database, "merged"):
        session.execute(f"DROP DATABASE IF EXISTS {database}")
    session.close()
    return target


def main() -> int:
    """Run it and print its table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--events", type=int, default=400_000)
    parser.add_argument("--partitions", type=int, default=4, help="of each shard's topic")
    parser.add_argument("--sources", type=int, default=2, choices=(1, 2))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--apart", action="store_true", help="Debezium has a core of its own")
    parser.add_argument("--mix", default="60/35/5", help="percent of inserts, updates, deletes")
    parser.add_argument("--tidb", help="USER:PASSWORD@HOST:PORT of one that is the target")
    arguments = parser.parse_args()
    mix = [int(share) / 100 for share in arguments.mix.split("/")]
    target = tidb_target(arguments.tidb) if arguments.tidb else None
    shards = SHARDS_OF[arguments.sources]
    (ROOT / ".local").mkdir(exist_ok=True)
    directory = Path(tempfile.mkdtemp(prefix="backlog-", dir=ROOT / ".local"))
    line = Line(
        directory,
        routes=ROUTES,
        row_partitions=arguments.partitions,
        target=target,
        access=partial(first_rows_by, DEBEZIUM),
    )

    def prepare() -> None:
        for source, table in shards:
            with line.connect(source) as connection, connection.cursor() as cursor:
                cursor.execute("CREATE DATABASE IF NOT EXISTS app")
                cursor.execute(f"CREATE TABLE app.{table} ({COLUMNS})")

    try:
        line.start(prepare=prepare)
        reader = OffsetReader(line.pipeline.kafka)

        def published() -> dict[Partition, int]:
            return reader.stable_ends(partitions(shards, reader))

        starts = count(0, arguments.events)

        def write_backlog() -> int:
            pause(line)
            return write(line, shards, arguments.events, mix, next(starts))

        def whole_line() -> tuple[float, dict[str, Use]]:
            written = write_backlog()
            with applied(line) as offsets, measuring(stack) as (_, used):
                return worked_off(offsets, published, written, line.connectors.resume_all), used

        def debezium_alone() -> tuple[float, dict[str, Use]]:
            written = write_backlog()
            with standing_still(line), measuring(stack) as (_, used):
                return worked_off(published, published, written, line.connectors.resume_all), used

        stack = LocalStack(line.directory)
        if arguments.apart:
            for name, pid in stack.status().items():
                if pid:
                    pin(pid, 0 if name in FIRST_CORE else 1)
            os.sched_setaffinity(0, {1})
        # Java needs as many changes to become as fast as it gets.
        whole_line()
        rounds: list[Round] = []
        for _ in range(arguments.rounds):
            reference = debezium_alone()
            with applied(line) as offsets:
                worked_off(offsets, published)
            line.wait_ready()
            rounds.append(Round(whole_line(), reference))
        print(
            f"backlog: {arguments.events:,} row changes ({arguments.mix}) in"
            f" {arguments.sources} source(s),{' into a TiDB,' if target else ''}"
            f" {arguments.partitions} partitions per shard"
            f"{', sources, Debezium and Kafka on a core of their own' if arguments.apart else ''}\n"
        )
        print_rounds(
            arguments.events,
            rounds,
            "the whole line, MySQL to target",
            "Debezium alone, MySQL to Kafka",
        )
        if wrong := differing(line, shards):
            sys.exit(f"target and shards differ in {wrong} rows")
        print("the target is the union of the shards")
    finally:
        line.stop()
        line.clear()
    return 0


if __name__ == "__main__":
    sys.exit(main())
