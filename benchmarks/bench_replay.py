"""The sink's own statements once more, made beforehand: what the target alone needs for them."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple, TypeAlias
from unittest.mock import patch

from benchmarks.bench_events import Backlog, Size
from benchmarks.bench_measures import Use, measuring
from benchmarks.bench_target import CORES, STAGED, Bench
from shardmerge.spark_sink.targets.mysql.session import MySqlSession
from shardmerge.spark_sink.targets.mysql.tasks import apply_ranges, connection


class Sent(NamedTuple):
    """A statement. ``data``: what a LOAD DATA reads; None for another statement."""

    sql: str
    data: bytes | None


Unit: TypeAlias = list[Sent]
"""The statements of one transaction, in order."""


def recorded(bench: Bench, size: Size, backlog: Backlog) -> list[Unit]:
    """Apply the backlog to ``STAGED`` in this process; returns the statements on its rows."""
    bench.fill(STAGED, backlog.base)
    tasks_of_units, config = bench.staged(backlog.topics, size.partitions, "recorded")
    units: list[Unit] = []
    execute, load = MySqlSession.execute_strictly, MySqlSession.load

    def executing(session: MySqlSession, sql: str) -> int:
        units[-1].append(Sent(sql, None))
        return execute(session, sql)

    def loading(session: MySqlSession, sql: str, data: bytes | bytearray) -> int:
        units[-1].append(Sent(sql, bytes(data)))
        return load(session, sql, data)

    with (
        patch.object(MySqlSession, "execute_strictly", executing),
        patch.object(MySqlSession, "load", loading),
    ):
        for tasks in tasks_of_units:
            units.append([])
            list(apply_ranges.apply_tasks(tasks, config))
    connection.close_connections()
    return units


def replayed(
    bench: Bench, units: Sequence[Unit], base: dict[int, bytes]
) -> tuple[float, dict[str, Use]]:
    """Seconds of the statements on the table as it was before, by a connection for each core."""
    bench.fill(STAGED, base)
    with ThreadPoolExecutor(CORES) as pool:
        sessions = [MySqlSession(bench.config.target) for _ in range(CORES)]
        with measuring(bench.stack) as (seconds, used):
            shares = [units[number::CORES] for number in range(CORES)]
            list(pool.map(_send, sessions, shares))
    for session in sessions:
        session.close()
    return seconds[0], used


def _send(session: MySqlSession, units: Sequence[Unit]) -> None:
    for unit in units:
        with session.transaction():
            for sql, data in unit:
                if data is None:
                    session.execute_strictly(sql)
                else:
                    session.load(sql, data)
