"""The sink under everything that ends it: every row and every statement once.

Usage: ``PYTHONPATH=. python -m tests.integration.spark.chaos [--seed 1] [--kills 2]
[--tidb USER:PASSWORD@HOST:PORT]``

On an embedded Kafka and a real target, the played sources of one pipeline send rows of two shards,
schema changes with their decisions, statements that change rows, and TRUNCATEs. Meanwhile

* at each failpoint that is passed here so many sinks kill themselves;
* Spark's Python workers kill themselves at each second passing of a task's failpoints;
* Kafka and the target's server are killed and started again under a working sink;
* a second sink takes over from a working one.

A TiDB that is given is the target instead, and is not killed.

In the end the target holds what the sources' events and decisions say, row for row; each event is
counted once in the control tables, and each statement stands there once. Printed are the counts.
"""

from __future__ import annotations

import argparse
import itertools
import pickle
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from shardmerge.local.servers.stack import LocalStack, Ports
from shardmerge.schemas.model.errors import TargetError
from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.records.decisions import Binding, StatementKind, TargetStatement
from shardmerge.spark_sink.process.failpoints import PLACES, SETTING
from tests.running import with_tests
from tests.tidb.running import tidb_target

from .played_line import Line

ROOT = Path(__file__).resolve().parents[3]
PATIENCE_S = 120.0
ELSEWHERE = frozenset({
    "chunk-read", "chunk-written", "chunk-committed", "load-moved", "rows-staged",
    "snapshot-copied", "restart-noted", "exchange-begun", "exchange-staged", "exchanged",
})  # fmt: skip
"""Places of first loads, of snapshots that began again and of rebuilds, which are not played."""
PASSED_ONCE = "epoch-taken"
"""A process comes by here only once."""
TASK_PLACES = ("rows-read", "rows-written", "offsets-moved", "committed")
CREATE = (
    "CREATE TABLE {} (`id` int NOT NULL, `a` int, `f` varchar(194) COLLATE utf8mb4_bin NOT NULL,"
    " PRIMARY KEY (`id`))"
)
ALWAYS = "id a @shard"
FILL = 7


class Chaos:
    """One pipeline that is fed and broken.

    Attributes:
        counts: What was done to it.
    """

    def __init__(self, line: Line, directory: Path, seed: int) -> None:
        self.line = line
        self.counts: Counter[str] = Counter()
        self._chosen = random.Random(seed)
        self._ids = itertools.count(1)
        self._rows: dict[int, tuple[ShardId, int, int | None]] = {}
        """id → shard, a, the value of the newest column: what the target shall hold."""
        self._events = self._statements = self._round = 0
        self._sinks: list[subprocess.Popen[bytes]] = []
        self._pipeline = directory / "pipeline.pickle"
        self._log = directory / "sink.log"
        self.one, self.two = line.shard("one", 2), line.shard("two")
        self._make()

    def _make(self) -> None:
        line = self.line
        line.begin()
        changes = [(shard, line.change(), line.here()) for shard in (self.one, self.two)]
        line.commit()
        binds = (Binding("id#1", "id"), Binding("a#1", "a"), Binding("@shard", "f"))
        sql = CREATE.format(line.target.sql)
        create = TargetStatement(sql, StatementKind.EXPANDING, "", ("table",), binds)
        for shard, offset, place in changes:
            line.decide(shard, offset, place, ALWAYS, *([create] if shard == self.one else []))
        self._statements += 1

    # --- what the sources do

    def feed(self) -> None:
        """One column comes on both shards and another one goes, with rows between the changes.

        The first shard's rows get a value by a statement, the second one is truncated.
        """
        line, new, old = self.line, self._round + 1, self._round
        both = f"{ALWAYS} c{new} c{old}" if old else f"{ALWAYS} c{new}"
        only = f"{ALWAYS} c{new}"
        if old:
            # Nobody has the older column in the end: its values do not count.
            self._rows = {key: (shard, a, None) for key, (shard, a, _) in self._rows.items()}
        line.begin()
        for shard in (self.one, self.two):
            self._write(shard, {f"c{old}": 1} if old else {}, newest=None)
        adds = [(self.one, line.change(), line.here())]
        for key, (shard, a, _) in self._rows.items():
            if shard == self.one:
                self._rows[key] = (shard, a, FILL)
        self._write(self.one, {f"c{new}": new, **({f"c{old}": 1} if old else {})}, newest=new)
        self._truncate(self.two)
        self._write(self.two, {f"c{old}": 1} if old else {}, newest=None)
        adds.append((self.two, line.change(), line.here()))
        self._write(self.two, {f"c{new}": new, **({f"c{old}": 1} if old else {})}, newest=new)
        drops = []
        if old:
            for shard in (self.one, self.two):
                drops.append((shard, line.change(), line.here()))
                self._write(shard, {f"c{new}": new}, newest=new)
        line.commit()
        for shard, offset, place in adds:
            line.decide(shard, offset, place, both, *(self._add(new) if shard == self.one else ()))
        for shard, offset, place in drops:
            line.decide(shard, offset, place, only, *(self._drop(old) if shard == self.two else ()))
        self._statements += 2 + bool(old)
        self._round = new
        self.counts["rounds of changes"] += 1

    def _add(self, number: int) -> tuple[TargetStatement, ...]:
        table, name = self.line.target.sql, f"c{number}"
        subject = f"column:{name}"
        fill = (
            f"UPDATE {table} SET `{name}` = {FILL} WHERE `f` = '{self.one}'"
            f" AND NOT (`{name}` <=> {FILL})"
        )
        return (
            TargetStatement(
                f"ALTER TABLE {table} ADD COLUMN `{name}` int", StatementKind.EXPANDING, "",
                (subject,), (Binding(f"{name}#1", name),),
            ),
            TargetStatement(
                fill, StatementKind.ROWS, "", (subject, f"rows:{self.one}"), shard=self.one
            ),
        )  # fmt: skip

    def _drop(self, number: int) -> tuple[TargetStatement, ...]:
        name = f"c{number}"
        return (
            TargetStatement(
                f"ALTER TABLE {self.line.target.sql} DROP COLUMN `{name}`",
                StatementKind.CONTRACTING, "", (f"column:{name}",), (Binding(f"{name}#1", ""),),
            ),
        )  # fmt: skip

    def _write(self, shard: ShardId, more: dict[str, int], newest: int | None) -> None:
        """Some new rows of a shard, and one of its rows anew."""
        known = [key for key, row in self._rows.items() if row[0] == shard]
        keys = [next(self._ids) for _ in range(self._chosen.randint(1, 6))]
        if known:
            keys.append(self._chosen.choice(known))
        for key in keys:
            value = self._chosen.randint(0, 99)
            partition = key % 2 if shard == self.one else 0
            write = self.line.updates if key in self._rows else self.line.rows
            write(shard, {"id": key, "a": value, **more}, partition=partition)
            self._rows[key] = (shard, value, newest)
            self._events += 1

    def _truncate(self, shard: ShardId) -> None:
        self.line.truncation(shard)
        self._rows = {key: row for key, row in self._rows.items() if row[0] != shard}
        self.counts["truncations"] += 1

    # --- sinks

    def start(self, place: str = "", *, spark: bool = False) -> subprocess.Popen[bytes]:
        """A sink that kills itself there: ``<place>:<passing>``."""
        pipeline = self.line.pipeline
        if spark:
            pipeline = replace(pipeline, sink=replace(pipeline.sink, spark_min_records=1))
        self._pipeline.write_bytes(pickle.dumps(pipeline))
        command = [sys.executable, "-m", "tests.integration.spark.played_sink"]
        command += [str(self._pipeline), *(["--spark"] if spark else [])]
        with self._log.open("ab") as log:
            sink = subprocess.Popen(
                command, stdout=log, stderr=log,
                env={**with_tests(), SETTING: place},
            )  # fmt: skip
        self._sinks.append(sink)
        return sink

    def fail_at(self, place: str) -> None:
        """A sink that kills itself there, while work comes."""
        sink = self.start(place)
        deadline = time.monotonic() + PATIENCE_S
        while sink.poll() is None:
            if time.monotonic() > deadline:
                raise TimeoutError(f"the sink never came by {place}:\n{self.log()[-3_000:]}")
            if self.is_settled():
                self.feed()
            time.sleep(0.1)
        assert sink.returncode == -signal.SIGKILL, self.log()[-3_000:]
        self.counts["sinks killed at failpoints"] += 1

    def fail_workers(self, place: str, passing: int = 2) -> None:
        """Spark's Python workers kill themselves at every such passing of a place.

        Where a worker writes by several connections, ``passing`` is more than these: else none of
        them may get as far as to commit something.
        """
        seen = self.log().count("Spark's job failed")
        sink = self.start(f"{place}:{passing}", spark=True)
        self.settle(sink)
        while self.log().count("Spark's job failed") == seen:
            self.feed()
            self.settle(sink)
        self.end(sink)
        self.counts["Spark jobs whose worker was killed"] += (
            self.log().count("Spark's job failed") - seen
        )

    def restart(self, stack: LocalStack, name: str) -> None:
        """A part of the stack is killed under a working sink, and started again."""
        sink = self.start()
        self.settle(sink)
        if name == "kafka":
            self.feed()
            stack.kill(name)
        else:
            stack.kill(name)
            self.feed()
        time.sleep(2)
        stack.start(name)
        self.settle(sink)
        self.end(sink)
        self.counts[f"restarts of {name}"] += 1

    def take_over(self) -> None:
        """A second sink starts beside a working one: the first is refused and ends."""
        self.feed()  # with nothing to do, it would count as settled before it has started
        first = self.start()
        self.settle(first)
        seen = self.log().count("sink_started")
        self.feed()
        second = self.start()
        deadline = time.monotonic() + PATIENCE_S
        while self.log().count("sink_started") == seen:
            assert time.monotonic() < deadline, self.log()[-3_000:]
            time.sleep(0.1)
        # What comes from here on is the second one's: the first finds that out when it tries.
        self.feed()
        self.settle(second)
        assert first.wait(PATIENCE_S) == 1, self.log()[-3_000:]
        assert "another writer" in self.log()
        self.end(second)
        self.counts["sinks fenced by a newer one"] += 1

    def end(self, sink: subprocess.Popen[bytes]) -> None:
        """Tell a sink to end."""
        sink.terminate()
        assert sink.wait(PATIENCE_S) == 0, self.log()[-3_000:]

    def close(self) -> None:
        """Kill what still runs."""
        for sink in self._sinks:
            if sink.poll() is None:
                sink.kill()
                sink.wait()

    def settle(self, sink: subprocess.Popen[bytes]) -> None:
        """Wait until everything is applied."""
        deadline = time.monotonic() + PATIENCE_S
        while not self.is_settled():
            assert sink.poll() is None, f"the sink ended:\n{self.log()[-3_000:]}"
            if time.monotonic() > deadline:
                raise TimeoutError(f"not everything is applied:\n{self.log()[-3_000:]}")
            time.sleep(0.1)

    # --- what is seen

    def log(self) -> str:
        """What every sink so far has logged."""
        return self._log.read_text(errors="replace") if self._log.exists() else ""

    def is_settled(self) -> bool:
        """Whether every event is applied and every statement executed."""
        return self._applied() >= self._events and self._executed() >= self._statements

    def _applied(self) -> int:
        table = "shared_offsets" if self.line.shared else "offsets"
        return self._number(f"SELECT SUM(row_events) FROM {{}}.{table}")

    def _executed(self) -> int:
        return self._number("SELECT COUNT(*) FROM {}.ddl_journal WHERE state = 'done'")

    def _number(self, sql: str) -> int:
        control = self.line.pipeline.target.control_database
        known = self._try(lambda: self.line.session.query("SHOW DATABASES LIKE %s", (control,)))
        if not known:
            return 0
        found = self._try(lambda: self.line.session.query(sql.format(f"`{control}`")))
        return int(found[0][0] or 0) if found else 0

    def _try(self, query: Callable[[], list[tuple[Any, ...]]]) -> list[tuple[Any, ...]]:
        """What a query finds; nothing while the server is away or the table not made."""
        try:
            return query()
        except TargetError:
            return []

    def finish(self) -> None:
        """An undisturbed sink ends the work; then every row, event and statement is compared."""
        self.feed()
        sink = self.start()
        self.settle(sink)
        self.end(sink)
        expected = [
            (key, a, str(shard), value) for key, (shard, a, value) in sorted(self._rows.items())
        ]
        found = self.line.content()
        assert found == expected, f"{len(found)} rows in the target, {len(expected)} expected"
        assert self.line.columns() == ["id", "a", "f", f"c{self._round}"]
        assert self._applied() == self._events
        assert self._executed() == self._statements
        self.counts["row events, each counted once"] = self._events
        self.counts["statements, each executed once"] = self._statements
        self.counts["rows in the target, as expected"] = len(expected)


def places(seed: int, kills: int) -> list[str]:
    """Every failpoint, at random passings."""
    chosen = random.Random(seed)
    wanted = [place for place in PLACES if place not in ELSEWHERE for _ in range(kills)]
    return [f"{p}:{1 if p == PASSED_ONCE else chosen.randint(1, 3)}" for p in wanted]


def main() -> int:
    """Play everything and print the counts."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kills", type=int, default=2, help="sinks per failpoint")
    parser.add_argument("--tidb", default="", help="USER:PASSWORD@HOST:PORT of a TiDB")
    arguments = parser.parse_args()
    server = tidb_target(arguments.tidb) if arguments.tidb else None
    parts = ("kafka",) if server else ("kafka", "target")
    (ROOT / ".local").mkdir(exist_ok=True)
    directory = Path(tempfile.mkdtemp(prefix="chaos-sink-", dir=ROOT / ".local"))
    stack = LocalStack(directory, Ports.free(), cache=ROOT / ".local" / "cache")
    try:
        for part in parts:
            stack.start(part)
        with (
            closing(Line(stack, server=server)) as line,
            closing(Chaos(line, directory, arguments.seed)) as chaos,
        ):
            for place in places(arguments.seed, arguments.kills):
                chaos.feed()
                chaos.fail_at(place)
                print(f"killed at {place}", flush=True)
            for place in TASK_PLACES:
                chaos.fail_workers(place, 5 if server else 2)
                print(f"workers killed at {place}", flush=True)
            for part in parts:
                chaos.restart(stack, part)
                print(f"{part} killed and started again", flush=True)
            chaos.take_over()
            chaos.finish()
            for name, count in chaos.counts.items():
                print(f"{count:>8,} {name}")
    finally:
        stack.clean()
    print("no row missing, none besides, no event counted twice, no statement executed twice")
    return 0


if __name__ == "__main__":
    sys.exit(main())
