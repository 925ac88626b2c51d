"""One source under a real connector and a real watchdog, with writers, and what its topics hold."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from shardmerge.connectors.connect.connect_rest import ConnectRest
from shardmerge.connectors.debezium.connector_names import connector_name
from shardmerge.connectors.debezium.signals import signal_database
from shardmerge.connectors.deploy import deploy_connectors
from shardmerge.local.servers.processes import ProcessSpec
from shardmerge.local.servers.stack import LocalStack
from shardmerge.schemas.ddl.grammar import ServerContext
from shardmerge.schemas.model.names import SIGNAL_TABLE, ShardId
from shardmerge.schemas.pipeline.file import parse_pipeline
from tests.one_source import pipeline_of

from .chaos_rows import Tally, compare, longest_wait
from .chaos_schemas import Folded, fold, judge_places, judge_schemas, server_context
from .chaos_watch import TopicWatch
from .chaos_writer import Journal, TableWriter, connect

OTHERS = ("other1", "other2")
"""Tables with traffic that no case touches."""
_PATIENCE_S = 120.0
PLAIN = "CREATE TABLE `{}` (id INT PRIMARY KEY, n INT, a VARCHAR(20), b VARCHAR(20))"


class ChaosLine:
    """A source: a database of its own, its connector, its watchdog, two tables with traffic.

    Args:
        stack: Has Kafka and Connect, and the server under ``server``.
        server: Name of the server's process.
        port: Of the server.
        number: Unique within the stack.
        seed: Of what is written.
        pause_s: Longest pause of each writer between two rows.
    """

    def __init__(
        self, stack: LocalStack, server: str, port: int, number: int, *, seed: int, pause_s: float
    ) -> None:
        self.stack, self.server, self.port, self.pause_s = stack, server, port, pause_s
        self.source, self.database = f"chaos_s{number}", f"chaos{number}"
        self.journal = Journal()
        self.executed: Counter[str] = Counter()
        self._seed = seed
        self.query("CREATE DATABASE " + self.database)
        for table in OTHERS:
            self.query(PLAIN.format(f"{self.database}`.`{table}"))
        self.context: ServerContext = server_context(self.query)
        self.pipeline = parse_pipeline(self._pipeline_text(number), {})
        self.connector = connector_name(self.pipeline, self.pipeline.sources[0])
        self.rest = ConnectRest(stack.connect_url)
        deploy_connectors(self.pipeline, self.rest)
        self._wait_described()
        self.watch = TopicWatch(stack.bootstrap_servers, self.source, self.database)
        self.watch.add(*OTHERS)
        self.writers: list[TableWriter] = []
        for table in OTHERS:
            self.writer(table).start()
        self._watchdog = f"watchdog{number}"
        file = self._pipeline_file(number)
        command = ("-m", "shardmerge.connectors.watchdog", "--pipeline", str(file))
        stack.add(
            ProcessSpec(self._watchdog, (sys.executable, *command), env={"PYTHONSAFEPATH": "1"})
        )

    def query(self, sql: str) -> tuple[tuple[object, ...], ...]:
        """Rows of a statement's answer, by a session of its own: some cases restart the server."""
        with connect(self.port) as connection, connection.cursor() as cursor:
            cursor.execute(sql)
            return tuple(cursor.fetchall())

    def writer(self, table: str) -> TableWriter:
        """A writer of a table that exists; it is stopped with the line."""
        number = self._seed + len(self.writers)
        made = TableWriter(
            self.port, self.database, table, self.journal, seed=number, pause_s=self.pause_s
        )
        self.writers.append(made)
        return made

    def done(self, writer: TableWriter) -> None:
        """Stop a writer."""
        self.writers.remove(writer)
        writer.stop()

    def wait_read(self, bound_s: float) -> bool:
        """Whether the last change of every table was readable within a bound."""
        deadline = time.monotonic() + bound_s
        while True:
            last = {c.table: (c.table, c.operation, c.number) for c in self.journal.changes()}
            seen = {(s.table, s.operation, s.number) for s in self.watch.seen()}
            if set(last.values()) <= seen:
                return True
            if time.monotonic() > deadline:
                return False
            time.sleep(0.1)

    def wait_told(self, table: str) -> None:
        """Wait until every statement on a table is readable."""
        deadline = time.monotonic() + _PATIENCE_S
        while self._fold().changes[table] < self.executed[table]:
            assert time.monotonic() < deadline, f"not readable: the statements on {table}"
            time.sleep(0.05)

    def longest_wait(self, since_s: float) -> float | None:
        """The longest that a row committed after a moment took to be readable."""
        return longest_wait(self.journal.changes(), self.watch.seen(), since_s)

    def judge_rows(self) -> tuple[Tally, list[str]]:
        """Everything that was written so far against the row topics."""
        tally = Tally()
        return tally, compare(self.journal.changes(), self.watch.seen(), tally)

    def judge(self) -> tuple[Tally, list[str], Folded]:
        """Everything that was written and executed so far against the topics."""
        tally, told = self.judge_rows()
        folded = self._fold()
        told += judge_schemas(
            folded, self.executed, self.query, self.context, tally,
            source=self.source, database=self.database,
        )  # fmt: skip
        told += judge_places(folded, self.watch.seen(), tally)
        return tally, told + folded.told, folded

    def close(self) -> None:
        """Stop what belongs to the line; its topics and its database stay."""
        for writer in list(self.writers):
            self.done(writer)
        self.watch.close()
        self.stack.stop(self._watchdog)
        self.rest.delete(self.connector)
        self.rest.close()

    @property
    def log(self) -> Path:
        """What the watchdog says."""
        return self.stack.supervisor.log_path(self._watchdog)

    def _wait_described(self) -> None:
        """Wait until the first snapshot described every table: what comes later is streamed."""
        tables = {ShardId(self.source, self.database, table) for table in OTHERS}
        signals = signal_database(self.pipeline, self.pipeline.sources[0])
        tables.add(ShardId(self.source, signals, SIGNAL_TABLE))
        deadline = time.monotonic() + _PATIENCE_S
        while True:
            known = self._fold().schemas
            if tables <= known.keys():
                return
            assert time.monotonic() < deadline, f"not described: {tables - known.keys()}"
            time.sleep(0.2)

    def _fold(self) -> Folded:
        servers = self.stack.bootstrap_servers
        return fold(servers, self.source, self.database, self.context)

    def _pipeline_file(self, number: int) -> Path:
        file = self.stack.directory / f"pipeline{number}.toml"
        file.write_text(self._pipeline_text(number))
        return file

    def _pipeline_text(self, number: int) -> str:
        version = ".".join(map(str, self.context.version))
        return pipeline_of(
            self.stack,
            f"chaos{number}",
            source=self.source,
            port=self.port,
            server_id=6000 + number,
            database=self.database,
            target_port=self.port,
            flavour=self.context.flavour,
            version=version,
        )


def connector_facts(line: ChaosLine) -> dict[str, Any]:
    """What Connect says of the line's connector: state, trace, committed offset."""
    status = line.rest.status(line.connector)
    answer = _get(line.rest, f"/connectors/{line.connector}/offsets")
    return {
        "state": None if status is None else [t.state for t in status.tasks],
        "trace": "" if status is None else "\n".join(t.trace for t in status.tasks),
        "offset": [entry["offset"] for entry in answer.get("offsets", ())],
    }


def _get(rest: ConnectRest, path: str) -> dict[str, Any]:
    call: Callable[..., Any] = rest._call
    found: dict[str, Any] = call("GET", path).json()
    return found
