"""The agents under everything that ends a worker: every decision once, with the same bytes.

Usage: ``PYTHONPATH=. python -m tests.integration.agents.chaos [--seed 1] [--kills 2]``

On a broker of its own, one pipeline of random schema changes meets, one after the other:

* at each failpoint of each agent, so many workers that kill themselves there, half of which lose
  their disk;
* workers that are killed while they take over, with a slowed seek (the forced recovery race);
* a broker that is killed and started again under a working worker;
* two workers that are killed in turn, so that partitions move.

In the end the topics must hold what the pure folds make of the same source records, byte for byte;
what stands there twice must be equal. Printed are the counts.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from shardmerge.agents.runtime.failpoints import AGENTS, PLACES
from shardmerge.local.servers.stack import LocalStack, Ports
from shardmerge.schemas.pipeline import topics

from .line import PATIENCE_S, Line, wait_for

ROOT = Path(__file__).resolve().parents[3]
SLOW_SEEK = Path(__file__).parent / "slow_seek_worker.py"
CREATE = "CREATE TABLE {} (ID INT PRIMARY KEY, NAME VARCHAR(20))"
SHARDS = ((0, "tbl00"), (0, "tbl01"), (0, "log00"), (1, "tbl02"))


class Chaos:
    """One pipeline that is fed and broken.

    Attributes:
        counts: What was done to it.
    """

    def __init__(self, line: Line, seed: int) -> None:
        self.line = line
        self.counts: Counter[str] = Counter()
        self._chosen = random.Random(seed)
        self._columns: dict[str, list[str]] = {table: [] for _, table in SHARDS}
        self._number = 0
        for source, table in SHARDS:
            line.execute(line.sources[source], CREATE.format(table), snapshot=True)

    def feed(self, count: int) -> None:
        """So many random statements, over the shards of both sources."""
        for _ in range(count):
            source, table = self._chosen.choice(SHARDS)
            self.line.execute(self.line.sources[source], self._statement(table))

    def _statement(self, table: str) -> str:
        self._number += 1
        known = self._columns[table]
        kind = self._chosen.random()
        if kind < 0.1:
            return f"CREATE TABLE other{self._number} (x INT)"
        if known and kind < 0.4:
            column = known.pop(self._chosen.randrange(len(known)))
            return f"ALTER TABLE {table} DROP COLUMN {column}"
        known.append(f"c{self._number}")
        return f"ALTER TABLE {table} ADD COLUMN c{self._number} INT"

    def fail_at(self, place: str, *, lose_data: bool) -> None:
        """A worker that kills itself at the place: ``<agent>.<place>:<passing>``."""
        self.line.start(failpoint=place, wait=False)
        deadline = time.monotonic() + PATIENCE_S
        while self.line.runs():
            if time.monotonic() > deadline:
                raise TimeoutError(f"the worker never came by {place}")
            if self.line.decided() >= self.line.events():
                self.feed(2)
        if lose_data:
            self.line.lose()
        self.counts["kills at failpoints"] += 1
        self.counts["lost disks"] += lose_data

    def race_recovery(self, kills: int) -> None:
        """Workers that are killed while they take over, and one that may work in the end."""
        for moment in ("tables_restored", "offsets_restored")[:kills]:
            self.feed(2)
            seen = self.line.log().count(moment)
            self.line.start(script=SLOW_SEEK, wait=False)
            wait_for(lambda m=moment, s=seen: self.line.log().count(m) > s, moment)  # type: ignore[misc]
            self.line.kill()
            self.counts["kills while recovering"] += 1
        self.line.start(script=SLOW_SEEK, wait=False)
        self.feed(6)
        self.settle()
        self.line.kill()

    def restart_broker(self, broker: LocalStack, times: int) -> None:
        """The broker is killed under the worker; the worker may end by it and is started again.

        A lone broker that dies between the answer to a commit and the commit's marker says after
        its restart that the transaction is complete, and never writes the marker (Kafka 4.3.1,
        with nothing but a producer beside it): nobody can read on until an operator ends that
        transaction. So the sources' markers are waited for; the worker is in its work meanwhile.
        """
        self.line.start()
        for _ in range(times):
            self.feed(6)
            wait_for(self.line.readable, "the markers of the sources' commits")
            broker.kill("kafka")
            broker.start("kafka")
            self.counts["broker restarts"] += 1
            self.settle()
        self.line.kill()

    def rebalance(self, times: int) -> None:
        """Two workers, of which one is killed in turn while both have work."""
        for name in "ab":
            self.line.start(name, wait=False)
        for number in range(times):
            self.feed(6)
            wait_for(lambda: self.line.decided() >= self.line.events() - 5, "a decision")
            victim = "ab"[number % 2]
            if self.line.runs(victim):
                self.line.kill(victim)
            self.line.start(victim, wait=False)
            self.counts["kills with two workers"] += 1
        self.settle("ab")
        for name in "ab":
            if self.line.runs(name):
                self.line.kill(name)

    def settle(self, names: Iterable[str] = ("worker",)) -> None:
        """Wait until everything is decided; what ended meanwhile is started again."""

        def settled() -> bool:
            for name in names:
                if not self.line.runs(name):
                    self.line.start(name, wait=False)
                    self.counts["workers that ended"] += 1
            return self.line.decided() >= self.line.events()

        wait_for(settled, "decisions about everything")

    def finish(self) -> None:
        """An undisturbed worker ends the work; then every byte is compared."""
        if not self.line.runs():
            self.line.start()
        self.settle()
        self.line.check_outputs()
        records = self.line.written(topics.ddl(self.line.pipeline).name)
        self.counts["schema-change events"] = self.line.events()
        self.counts["decisions"] = len({r.key for r in records})
        self.counts["decisions sent twice, with equal bytes"] = len(records) - len(
            {(r.key, r.value) for r in records}
        )


def places(chosen: random.Random, kills: int) -> list[tuple[str, bool]]:
    """Every failpoint, at random passings, and whether the disk is lost."""
    named = [f"{agent}.{place}" for agent in AGENTS for place in PLACES for _ in range(kills)]
    return [
        (f"{name}:{chosen.randint(1, 6)}", bool(number % 2)) for number, name in enumerate(named)
    ]


def main() -> int:
    """Play everything and print the counts."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kills", type=int, default=2, help="workers per failpoint")
    arguments = parser.parse_args()
    (ROOT / ".local").mkdir(exist_ok=True)
    directory = Path(tempfile.mkdtemp(prefix="chaos-agents-", dir=ROOT / ".local"))
    broker = LocalStack(directory, Ports.free(), cache=ROOT / ".local" / "cache")
    broker.start("kafka")
    try:
        line = Line(broker, 1)
        chaos = Chaos(line, arguments.seed)
        for place, lose_data in places(random.Random(arguments.seed), arguments.kills):
            chaos.feed(3)
            chaos.fail_at(place, lose_data=lose_data)
            print(f"killed at {place}{' (disk lost)' if lose_data else ''}", flush=True)
        chaos.race_recovery(2)
        chaos.restart_broker(broker, 2)
        chaos.rebalance(4)
        chaos.finish()
        line.close()
    finally:
        broker.clean()
    for name, count in chaos.counts.items():
        print(f"{count:>8,} {name}")
    print("no decision missing, none besides, each with the bytes of an undisturbed run")
    return 0


if __name__ == "__main__":
    sys.exit(main())
