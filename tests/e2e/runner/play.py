"""Plays one scenario against a running line and says whether it ended as it must.

A scenario has a case name of its own (``sc12``) that prefixes all its databases, so that many play
at once. Waiting is polling for what is expected; a scenario has failed when nothing has moved for
a while and it is still not as expected.
"""

from __future__ import annotations

import dataclasses
import re
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import pymysql

from shardmerge.cli.command import command_of, give
from shardmerge.cli.line import Line
from shardmerge.cli.observer import Facts
from shardmerge.cli.union import Table, read_table
from shardmerge.cli.union import compare as compare_union
from shardmerge.connectors.topics_admin import create_topics
from shardmerge.schemas import topics
from shardmerge.schemas.names import ShardId, TargetTable, quote_identifier
from shardmerge.schemas.routing import Mode

from . import compare, read
from .model import ANY, Scenario, Step, pending
from .model import rename as prefixed
from .operators import command_in, unlocks
from .parts import part_event

SQL_MODE = "STRICT_TRANS_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION"
"""The case files' rows were computed in it."""
ALREADY_DONE = (1054, 1060, 1061, 1091)
"""Errors of a statement that was played before: unknown column, column there, index there, gone."""
QUIET_SECONDS = 12.0
"""Nothing moved for so long: what is missing now will not come."""
QUIETEST_SECONDS = 40.0
REREAD_SECONDS = 90.0
"""A connector that leaves a request unanswered is brought on after 30 s; see `RereadWatch`."""
BOUND_SECONDS = 300.0
DRAIN_SECONDS = 90.0
"""Longer than a broker keeps a transaction open whose connector was restarted."""


class Failed(Exception):
    """The scenario did not end as it must; the text says how."""


@dataclass(slots=True)
class Player:
    """One scenario under its case name, on a line.

    ``prepare`` may run before the connectors start: the shards are then read by their snapshot.
    """

    scenario: Scenario
    case: str
    line: Line
    notes: list[str] = field(default_factory=list)
    _played: set[tuple[str, str]] = field(default_factory=set)
    _statements: dict[ShardId, int] = field(default_factory=dict)
    _marks: int = 0
    _paused: bool = False
    _stopped: set[str] = field(default_factory=set)
    # The first wait is for the end of the connectors' snapshots.
    _quiet: float = BOUND_SECONDS
    _connections: dict[str, read.Connection] = field(default_factory=dict)

    @property
    def target(self) -> TargetTable:
        """Where this case's shards are merged."""
        return TargetTable(*f"{self.case}_{self.scenario.target}".split("."))

    @property
    def _databases(self) -> tuple[str, ...]:
        return tuple(f"{self.case}_{name}" for name in self.scenario.databases)

    def _named(self, sql: str) -> str:
        """A statement about this case's databases."""
        return prefixed(sql, self.case, self.scenario.names)

    @property
    def _facts(self) -> Facts:
        return self.line.observer.facts()

    def prepare(self) -> None:
        """Make the databases, the shards, and the rows that are there before replication."""
        self._require_mode()
        for source in self.scenario.sources:
            for database in (*self._databases, f"{self.case}_mark"):
                name = quote_identifier(database)
                self._execute(
                    source, f"CREATE DATABASE {name} CHARACTER SET latin1 COLLATE latin1_bin"
                )
        self._make_row_topics()
        for shard in self.scenario.shards:
            self._use(shard.source, shard.table)
            self._execute(shard.source, self._named(shard.create))
        for step in self.scenario.before:
            self._use(step.source, step.table)
            self._execute(step.source, self._named(step.sql))
        for statement in self.scenario.prepared:
            self._execute("target", self._named(statement))

    def _make_row_topics(self) -> None:
        """The shards' row topics, where the scenario says how many partitions they have."""
        if not self.scenario.partitions:
            return
        kept = {"cleanup.policy": "delete", "retention.ms": "-1", "retention.bytes": "-1"}
        specs = []
        for shard in self.scenario.shards:
            database, table = self._home(shard.table)
            name = topics.row_topic(ShardId(shard.source, database, table))
            specs.append(topics.TopicSpec(name, self.scenario.partitions, 1, kept))
        create_topics(self.line.pipeline.kafka.bootstrap_servers, specs)

    def _home(self, table: str) -> tuple[str, str]:
        """This case's database and the name of a table that may be written without its database."""
        database, _, name = table.replace("`", "").rpartition(".")
        return f"{self.case}_{database or self.scenario.databases[0]}", name

    def _use(self, source: str, table: str) -> None:
        """Let a statement that names no database mean the one of its shard."""
        database = self._home(table)[0] if table else f"{self.case}_{self.scenario.databases[0]}"
        with self._connection(source).cursor() as cursor, suppress(pymysql.OperationalError):
            # A database that the statement makes, or that was dropped, is not there.
            cursor.execute(f"USE {quote_identifier(database)}")

    def play(self) -> None:
        """Play the steps and judge the end.

        Raises:
            Failed: It did not end as it must.
        """
        try:
            self._require_mode()
            self._drained()
            for number, step in enumerate(self.scenario.steps):
                later = self.scenario.steps[number + 1 :]
                try:
                    self._step(step, later)
                except Failed as failure:
                    raise Failed(f"step {step.number or '-'}: {failure}") from None
            self._drained()
            self._judge()
        finally:
            if self._paused:
                self.line.resume_connectors()
            for source in sorted(self._stopped):
                self.line.start_connector(source)
            self._stopped.clear()
            for connection in self._connections.values():
                connection.close()
            self._connections.clear()

    def _require_mode(self) -> None:
        if self.scenario.mode != "none" and self.scenario.mode not in tuple(Mode):
            raise Failed(f"mode {self.scenario.mode} is not known to this version")

    # --- steps

    def _step(self, step: Step, later: tuple[Step, ...]) -> None:
        if step.sql:
            self._statement(step, later)
        elif step.target_sql:
            self._drained()
            self._settle()
            self._by_hand(self._named(step.target_sql))
        elif step.event:
            self._event(step.event)
        elif step.wait:
            self._drained()
        elif step.operator:
            self._operator(step.operator)
        if step.expect:
            self._expect(step, step.expect)

    def _statement(self, step: Step, later: tuple[Step, ...]) -> None:
        shard = self._shard(step)
        if step.is_ddl and not step.refused:
            self._statements[shard] = self._statements.get(shard, 0) + 1
        seen = self._events_of(step.source)
        connection = self._connection(step.source)
        self._use(step.source, step.table)
        with connection.cursor() as cursor:
            cursor.execute("SET timestamp = %s", (step.timestamp or 0,))
        try:
            self._execute(step.source, self._named(step.sql))
        except pymysql.MySQLError as error:
            if step.refused:
                self._refused_rightly(step, error)
                return
            again = (step.source, step.sql) in self._played and error.args[0] in ALREADY_DONE
            if not again:
                raise Failed(f"source {step.source} refused {step.sql!r}: {error}") from None
            self.notes.append(f"step {step.number} repeats a statement that is already done")
            return
        if step.refused:
            raise Failed(f"source {step.source} took {step.sql!r}, which it must refuse")
        self._played.add((step.source, step.sql))
        following = next((s for s in later if s.is_ddl), None)
        turns = following is not None and following.source != step.source
        turns = turns and not self.scenario.any_order
        if step.is_ddl and turns and not (self._paused or step.source in self._stopped):
            # One global order: two sources have none unless this one is decided first.
            self._poll(
                lambda: self._events_of(step.source) > seen and not self._undecided(step.source),
                f"no decision about {step.sql!r}",
            )

    def _by_hand(self, statement: str) -> None:
        try:
            self._execute("target", statement)
        except pymysql.MySQLError as error:
            if error.args[0] not in ALREADY_DONE:
                raise Failed(f"target refused {statement!r}: {error}") from None
            self.notes.append(f"not needed by hand: {statement}")

    @staticmethod
    def _refused_rightly(step: Step, error: pymysql.MySQLError) -> None:
        number = str(error.args[0])
        text = f"{number} {' '.join(map(str, error.args[1:]))}"
        wanted = step.refused
        if wanted not in (ANY, number) and not re.search(re.escape(wanted), text, re.IGNORECASE):
            raise Failed(f"source {step.source} refused {step.sql!r} with {text}, not {wanted}")

    def _event(self, event: str) -> None:
        if event == "random_restart":
            self.line.kill("sink" if int(re.sub(r"\D", "", self.case)) % 2 else "agents")
            return
        found = part_event(event)
        if found is None:
            raise Failed(f"event {event!r} is not known")
        sources = (found.source,) if found.source else self.scenario.sources
        if found.part == "connector":
            for source in sources:
                if found.verb == "stop":
                    self._stopped.add(source)
                    self.line.stop_connector(source)
                elif source in self._stopped:
                    self._stopped.discard(source)
                    self.line.start_connector(source)
                else:
                    self.line.restart_connector(source)
        elif found.part == "source":
            for source in sources:
                self._forget_connection(source)
                self.line.kill_server(source)
        elif found.part in ("kafka", "target"):
            self._forget_connection(found.part)
            self.line.kill_server(found.part)
        elif found.verb != "start":  # the keeper has started it again
            self.line.kill(found.part)

    def _forget_connection(self, server: str) -> None:
        if (connection := self._connections.pop(server, None)) is not None:
            connection.close()

    def _operator(self, command: str) -> None:
        if command == "pause-task test" and not self._paused:
            self.line.pause_connectors()
            self._paused = True
        elif command == "resume-task test" and self._paused:
            self.line.resume_connectors()
            self._paused = False
        elif (said := command_in(command, self.case)) is not None:
            self._command(*said)
        elif kind := unlocks(command):
            self._unlock(kind)
        else:
            # A way around a limit of the original system; the end tells whether it is needed here.
            self.notes.append(f"operator command not given: {command}")

    def _unlock(self, kind: str) -> None:
        """Execute or discard what waits for the target's lock; a conflict's shards are skipped."""
        self._drained()
        while held := sorted(self._facts.held(self.target)):
            waits = self.scenario.mode == Mode.PESSIMISTIC
            self._command(kind if waits else "skip", held[0], "")
            moved = self.line.observer.wait(
                lambda facts, held=held: sorted(facts.held(self.target)) != held,  # type: ignore[misc]
                QUIET_SECONDS,
            )
            if not moved:
                self.notes.append(f"{kind} left {', '.join(map(str, held))} as they are")
                return

    def _command(self, kind: str, shard: ShardId, argument: str) -> None:
        """Give a command about a shard, once everything before it is decided."""
        self._drained()
        pipeline = self.line.pipeline
        said = command_of(pipeline, kind, argument, str(shard), "")
        answer = give(pipeline, said, DRAIN_SECONDS).answer
        if answer is None:
            raise Failed(f"{kind} {shard} is not answered")
        self.notes.append(f"{kind} {shard}: {answer.outcome}: {answer.reason}")

    # --- expectations

    def _expect(self, step: Step, expect: Mapping[str, Any]) -> None:
        if "emitted" in expect:
            self._emitted(step, expect["emitted"])
        if "held" in expect:
            wanted, shard = bool(expect["held"]), self._shard(step)
            self._poll(
                lambda: (shard in self._facts.held(self.target)) == wanted,
                f"{shard} is {'not ' if wanted else ''}held",
            )
        if (wanted_pending := pending(expect)) is not None:
            self._poll(
                lambda: _as_many(len(self._facts.held(self.target)), wanted_pending),
                f"shards that wait: {wanted_pending} expected",
            )
        if expect.get("target_equals_union") is True:
            self._poll_faults(self._union_faults)
            if "rows" in expect:
                self._poll_faults(lambda: self._count_fault(expect["rows"]))
        if "target_rows" in expect:
            self._poll_faults(lambda: self._count_fault(expect["target_rows"]))
        if "target_column_count" in expect:
            count = expect["target_column_count"]
            self._poll(
                lambda: len(self._target_columns()) == count, f"the target has not {count} columns"
            )
        if "target_query" in expect:
            query, shows = self._named(expect["target_query"]), str(expect["shows"])
            self._poll(lambda: shows in self._answer(query), f"{query!r} does not show {shows!r}")
        if "task" in expect:
            self._poll(lambda: not self._facts.held(self.target), "a shard is held")

    def _emitted(self, step: Step, patterns: list[str]) -> None:
        shard, number = self._shard(step), self._statements[self._shard(step)]
        self._poll(lambda: len(self._decisions(shard)) >= number, f"no decision about {step.sql!r}")
        decision = self._decisions(shard)[number - 1]
        # Backticks are left out, so that a pattern reads like the statement.
        found = [
            statement.sql.replace(f"`{self.target.database}`.", "`merged`.").replace("`", "")
            for statement in decision.statements
        ]
        same = len(found) == len(patterns) and all(
            re.search(pattern, text, re.IGNORECASE)
            for pattern, text in zip(patterns, found, strict=True)
        )
        if not same:
            raise Failed(f"emitted {found}, not {patterns}; {decision.outcome}: {decision.reason}")

    # --- the end

    def _judge(self) -> None:
        """Poll until the target is as the scenario's end tells."""
        self._poll_faults(self._end_faults)

    def _end_faults(self) -> list[str]:
        facts = self._facts
        held = facts.held(self.target)
        final = self.scenario.final
        if final.state:
            return self._state_faults(final.state, held)
        if held and self.scenario.ends_in_conflict():
            # The original ends in the conflict, and so does this: it must be told, and the other
            # shards must be whole.
            return self._union_faults(without=frozenset(map(str, held)))
        if held:
            return [f"{shard} is held: {decision.reason}" for shard, decision in held.items()]
        faults = self._progress_faults(facts)
        database, table = self.target.database, self.target.table
        target = self._connection("target")
        content = read_table(target, database, table)
        if content is None:
            return [*faults, f"there is no target {self.target}"]
        shards = self._shards()
        of_shards = frozenset(column for _, shard in shards for column in shard.columns)
        columns = read.columns(target, database, table)
        indexes = read.indexes(target, database, table)
        faults += compare.column_faults(final, columns, of_shards)
        faults += compare.index_faults(final, indexes)
        if final.as_shards:
            faults += self._shard_faults(columns, indexes)
        faults += compare.row_faults(final, content.rows)
        if final.rows is None:
            faults += self._compared(content, shards)
        return faults

    def _shard_faults(
        self, columns: Sequence[compare.FoundColumn], indexes: Sequence[compare.FoundIndex]
    ) -> list[str]:
        """What of the target's schema is not as each shard has it."""
        faults = []
        for name, _ in self._shards():
            source, database, table = re.split(r"[/.]", name)
            server = self._connection(source)
            its_columns = read.columns(server, database, table)
            its_indexes = read.indexes(server, database, table)
            if self.line.pipeline.target.kind != "mysql":
                its_columns = compare.without_spelling(its_columns)
                columns = compare.without_spelling(columns)
            faults += compare.schema_faults(name, its_columns, its_indexes, columns, indexes)
        return faults

    def _state_faults(self, state: str, held: Mapping[ShardId, object]) -> list[str]:
        if state == "locks pending" and held:
            return self._union_faults(without=frozenset(map(str, held)))
        found = re.fullmatch(r"blocked on shard (\d+)", state)
        if found is None:
            return [] if held else [f"no shard is held; expected: {state}"]
        shard = self.scenario.shards[int(found.group(1)) - 1]
        database, _, table = shard.table.partition(".")
        wanted = ShardId(shard.source, f"{self.case}_{database}", table)
        return [] if wanted in held else [f"{wanted} is not held"]

    def _progress_faults(self, facts: Facts) -> list[str]:
        """Statements that the sink still has to execute, rows that it has not applied."""
        progress = facts.progress.get(self.target)
        last = max((d.version for d in facts.of_target(self.target)), default=0)
        if progress is None:
            return [f"the sink has said nothing about {self.target}"]
        faults = [f"{s.state}: {s.sql}: {s.detail}" for s in progress.open]
        faults += [f"{shard} is not read again yet" for shard in facts.unread(self.target)]
        faults += [f"{s.shard} waits: {s.waiting}" for s in progress.shards if s.waiting]
        ends = read.row_ends(self.line.pipeline, [s.shard for s in progress.shards])
        faults += [
            f"rows of {s.shard} are applied up to {s.offset} of {ends[s.shard]}"
            for s in progress.shards
            if not s.waiting and s.offset < ends.get(s.shard, 0)
        ]
        if progress.executed_version < last:
            faults.append(f"executed up to version {progress.executed_version} of {last}")
        return faults

    def _union_faults(self, without: frozenset[str] = frozenset()) -> list[str]:
        content = read_table(self._connection("target"), self.target.database, self.target.table)
        if content is None:
            return [f"there is no target {self.target}"]
        shards = self._shards()
        rest = [(name, shard) for name, shard in shards if name not in without]
        differences = self._compared(content, rest)
        if len(rest) < len(shards):
            # Rows of the held shards are in the target as far as they got.
            return [d for d in differences if not d.startswith(("no shard has", "…"))]
        return list(differences)

    def _compared(self, content: Table, shards: Sequence[tuple[str, Table]]) -> tuple[str, ...]:
        if self.scenario.leave_out:
            shards = [(name, _wanted(shard)) for name, shard in shards]
        column = "_shard" if self.scenario.shard_column else ""
        return compare_union(content, shards, shard_column=column).differences

    def _count_fault(self, wanted: int) -> list[str]:
        content = read_table(self._connection("target"), self.target.database, self.target.table)
        count = len(content.rows) if content else None
        return [] if count == wanted else [f"{count} rows in the target, not {wanted}"]

    # --- waiting

    def _drained(self) -> None:
        """Wait until every schema change of this case has its decisions."""
        self._marks += 1
        mark = f"m_{self._marks}"
        began = time.monotonic()
        for source in self.scenario.sources:
            self._execute(source, f"CREATE TABLE {self.case}_mark.{mark} (id INT PRIMARY KEY)")
        for source in self.scenario.sources:
            self._poll_faults(
                lambda source=source: self._undecided_before(source, mark),  # type: ignore[misc]
                # The line takes the cases in turn: it works for this one as long as it works.
                picture=lambda: len(self._facts.decisions),
                quiet=DRAIN_SECONDS,
            )
        # What a statement's way through the line takes now tells what "nothing moves" means.
        self._quiet = min(max(QUIET_SECONDS, 4 * (time.monotonic() - began)), QUIETEST_SECONDS)

    def _undecided_before(self, source: str, mark: str) -> list[str]:
        database = f"{self.case}_mark"
        for event in self._facts.events.get(source, ()):
            if event.database == database and re.search(rf"\b{mark}\b", event.ddl):
                names = (*self._databases, database)
                open_events = self._facts.undecided(source, names, event.offset)
                return [f"{source}: no decision about {e.ddl[:120]!r}" for e in open_events]
        return [f"{source}: CREATE TABLE {database}.{mark} has not come to Kafka"]

    def _settle(self) -> None:
        """Wait until the target is the union, or until nothing moves any more."""
        try:
            self._poll_faults(self._union_faults)
        except Failed as failure:
            self.notes.append(f"statement by hand on a target that is not the union: {failure}")

    def _poll(self, condition: Callable[[], bool], otherwise: str) -> None:
        self._poll_faults(lambda: [] if condition() else [otherwise])

    def _poll_faults(
        self,
        faults: Callable[[], list[str]],
        picture: Callable[[], object] | None = None,
        quiet: float = 0.0,
    ) -> None:
        """Poll until there are no faults; give up when nothing has moved for a while.

        Args:
            faults: What is not as expected yet.
            picture: Changes while something moves; by default whatever the line does for the case.
            quiet: Seconds without a move that are allowed at least.
        """
        begin = moved = time.monotonic()
        seen: object = None
        while True:
            found = faults()
            if not found:
                return
            now = time.monotonic()
            if (latest := (picture or self._picture)()) != seen or self.line.recovering():
                seen, moved = latest, now
            # A connector that reads a table again asks for its signals one after the other.
            rereads = REREAD_SECONDS if self._facts.unread(self.target) else 0.0
            if now - moved > max(quiet, self._quiet, rereads) or now - begin > BOUND_SECONDS:
                raise Failed("; ".join(found))
            time.sleep(0.2)

    def _picture(self) -> object:
        """Whatever changes while the line works for this case."""
        facts = self._facts
        progress = facts.progress.get(self.target)
        return (
            tuple(len(self._events(source)) for source in self.scenario.sources),
            len(facts.of_target(self.target)),
            None if progress is None else dataclasses.replace(progress, ts_ms=0),
            # A connector reads one table after the other: it works for this case as long as it
            # works for those before it.
            len(facts.notices) if facts.unread(self.target) else 0,
        )

    # --- servers

    def _shard(self, step: Step) -> ShardId:
        # A statement about a database has no table.
        database, table = self._home(step.table or "")
        return ShardId(step.source, database, table)

    def _decisions(self, shard: ShardId) -> list[Any]:
        return [
            d for d in self._facts.of_target(self.target) if d.shard == shard and not d.snapshot
        ]

    def _events(self, source: str) -> list[Any]:
        return [e for e in self._facts.events.get(source, ()) if e.concerns(self._databases)]

    def _events_of(self, source: str) -> int:
        return len(self._events(source))

    def _undecided(self, source: str) -> bool:
        events = self._events(source)
        last = events[-1].offset if events else -1
        return bool(self._facts.undecided(source, self._databases, last))

    def _shards(self) -> list[tuple[str, Any]]:
        connections = [(source, self._connection(source)) for source in self.scenario.sources]
        return read.shards(connections, self._databases, self.scenario.route.tables)

    def _target_columns(self) -> list[Any]:
        return read.columns(self._connection("target"), self.target.database, self.target.table)

    def _answer(self, query: str) -> str:
        with self._connection("target").cursor() as cursor:
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

    def _execute(self, server: str, statement: str) -> None:
        with self._connection(server).cursor() as cursor:
            cursor.execute(statement)

    def _connection(self, server: str) -> read.Connection:
        if server not in self._connections:
            mode = f"SET sql_mode = '{SQL_MODE}', time_zone = '+00:00'"
            self._connections[server] = (
                self.line.connect_target()
                if server == "target"
                else self.line.connect(server, init_command=mode)
            )
        return self._connections[server]


def _as_many(found: int, wanted: bool | int) -> bool:
    """Whether so many shards wait; ``True`` is at least one, ``False`` none."""
    return (found > 0) is wanted if isinstance(wanted, bool) else found == wanted


def _wanted(shard: Table) -> Table:
    kept = tuple(column for column in shard.columns if not column.startswith("secret"))
    rows = (row for row in shard.rows if row["a"] not in (None, "other"))
    return Table(kept, shard.key, tuple({c: row[c] for c in kept} for row in rows))
