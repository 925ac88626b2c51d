"""Rows of a shard on each source that change all the time, and whether the target has them."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from functools import partial
from itertools import count

from shardmerge.connectors.access.mysql import Connection, connect
from shardmerge.local.union import compare, read_table
from shardmerge.schemas.pipeline.settings import Pipeline, Source, Target
from tests.background import Background

ROWS = 12_000
ROUTES = r"""
[[routes]]
database = "app"
table = 'orders_\d'
target = "merged.orders"
[[routes]]
database = "app"
table = 'events_\d'
target = "merged.events"
"""
"""Orders have a key. Events have none: a row that comes twice is seen."""
PATIENCE_S = 150.0
_MARK = 1_000_000_000
_BATCH = 150
_APART = 1_000_000
"""Each traffic writes this far from the one before: the tests share one line."""
_NUMBERS = count()


def opened(server: Source | Target) -> Connection:
    return connect(server, charset="utf8mb4", autocommit=True, connect_timeout=10)


def prepare(pipeline: Pipeline) -> None:
    """The tables, with rows that were there before."""
    for number, source in enumerate(pipeline.sources, 1):
        with opened(source) as connection, connection.cursor() as cursor:
            cursor.execute("CREATE DATABASE app")
            cursor.execute(
                f"CREATE TABLE app.orders_{number} (id BIGINT PRIMARY KEY, n INT, v VARCHAR(40))"
            )
            cursor.execute(f"CREATE TABLE app.events_{number} (n BIGINT, v VARCHAR(40))")
            cursor.execute("SET SESSION cte_max_recursion_depth = 1000000")
            cursor.execute(
                f"INSERT INTO app.orders_{number} WITH RECURSIVE i(n) AS (SELECT 1 UNION ALL"
                f" SELECT n + 1 FROM i WHERE n < {ROWS}) SELECT n * 10 + {number}, n, 'before'"
                " FROM i"
            )


class Traffic(Background):
    """Writes on both sources until its end."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline
        self._from = next(_NUMBERS) * _APART
        self._marks, self._altered = self._from, self._from
        super().__init__(
            *(
                partial(self._write, number, source, random.Random(number))
                for number, source in enumerate(pipeline.sources, 1)
            )
        )

    def passes(self) -> float:
        """Seconds until a row of each source that is written now is on the target."""
        started = time.monotonic()
        self._marks += 1
        wanted = set()
        for number, source in enumerate(self._pipeline.sources, 1):
            mark = _MARK + self._marks * 10 + number
            wanted.add(mark)
            with opened(source) as connection, connection.cursor() as cursor:
                cursor.execute(f"INSERT INTO app.orders_{number} (id, v) VALUES ({mark}, 'mark')")
        until(lambda: wanted <= self._marks_there(), f"marks {wanted}")
        return time.monotonic() - started

    def alter(self) -> None:
        """DDL on each shard, while rows flow: another column each time."""
        self._altered += 1
        for number, source in enumerate(self._pipeline.sources, 1):
            with opened(source) as connection, connection.cursor() as cursor:
                cursor.execute(f"ALTER TABLE app.orders_{number} ADD COLUMN a{self._altered} INT")

    def _marks_there(self) -> set[int]:
        with opened(self._pipeline.target) as connection, connection.cursor() as cursor:
            cursor.execute(
                "SELECT 1 FROM information_schema.tables"
                " WHERE table_schema = 'merged' AND table_name = 'orders'"
            )
            if not cursor.fetchall():
                return set()
            cursor.execute(f"SELECT id FROM merged.orders WHERE id > {_MARK}")
            return {int(row[0]) for row in cursor.fetchall()}

    def _write(self, number: int, source: Source, choice: random.Random) -> None:
        shard, new = f"app.orders_{number}", ROWS + self._from
        with opened(source) as connection, connection.cursor() as cursor:
            while not self.ends.is_set():
                cursor.execute("BEGIN")
                values = []
                for _ in range(_BATCH):
                    new += 1
                    values.append(f"({new * 10 + number}, {new}, 'new')")
                cursor.execute(f"INSERT INTO {shard} (id, n, v) VALUES {', '.join(values)}")
                events = ", ".join(f"({new + each}, 'ä{each}')" for each in range(20))
                cursor.execute(f"INSERT INTO app.events_{number} VALUES {events}")
                low = choice.randrange(1, new)
                cursor.execute(
                    f"UPDATE {shard} SET n = n + 1, v = 'changed' WHERE id BETWEEN {low * 10} AND"
                    f" {low * 10 + 500}"
                )
                cursor.execute(f"DELETE FROM {shard} WHERE id = {low * 10 + number}")
                cursor.execute("COMMIT")
                self.ends.wait(0.3)


def differences(pipeline: Pipeline) -> list[str]:
    """How the target's tables differ from those of the shards now."""
    found: list[str] = []
    with opened(pipeline.target) as target:
        for name in ("orders", "events"):
            shards = []
            for number, source in enumerate(pipeline.sources, 1):
                with opened(source) as connection:
                    table = read_table(connection, "app", f"{name}_{number}")
                assert table is not None
                shards.append((f"{name}_{number}", table))
            merged = read_table(target, "merged", name)
            if merged is None:
                found.append(f"no table merged.{name}")
            else:
                found += compare(merged, shards).differences
    return found


def until(condition: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, f"still not after {PATIENCE_S:.0f} s: {what}"
        time.sleep(0.2)


def until_equal(pipeline: Pipeline) -> None:
    """Wait until the target equals its shards; they must rest."""
    deadline = time.monotonic() + PATIENCE_S
    while found := differences(pipeline):
        assert time.monotonic() < deadline, [text[:300] for text in found]
        time.sleep(0.5)
