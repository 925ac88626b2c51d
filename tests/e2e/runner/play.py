"""Plays one scenario against a running line and says whether it ended as it must.

Waiting is polling for what is expected; a scenario has failed when nothing has moved for a while
and it is still not as expected.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

import pymysql

from shardmerge.cli.command import command_of, give
from shardmerge.local.line import Line
from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.model.policies import Mode

from .ending import end_faults, union_faults
from .expectations import Expectations
from .model import ANY, Scenario, Step
from .operators import command_in, unlocks
from .parts import part_event
from .stage import Failed, Stage
from .waiting import DRAIN_SECONDS, QUIET_SECONDS, Waiting

ALREADY_DONE = (1054, 1060, 1061, 1091)
"""Errors of a statement that was played before: unknown column, column there, index there, gone."""


@dataclass(slots=True)
class Player:
    """One scenario under its case name, on a line.

    ``prepare`` may run before the connectors start: the shards are then read by their snapshot.
    """

    scenario: Scenario
    case: str
    line: Line
    notes: list[str] = field(default_factory=list)
    _stage: Stage = field(init=False)
    _waiting: Waiting = field(init=False)
    _played: set[tuple[str, str]] = field(default_factory=set)
    _statements: dict[ShardId, int] = field(default_factory=dict)
    _paused: bool = False
    _stopped: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._stage = Stage(self.scenario, self.case, self.line)
        self._waiting = Waiting(self._stage)

    def prepare(self) -> None:
        """Make the databases, the shards, and the rows that are there before replication."""
        self._stage.prepare()

    def play(self) -> None:
        """Play the steps and judge the end.

        Raises:
            Failed: It did not end as it must.
        """
        try:
            self._stage.require_mode()
            self._waiting.drained()
            for number, step in enumerate(self.scenario.steps):
                later = self.scenario.steps[number + 1 :]
                try:
                    self._step(step, later)
                except Failed as failure:
                    raise Failed(f"step {step.number or '-'}: {failure}") from None
            self._waiting.drained()
            self._waiting.poll_faults(lambda: end_faults(self._stage))
        finally:
            if self._paused:
                self.line.connectors.resume_all()
            for source in sorted(self._stopped):
                self.line.connectors.start(source)
            self._stopped.clear()
            self._stage.close()

    def _step(self, step: Step, later: tuple[Step, ...]) -> None:
        if step.sql:
            self._statement(step, later)
        elif step.target_sql:
            self._waiting.drained()
            self._settle()
            self._by_hand(self._stage.named(step.target_sql))
        elif step.event:
            self._event(step.event)
        elif step.wait:
            self._waiting.drained()
        elif step.operator:
            self._operator(step.operator)
        if step.expect:
            statements = self._statements.get(self._stage.shard(step), 0)
            Expectations(self._stage, self._waiting).check(step, step.expect, statements)

    def _statement(self, step: Step, later: tuple[Step, ...]) -> None:
        shard = self._stage.shard(step)
        if step.is_ddl and not step.refused:
            self._statements[shard] = self._statements.get(shard, 0) + 1
        seen = len(self._stage.events(step.source))
        connection = self._stage.connection(step.source)
        self._stage.use(step.source, step.table)
        with connection.cursor() as cursor:
            cursor.execute("SET timestamp = %s", (step.timestamp or 0,))
        try:
            self._stage.execute(step.source, self._stage.named(step.sql))
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
            self._waiting.poll(
                lambda: (
                    len(self._stage.events(step.source)) > seen
                    and not self._stage.undecided(step.source)
                ),
                f"no decision about {step.sql!r}",
            )

    def _by_hand(self, statement: str) -> None:
        try:
            self._stage.execute("target", statement)
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
                    self.line.connectors.stop(source)
                elif source in self._stopped:
                    self._stopped.discard(source)
                    self.line.connectors.start(source)
                else:
                    self.line.connectors.restart(source)
        elif found.part == "source":
            for source in sources:
                self._stage.forget_connection(source)
                self.line.kill_server(source)
        elif found.part in ("kafka", "target"):
            self._stage.forget_connection(found.part)
            self.line.kill_server(found.part)
        elif found.verb != "start":  # the keeper has started it again
            self.line.kill(found.part)

    def _operator(self, command: str) -> None:
        if command == "pause-task test" and not self._paused:
            self.line.connectors.pause_all()
            self._paused = True
        elif command == "resume-task test" and self._paused:
            self.line.connectors.resume_all()
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
        self._waiting.drained()
        while held := sorted(self._stage.facts.held(self._stage.target)):
            waits = self.scenario.mode == Mode.PESSIMISTIC
            self._command(kind if waits else "skip", held[0], "")
            moved = self.line.observer.wait(
                lambda facts, held=held: sorted(facts.held(self._stage.target)) != held,  # type: ignore[misc]
                QUIET_SECONDS,
            )
            if not moved:
                self.notes.append(f"{kind} left {', '.join(map(str, held))} as they are")
                return

    def _command(self, kind: str, shard: ShardId, argument: str) -> None:
        """Give a command about a shard, once everything before it is decided."""
        self._waiting.drained()
        pipeline = self.line.pipeline
        said = command_of(pipeline, kind, argument, str(shard), "")
        answer = give(pipeline, said, DRAIN_SECONDS).answer
        if answer is None:
            raise Failed(f"{kind} {shard} is not answered")
        self.notes.append(f"{kind} {shard}: {answer.outcome}: {answer.reason}")

    def _settle(self) -> None:
        """Wait until the target is the union, or until nothing moves any more."""
        try:
            self._waiting.poll_faults(lambda: union_faults(self._stage))
        except Failed as failure:
            self.notes.append(f"statement by hand on a target that is not the union: {failure}")
