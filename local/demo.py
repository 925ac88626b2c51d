"""The demo: three shards go through six DDL statements, live, and the target follows.

``play`` works on any running line, so the end-to-end tests use it too; with ``chaos`` it kills the
agents' worker, the sink's driver and the Connect worker on the way.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import click
import pymysql
from pymysql.cursors import Cursor

from shardmerge.connectors.kafka.observer import Facts
from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.records.decisions import Decision, Outcome

from .line import Line
from .threeshards import CREATE, DATABASE, SHARDS, STEPS, TARGET, DemoStep, Writer
from .union import Comparison, compare, read_table

Say = Callable[[str], None]

EXISTING = 2_000
"""Rows of each shard before replication starts."""
BURST = (60, 30, 10)
"""Inserts, updates and deletes on each shard before, between and after the steps."""
LAST_BURST = 5_000
"""Rows inserted on each shard at the end, for the rate."""
KILLED_AFTER = {1: "agents", 2: "connect", 3: "sink"}
"""With chaos: index of a step → the part that is killed right after it, before it is decided."""
BOUND_SECONDS = 60.0
_NOT_MADE_YET = (1049, 1146)
"""MySQL's errors for an unknown database and an unknown table."""
CHAOS_BOUND_SECONDS = 240.0


@dataclass(frozen=True, slots=True)
class Report:
    """What the demo found.

    Attributes:
        as_expected: Whether each step's statements on the target were the expected ones.
        comparison: Target against the union of the shards.
        twice: Statements that the target received more than once, by its own log.
    """

    as_expected: bool
    comparison: Comparison
    twice: tuple[str, ...]

    @property
    def good(self) -> bool:
        """Whether all of it is as it must be."""
        return self.as_expected and self.comparison.equal and not self.twice


class Demo:
    """The example's shards on a line.

    ``prepare`` makes them and fills them; call it before the connectors start, so that their
    snapshot reads the rows that are there. ``play`` does the rest.
    """

    def __init__(self, line: Line, say: Say = click.echo) -> None:
        self._line = line
        self._say = say
        self._writers = [Writer(index) for index in range(len(SHARDS))]

    def prepare(self) -> None:
        """Make the three shards with their existing rows."""
        for source in sorted({shard.source for shard in SHARDS}):
            with self._line.connect(source) as connection, connection.cursor() as cursor:
                cursor.execute(f"CREATE DATABASE {DATABASE}")
        for writer in self._writers:
            table = f"{writer.shard.database}.{writer.shard.table}"
            self._execute(writer.shard, CREATE.format(table=table), writer.insert(EXISTING))

    def play(self, chaos: bool = False) -> Report:
        """Play the steps, print a line for each, compare at the end."""
        bound = CHAOS_BOUND_SECONDS if chaos else BOUND_SECONDS
        with self._line.connect_target() as target, target.cursor() as cursor:
            # The target's own log of statements proves that none came twice.
            cursor.execute("SET GLOBAL log_output = 'TABLE', GLOBAL general_log = 'ON'")
        started = time.monotonic()
        self._snapshot(bound)
        self._say(
            "DDL follows, with inserts, updates and deletes on all shards before and after it.\n"
        )
        self._say(f"{'shard':<16}{'position':<24}{'decision':<10}{'ms':>7}  target DDL")
        good = True
        for number, step in enumerate(STEPS):
            self._burst()
            good &= self._step(number, step, bound, chaos)
        self._burst()
        good &= self._debts_paid(bound)
        comparison, rate = self._last_burst(bound)
        twice = self._executed_twice()
        self._tell_end(comparison, twice, rate, time.monotonic() - started)
        return Report(good, comparison, twice)

    # --- steps

    def _snapshot(self, bound: float) -> None:
        """Wait until the rows from before replication are in the target."""
        begin = time.monotonic()
        wanted = EXISTING * len(SHARDS)
        while self._count_target() < wanted and time.monotonic() < begin + bound:
            time.sleep(0.1)
        found = self._count_target()
        self._say(
            f"\n{found:,} of {wanted:,} existing rows of {len(SHARDS)} shards are in {TARGET} "
            f"after {time.monotonic() - begin:.0f} s, read by the sink."
        )

    def _step(self, number: int, step: DemoStep, bound: float, chaos: bool) -> bool:
        shard = SHARDS[step.shard]
        before = len(_decided(self._line.observer.facts(), shard))
        begin = time.monotonic()
        self._execute(shard, step.sql)
        self._writers[step.shard].altered(step.action)
        if chaos:
            self._burst()
            if number in KILLED_AFTER:
                part = KILLED_AFTER[number]
                self._line.kill(part)
                self._say(f"{'':<16}kill -9: {part}")
        self._line.observer.wait(lambda facts: len(_decided(facts, shard)) > before, bound)
        facts = self._line.observer.facts()
        decided = _decided(facts, shard)
        if len(decided) <= before:
            self._say(f"{shard.table:<16}{'-':<24}no decision within {bound:.0f} s: {step.sql}")
            return False
        decision = decided[before]
        ended = facts.seen_at[str(decision.id)]
        note = ""
        if decision.statements:
            executed = self._line.observer.wait(lambda facts: _executed(facts, decision), bound)
            ended = time.monotonic()
            note = "" if executed else "  (still waits for rows)"
        statements = tuple(statement.sql for statement in decision.statements)
        as_expected = step.matches(statements)
        self._say(
            f"{str(shard).split('.')[-1]:<16}{decision.position!s:<24}{decision.outcome:<10}"
            f"{(ended - begin) * 1000:>7.0f}  {'; '.join(statements) or 'nothing to do'}{note}"
        )
        self._say(f"{'':<16}{step.action}: {decision.reason}")
        if decision.outcome == Outcome.HOLD:
            self._say(f"{'':<16}held: {decision.hint}")
        if not as_expected:
            self._say(f"{'':<16}expected: {step.emitted or 'nothing'}")
        return as_expected

    def _burst(self) -> None:
        inserts, updates, deletes = BURST
        for writer in self._writers:
            statements = [writer.insert(inserts), *writer.update(updates), *writer.delete(deletes)]
            self._execute(writer.shard, *statements)

    def _debts_paid(self, bound: float) -> bool:
        """Wait until the sink has nothing left to execute."""
        paid = self._line.observer.wait(
            lambda facts: (
                (progress := facts.progress.get(TARGET)) is not None
                and not progress.open
                and progress.executed_version >= max(d.version for d in facts.of_target(TARGET))
            ),
            bound,
        )
        if not paid:
            progress = self._line.observer.facts().progress.get(TARGET)
            self._say(f"statements still open: {progress.open if progress else 'no progress told'}")
        return paid

    # --- the end

    def _last_burst(self, bound: float) -> tuple[Comparison, float]:
        begin = time.monotonic()
        for writer in self._writers:
            self._execute(writer.shard, writer.insert(LAST_BURST))
        wanted = self._count_shards()
        deadline = begin + bound
        # Counting is cheap; rows are compared once the count is right.
        while self._count_target() != wanted and time.monotonic() < deadline:
            time.sleep(0.02)
        rate = LAST_BURST * len(SHARDS) / (time.monotonic() - begin)
        comparison = self._compare()
        while not comparison.equal and time.monotonic() < deadline:
            time.sleep(0.5)
            comparison = self._compare()
        return comparison, rate

    def _compare(self) -> Comparison:
        with self._line.connect_target() as connection:
            target = read_table(connection, TARGET.database, TARGET.table)
        shards = []
        for shard in SHARDS:
            with self._line.connect(shard.source) as connection:
                content = read_table(connection, shard.database, shard.table)
            if content is not None:
                shards.append((str(shard), content))
        if target is None:
            return Comparison(0, (f"there is no table {TARGET}",))
        return compare(target, shards)

    def _count_shards(self) -> int:
        total = 0
        for shard in SHARDS:
            with self._line.connect(shard.source) as connection:
                total += _count(connection, shard.database, shard.table)
        return total

    def _count_target(self) -> int:
        with self._line.connect_target() as connection:
            return _count(connection, TARGET.database, TARGET.table)

    def _executed_twice(self) -> tuple[str, ...]:
        """Statements of the decisions that the target's log holds more than once."""
        statements = [
            statement.sql
            for decision in self._line.observer.facts().of_target(TARGET)
            for statement in decision.statements
            if not decision.snapshot
        ]
        with self._line.connect_target() as connection, connection.cursor() as cursor:
            cursor.execute(
                "SELECT CONVERT(argument USING utf8mb4) FROM mysql.general_log "
                "WHERE command_type = 'Query' AND argument LIKE 'ALTER%%'"
            )
            given = [" ".join(str(text).split()) for (text,) in cursor.fetchall()]
            cursor.execute("SET GLOBAL general_log = 'OFF'")
        return tuple(
            sql
            for sql in dict.fromkeys(statements)
            if given.count(" ".join(sql.split())) > statements.count(sql)
        )

    def _tell_end(
        self, comparison: Comparison, twice: tuple[str, ...], rate: float, seconds: float
    ) -> None:
        self._say("")
        if comparison.equal:
            self._say(
                f"equal: {comparison.rows:,} rows of {len(SHARDS)} shards are in {TARGET}, "
                "compared row by row by primary key"
            )
        else:
            self._say("NOT equal:")
            for difference in comparison.differences:
                self._say(f"  {difference}")
        for statement in twice:
            self._say(f"executed more than once: {statement}")
        changes = sum(writer.changes for writer in self._writers)
        self._say(
            f"{rate:,.0f} rows/s from INSERT to visible in the target (last {LAST_BURST:,} per "
            f"shard); {changes:,} row changes in {seconds:.0f} s"
        )

    def _execute(self, shard: ShardId, *statements: str) -> None:
        with self._line.connect(shard.source) as connection, connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)


def _decided(facts: Facts, shard: ShardId) -> list[Decision]:
    """Decisions about the shard's streamed changes, oldest first."""
    return [d for d in facts.of_target(TARGET) if d.shard == shard and not d.snapshot]


def _executed(facts: Facts, decision: Decision) -> bool:
    progress = facts.progress.get(TARGET)
    return (
        progress is not None
        and progress.executed_version >= decision.version
        and all(statement.version != decision.version for statement in progress.open)
    )


def _count(connection: pymysql.Connection[Cursor], database: str, table: str) -> int:
    with connection.cursor() as cursor:
        try:
            cursor.execute(f"SELECT COUNT(*) FROM {database}.{table}")
        except (pymysql.ProgrammingError, pymysql.OperationalError) as error:
            if error.args[0] not in _NOT_MADE_YET:
                raise
            return -1
        found = cursor.fetchone()
    assert found is not None
    return int(found[0])
