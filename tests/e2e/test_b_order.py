"""No row before its DDL, none lost: DDL and rows in a tight loop on two shards of two sources."""

from __future__ import annotations

import threading

import pytest

from shardmerge.local.line import Line
from shardmerge.local.union import compare, read_table
from shardmerge.schemas.model.names import TargetTable

from .counted import count

ITERATIONS = 120  # on each of two shards, so 240 of ALTER and INSERT in all
TARGET = TargetTable("order_merged", "t")


def churn(line: Line, source: str, first_id: int, failures: list[str]) -> None:
    """Each iteration adds a column and writes a row that has it; each fourth drops an older one."""
    with line.connect(source) as connection, connection.cursor() as cursor:
        for number in range(ITERATIONS):
            try:
                cursor.execute(f"ALTER TABLE order_app.t_1 ADD COLUMN c{number} INT")
                cursor.execute(
                    f"INSERT INTO order_app.t_1 (id, c{number}) VALUES (%s, %s)",
                    (first_id + number, number),
                )
                if number % 4 == 3 and number > 5:
                    cursor.execute(f"ALTER TABLE order_app.t_1 DROP COLUMN c{number - 5}")
                    cursor.execute(
                        f"UPDATE order_app.t_1 SET c{number} = -1 WHERE id = %s", (first_id,)
                    )
            except Exception as error:
                failures.append(f"{source}, iteration {number}: {error}")
                raise


@pytest.mark.timeout(900)
def test_ddl_and_rows_in_a_tight_loop_end_equal(line: Line) -> None:
    for source in ("s1", "s2"):
        with line.connect(source) as connection, connection.cursor() as cursor:
            cursor.execute("CREATE DATABASE order_app")
            cursor.execute("CREATE TABLE order_app.t_1 (id INT PRIMARY KEY)")
    failures: list[str] = []
    threads = [
        threading.Thread(target=churn, args=(line, source, start, failures))
        for source, start in (("s1", 0), ("s2", 1_000_000))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []

    def difference() -> list[str]:
        held = line.observer.facts().held(TARGET)
        assert held == {}, "the loop holds nothing: every change is comparable"
        if (rows := count(line, TARGET)) != 2 * ITERATIONS:
            return [f"{rows} rows"]
        with line.connect_target() as connection:
            target = read_table(connection, TARGET.database, TARGET.table)
        assert target is not None
        shards = []
        for source in ("s1", "s2"):
            with line.connect(source) as connection:
                shard = read_table(connection, "order_app", "t_1")
            assert shard is not None
            assert len(shard.rows) == ITERATIONS
            shards.append((source, shard))
        columns = set(shards[0][1].columns) | set(shards[1][1].columns)
        found = list(compare(target, shards).differences)
        if set(target.columns) != columns:
            found.append(f"columns {set(target.columns) ^ columns}")
        return found

    assert line.poll(difference, seconds=600) == []

    def unfinished() -> list[str]:
        progress = line.observer.facts().progress[TARGET]
        found = [f"{statement.state}: {statement.sql}" for statement in progress.open]
        return found + [f"{s.shard} waits: {s.waiting}" for s in progress.shards if s.waiting]

    assert line.poll(unfinished, seconds=60) == []
    # A row that came before its column would have been refused by the target, and told so here.
    log = line.log_path("sink").read_text(encoding="utf-8")
    refused = [x for x in log.splitlines() if "refused" in x and str(TARGET) in x]
    assert refused == []
