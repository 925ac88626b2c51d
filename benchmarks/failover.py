"""How long rows or DDL stand when a part is killed, and whether a row is lost or comes twice.

Usage: ``python -m benchmarks.failover [--parts sink,agents,source:5,connect,watchdog]
[--rounds 20]``

A line of its own: two shards on two servers, two sinks with ``--standby``, two agents' workers, the
watchdog, and writers that insert, change and delete all the time. Each round kills one process with
SIGKILL (not its children), waits until the pipeline has recovered, and starts the killed one again,
which waits then:

* ``sink``: the one that writes. Recovered: a row that was written after the kill is in the target.
* ``agents``: the worker that decides. Recovered: a column that was added after the kill is there.
* ``source``: the first source's server, when its replica has everything. Then the replica is
  promoted, and ``shardmerge source move`` called. Recovered: as for the sink, with a row that was
  written to the replica.
* ``connect``: the only Connect worker, which is started again at once. Recovered: as for the sink.
* ``watchdog``: the process that runs with ``--create``, while a source is away and the task of its
  connector has failed. Whatever started it starts it again. Then the source comes back. Recovered:
  as for the sink, with a row of that source: the new watchdog has started its task.

At the end the tables are compared, one with a primary key and one without: there a row that came
twice would be there twice.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

from shardmerge.connectors.connect.connect_rest import ConnectRest
from shardmerge.connectors.debezium.connector_names import connector_name
from shardmerge.local.sigterm import end_on_sigterm
from tests.line_in_twos import ROOT, LineInTwos, compared
from tests.line_writers import wait
from tests.replicated_source import ReplicatedSource

PARTS = ("sink", "agents", "source", "connect", "watchdog")


def sink_rounds(made: LineInTwos, rounds: int) -> Iterator[float]:
    """Kill the sink that writes."""
    for _ in range(rounds):
        active = made.active_sink()
        time.sleep(random.uniform(0.5, 2.5))
        killed = made.kill(active)
        for writer in made.writers:
            made.until_row(writer, writer.last)
        yield time.monotonic() - killed
        made.again(active)


def agents_rounds(made: LineInTwos, rounds: int) -> Iterator[float]:
    """Kill the agents' worker that has the tracker, then add a column to a shard."""
    for number in range(rounds):
        worker = made.deciding_worker()
        time.sleep(random.uniform(0.5, 2.5))
        killed = made.kill(worker)
        column = f"k{time.time_ns() % 10**9}_{number}"
        made.writers[1].at.run(f"ALTER TABLE app.tbl ADD {column} INT")
        made.until_column(column)
        yield time.monotonic() - killed
        made.until_both_wait()
        made.again(worker)


def source_rounds(made: LineInTwos, rounds: int) -> Iterator[float]:
    """Kill a source's server and let its replica take over."""
    source = ReplicatedSource(made)
    writer = source.writer
    for _ in range(rounds):
        source.follow()
        time.sleep(1)
        source.rest()
        killed = source.kill_primary()
        source.promote()
        last = writer.last
        assert source.move().outcome == "moved"
        made.until_row(writer, last)
        yield time.monotonic() - killed
        source.start_again()


def connect_rounds(made: LineInTwos, rounds: int) -> Iterator[float]:
    """Kill the Connect worker, and start it again."""
    for _ in range(rounds):
        time.sleep(random.uniform(0.5, 2.5))
        killed = made.kill("connect")
        last = [writer.last for writer in made.writers]
        made.stack.start("connect")
        for writer, after in zip(made.writers, last, strict=True):
            made.until_row(writer, after)
        yield time.monotonic() - killed


def watchdog_rounds(made: LineInTwos, rounds: int) -> Iterator[float]:
    """Kill the watchdog while the second source is away and its connector's task has failed."""
    writer, pipeline = made.writers[1], made.line.pipeline
    name = connector_name(pipeline, pipeline.sources[1])
    for _ in range(rounds):
        time.sleep(random.uniform(0.5, 2.5))
        writer.rest()
        made.kill("source2")
        with closing(ConnectRest.of(pipeline.connect)) as rest:
            rest.restart(name)  # a task that starts while its server is down fails at once
            wait(partial(_has_failed, rest, name), "failed task")
        killed, last = made.kill_watchdog(), writer.last
        made.stack.start("source2")
        writer.go_on()
        made.until_row(writer, last)
        yield time.monotonic() - killed


def _has_failed(rest: ConnectRest, name: str) -> bool:
    status = rest.status(name)
    return status is not None and status.is_failed


ROUNDS = {
    "sink": sink_rounds,
    "agents": agents_rounds,
    "source": source_rounds,
    "connect": connect_rounds,
    "watchdog": watchdog_rounds,
}


def main() -> int:
    """Run the rounds and print the table; the exit code tells whether rows were lost or doubled."""
    end_on_sigterm()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--parts", default=",".join(PARTS), help="PART or PART:ROUNDS, by commas")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--json", action="store_true", help="the seconds of each round, too")
    options = parser.parse_args()
    (ROOT / ".local").mkdir(exist_ok=True)
    directory = Path(tempfile.mkdtemp(prefix="failover-", dir=ROOT / ".local"))
    made = LineInTwos(directory)
    bad, ended = 0, False
    try:
        made.until_both_wait()
        print("| part | kills | s p50 | s max | lost | doubled | rows written |")
        print("|---|---|---|---|---|---|---|", flush=True)
        for words in options.parts.split(","):
            part, _, rounds = words.partition(":")
            seconds = []
            for each in ROUNDS[part](made, int(rounds or options.rounds)):
                seconds.append(each)
                print(f"{part} {len(seconds)}: {each:.1f} s", file=sys.stderr, flush=True)
            lost, doubled = compared(made)
            bad += lost + doubled
            if bad:
                print(made.connectors(), file=sys.stderr, flush=True)
            rows = sum(len(writer.at.run("SELECT v FROM app.log")) for writer in made.writers)
            p50, most = statistics.median(seconds), max(seconds)
            print(
                f"| {part} | {len(seconds)} | {p50:.1f} | {most:.1f} | {lost} | {doubled} |"
                f" {rows:,} |",
                flush=True,
            )
            if options.json:
                print(json.dumps({part: [round(each, 2) for each in seconds]}), flush=True)
        ended = True
    finally:
        made.close(keeps_files=bool(bad) or not ended)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
