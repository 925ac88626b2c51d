"""Shards and a target on real servers, with a line of a few lines between them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import pymysql
from pymysql.cursors import Cursor

from shardmerge.cli.validation.inputs.server_rows import ServerRows
from shardmerge.local.servers.mysql import PASSWORD, USER
from shardmerge.schemas.model.names import ShardId, TargetTable
from shardmerge.schemas.pipeline.file import parse_pipeline
from shardmerge.schemas.pipeline.settings import Pipeline
from shardmerge.spark_sink.validation.compared_table import ComparedTable
from shardmerge.spark_sink.validation.table_validation import TableValidation

TARGET = TargetTable("merged", "t")
S1, S2 = ShardId("s1", "app", "t_1"), ShardId("s2", "app", "t_2")


def pipeline(source_port: int, target_port: int, *, maria: str = "") -> Pipeline:
    """Two sources on one server; ``maria`` names the sides that are MariaDB."""
    flavour = 'flavour = "mariadb"\nversion = "10.11"' if "source" in maria else ""
    kind = 'kind = "mariadb"\nversion = "10.11"' if "target" in maria else ""
    sources = "".join(
        f'[[sources]]\nname = "s{n}"\nhost = "127.0.0.1"\nport = {source_port}\nuser = "{USER}"\n'
        f'password = "{PASSWORD}"\nserver_id = {n}\n{flavour}\n'
        for n in (1, 2)
    )
    return parse_pipeline(
        f'[pipeline]\nname = "compare"\n[kafka]\nbootstrap_servers = "127.0.0.1:1"\n'
        f'[connect]\nurl = "http://127.0.0.1:1"\n{sources}'
        f'[target]\nhost = "127.0.0.1"\nport = {target_port}\nuser = "{USER}"\n'
        f'password = "{PASSWORD}"\n{kind}\n'
        '[[routes]]\nsource = "s.*"\ndatabase = "app"\ntable = "t_.*"\n'
        'target = "merged.t"\n',
        {},
    )


def connected(port: int) -> pymysql.Connection[Cursor]:
    return pymysql.connect(
        host="127.0.0.1", port=port, user=USER, password=PASSWORD, autocommit=True,
        charset="utf8mb4", ssl_disabled=True, init_command="SET sql_mode = '', time_zone='+00:00'",
    )  # fmt: skip


def execute(port: int, *statements: str) -> None:
    connection = connected(port)
    try:
        with connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
    finally:
        connection.close()


@dataclass
class ToyLine:
    """Writes to shards, and later the same to the target, in order, from threads of its own.

    A write is two statements: for the shard, and for the target. ``passing`` is the line itself.
    """

    port: int
    delay_s: float = 0.02
    log: list[str] = field(default_factory=list)
    applied: int = 0
    ended: bool = False
    lock: threading.Lock = field(default_factory=threading.Lock)

    def run(
        self, write: Callable[[int], tuple[str, str]], seconds: float
    ) -> list[threading.Thread]:
        def writes() -> None:
            connection, until, number = connected(self.port), time.monotonic() + seconds, 0
            with connection.cursor() as cursor:
                while time.monotonic() < until:
                    own, merged = write(number)
                    with self.lock:
                        cursor.execute(own)
                        self.log.append(merged)
                    number += 1
                    # A row that comes and goes within one look, again and again, is told wrongly.
                    time.sleep(0.01)
            connection.close()
            self.ended = True

        def applies() -> None:
            connection = connected(self.port)
            with connection.cursor() as cursor:
                while not self.ended or self.applied < len(self.log):
                    time.sleep(self.delay_s)
                    for merged in self.log[self.applied : len(self.log)]:
                        cursor.execute(merged)
                        self.applied += 1
            connection.close()

        threads = [threading.Thread(target=each, daemon=True) for each in (writes, applies)]
        for thread in threads:
            thread.start()
        return threads

    def note(self) -> object:
        with self.lock:
            return len(self.log)

    def passed(self, noted: object) -> bool:
        assert isinstance(noted, int)
        until = time.monotonic() + 30
        while self.applied < noted:
            if time.monotonic() > until:
                return False
            time.sleep(0.005)
        return True


def validated(
    table: ComparedTable, servers: ServerRows, line: ToyLine, rows_a_range: int = 20
) -> TableValidation:
    found = TableValidation(table, servers, line, rows_a_range)
    while not found.is_compared:
        found.compare_next()
    while found.doubts:
        assert found.settle()
    return found


def told(found: TableValidation) -> Sequence[tuple[str, ...]]:
    """Kind, key, shard and columns of the differences."""
    return sorted((d.kind.value, *d.key, str(d.shard or ""), *d.columns) for d in found.differences)
