"""One scenario on a line: its databases and its target under its case name, and what they hold.

A scenario has a case name of its own (``sc12``) that prefixes all its databases, so that many play
at once.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import pymysql

from shardmerge.connectors.kafka.observer import Facts
from shardmerge.connectors.kafka.topics_admin import create_topics
from shardmerge.local.line import Line
from shardmerge.schemas.model.names import ShardId, TargetTable, quote_identifier
from shardmerge.schemas.model.policies import Mode
from shardmerge.schemas.pipeline import topics

from . import read
from .model import Scenario, Step
from .model import rename as prefixed

SQL_MODE = "STRICT_TRANS_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION"
"""The case files' rows were computed in it."""


class Failed(Exception):
    """The scenario did not end as it must; the text says how."""


@dataclass(slots=True)
class Stage:
    """A scenario, its case name, and the line that it is played on."""

    scenario: Scenario
    case: str
    line: Line
    _connections: dict[str, read.Connection] = field(default_factory=dict)

    @property
    def target(self) -> TargetTable:
        """Where this case's shards are merged."""
        return TargetTable(*f"{self.case}_{self.scenario.target}".split("."))

    @property
    def databases(self) -> tuple[str, ...]:
        """This case's databases on every source."""
        return tuple(f"{self.case}_{name}" for name in self.scenario.databases)

    def named(self, sql: str) -> str:
        """A statement about this case's databases."""
        return prefixed(sql, self.case, self.scenario.names)

    @property
    def facts(self) -> Facts:
        """What is known of the line now."""
        return self.line.observer.facts()

    def prepare(self) -> None:
        """Make the databases, the shards, and the rows that are there before replication."""
        self.require_mode()
        for source in self.scenario.sources:
            for database in (*self.databases, f"{self.case}_mark"):
                name = quote_identifier(database)
                self.execute(
                    source, f"CREATE DATABASE {name} CHARACTER SET latin1 COLLATE latin1_bin"
                )
        self._make_row_topics()
        for shard in self.scenario.shards:
            self.use(shard.source, shard.table)
            self.execute(shard.source, self.named(shard.create))
        for step in self.scenario.before:
            self.use(step.source, step.table)
            self.execute(step.source, self.named(step.sql))
        for statement in self.scenario.prepared:
            self.execute("target", self.named(statement))

    def _make_row_topics(self) -> None:
        """The shards' row topics, where the scenario says how many partitions they have."""
        if not self.scenario.partitions:
            return
        kept = {"cleanup.policy": "delete", "retention.ms": "-1", "retention.bytes": "-1"}
        specs = []
        for shard in self.scenario.shards:
            database, table = self.home(shard.table)
            name = topics.row_topic(ShardId(shard.source, database, table))
            specs.append(topics.TopicSpec(name, self.scenario.partitions, 1, kept))
        create_topics(self.line.pipeline.kafka, specs)

    def require_mode(self) -> None:
        """Raise ``Failed`` where the mode of the scenario is not known."""
        if self.scenario.mode != "none" and self.scenario.mode not in tuple(Mode):
            raise Failed(f"mode {self.scenario.mode} is not known to this version")

    def home(self, table: str) -> tuple[str, str]:
        """This case's database and the name of a table that may be written without its database."""
        database, _, name = table.replace("`", "").rpartition(".")
        return f"{self.case}_{database or self.scenario.databases[0]}", name

    def use(self, source: str, table: str) -> None:
        """Let a statement that names no database mean the one of its shard."""
        database = self.home(table)[0] if table else f"{self.case}_{self.scenario.databases[0]}"
        with self.connection(source).cursor() as cursor, suppress(pymysql.OperationalError):
            # A database that the statement makes, or that was dropped, is not there.
            cursor.execute(f"USE {quote_identifier(database)}")

    def shard(self, step: Step) -> ShardId:
        """The shard that a step's statement is about."""
        # A statement about a database has no table.
        database, table = self.home(step.table or "")
        return ShardId(step.source, database, table)

    def decisions(self, shard: ShardId) -> list[Any]:
        """The decisions about a shard, but for those of snapshots."""
        return [d for d in self.facts.of_target(self.target) if d.shard == shard and not d.snapshot]

    def events(self, source: str) -> list[Any]:
        """The schema changes of a source that concern this case."""
        return [e for e in self.facts.events.get(source, ()) if e.concerns(self.databases)]

    def undecided(self, source: str) -> bool:
        """Whether one of them has not all of its decisions."""
        events = self.events(source)
        last = events[-1].offset if events else -1
        return bool(self.facts.undecided(source, self.databases, last))

    def shards(self) -> list[tuple[str, Any]]:
        """The shards' names and contents, as the sources have them."""
        connections = [(source, self.connection(source)) for source in self.scenario.sources]
        return read.shards(connections, self.databases, self.scenario.route.tables)

    def target_columns(self) -> list[Any]:
        """The columns of the target."""
        return read.columns(self.connection("target"), self.target.database, self.target.table)

    def answer(self, query: str) -> str:
        """What the target's server answers to a query, as text; an error's text."""
        with self.connection("target").cursor() as cursor:
            try:
                cursor.execute(query)
            except pymysql.MySQLError as error:
                return str(error)
            names = [entry[0] for entry in cursor.description or ()]
            return "\n".join(
                f"{name}: {value}"
                for row in cursor.fetchall()
                for name, value in zip(names, row, strict=True)
            )

    def execute(self, server: str, statement: str) -> None:
        """Run a statement on a source, or on ``target``."""
        with self.connection(server).cursor() as cursor:
            cursor.execute(statement)

    def connection(self, server: str) -> read.Connection:
        """The connection to a source, or to ``target``; made when it is needed."""
        if server not in self._connections:
            mode = f"SET sql_mode = '{SQL_MODE}', time_zone = '+00:00'"
            self._connections[server] = (
                self.line.connect_target()
                if server == "target"
                else self.line.connect(server, init_command=mode)
            )
        return self._connections[server]

    def forget_connection(self, server: str) -> None:
        """End a connection, because its server is about to be killed."""
        if (connection := self._connections.pop(server, None)) is not None:
            connection.close()

    def close(self) -> None:
        """End every connection."""
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()
