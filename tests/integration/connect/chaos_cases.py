"""The cases of ``make chaos-connect``: what is done to a source, its connector or its server.

Each case gets a scene with a table of its own and says when the damage was done; rows of that
table and of others go on meanwhile, and behind it.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field

from .chaos_line import OTHERS, PLAIN, ChaosLine
from .chaos_writer import TableWriter, all_paused

WORDS = ("url", "histogram", "always", "following", "minvalue", "auto", "manual", "qualify")
"""Column names that servers of 8.0.15 take unquoted, and Debezium 3.6.1's parser refuses."""
_SWAP = "ALTER TABLE {0} RENAME COLUMN a TO b, RENAME COLUMN b TO a"
_BEHIND = {
    "rename": ("ALTER TABLE {0} RENAME COLUMN a TO c", False),
    "drop": ("ALTER TABLE {0} DROP COLUMN a", False),
    "rename-table": ("RENAME TABLE {0} TO {0}_new", True),
    "swap": (_SWAP, False),
}


IDLE_S = 45.0
"""Longer than from one heartbeat of a connector to the next: it commits its offset with each."""
MOMENTS = ("busy", "quiet", "seen")
"""What is between a statement and what comes right behind it: rows, nothing, or nothing until the
statement's record is readable. Debezium's offsets pass a statement with the next row only, so that
a busy source leaves a narrow gap to hit."""


@dataclass(slots=True)
class Scene:
    """One play of a case.

    Attributes:
        line: The source.
        table: Name of the case's own table, which nobody has used yet.
        chance: Random moments.
        behind_s: The longest time from a statement to what comes right behind it.
        bound_s: How long a row may take to be readable.
        moment: One of ``MOMENTS``; None: any.
        moments: When damage was done, by a monotonic clock.
    """

    line: ChaosLine
    table: str
    chance: random.Random
    behind_s: float
    bound_s: float
    moment: str | None = None
    moments: list[float] = field(default_factory=list)
    _writer: TableWriter | None = None

    def make(self, ddl: str = PLAIN, *, rows: int = 5) -> None:
        """Make the table by a statement with its name left open, and write rows."""
        self.line.watch.add(self.table, f"{self.table}_new")
        self._writer = self.line.writer(self.table)
        self.run(ddl)
        self._writer.write(rows)

    def run(self, ddl: str, *, renames: bool = False) -> None:
        """Execute a statement on the table."""
        assert self._writer is not None
        to = f"{self.table}_new" if renames else None
        self._writer.statement(ddl.format(self.table), to)
        self.line.executed.update({self.table, to} if to else {self.table})

    def write(self, rows: int = 5) -> None:
        """Write rows of the table now."""
        assert self._writer is not None
        self._writer.write(rows)

    def write_on(self) -> None:
        """Write rows of the table from now on, beside what the case does."""
        assert self._writer is not None
        self._writer.start()

    def damage(self) -> None:
        """Say that the damage is done now."""
        self.moments.append(time.monotonic())

    def right_behind(self) -> None:
        """Wait for a random moment: short ones are more frequent."""
        time.sleep(self.behind_s * self.chance.random() ** 3)

    def wait_read(self) -> None:
        """Wait until everything so far is readable, or the bound passes."""
        self.line.wait_read(self.bound_s)

    def end(self) -> None:
        """Stop the table's writer."""
        if self._writer is not None and self._writer in self.line.writers:
            self.line.done(self._writer)

    def close_sessions(self) -> None:
        """No writer has a session; each opens one with its next row."""
        for writer in self.line.writers:
            writer.close_session()

    @contextmanager
    def all_paused(self) -> Iterator[None]:
        """No writer has a transaction open meanwhile."""
        with all_paused(self.line.writers):
            yield


@dataclass(frozen=True, slots=True)
class Case:
    """A case.

    Attributes:
        name: As it is chosen and printed.
        play: Does it.
        many: Whether its moment is random, so that it is played often.
        flavours: Servers that it exists on.
    """

    name: str
    play: Callable[[Scene], None]
    many: bool = False
    flavours: tuple[str, ...] = ("mysql", "mariadb")


def _word_in_create(word: str) -> Callable[[Scene], None]:
    def play(scene: Scene) -> None:
        scene.make(f"CREATE TABLE {{}} (id INT PRIMARY KEY, n INT, {word} VARCHAR(20))", rows=0)
        scene.damage()
        scene.write()

    return play


def _word_in_alter(word: str) -> Callable[[Scene], None]:
    def play(scene: Scene) -> None:
        scene.make()
        scene.run(f"ALTER TABLE {{}} ADD COLUMN {word} VARCHAR(20)")
        scene.damage()
        scene.write()

    return play


def _bit_default(scene: Scene) -> None:
    scene.make("CREATE TABLE {} (id INT PRIMARY KEY, n INT, flags BIT(3) DEFAULT b'1')")
    scene.run("ALTER TABLE {} ALTER COLUMN flags SET DEFAULT b'101'")
    scene.damage()
    scene.write()


def _unique_index(scene: Scene) -> None:
    scene.make("CREATE TABLE {} (id INT NOT NULL, n INT NOT NULL, a VARCHAR(20))")
    scene.run("CREATE UNIQUE INDEX only_one ON {} (id)")
    scene.damage()
    scene.write()
    scene.run("ALTER TABLE {} ADD COLUMN b INT")
    scene.write()


def _behind_others(scene: Scene) -> None:
    """What MariaDB's connector tells nothing of is right before a statement that it refuses."""
    scene.make()
    scene.wait_read()
    with scene.all_paused():
        scene.line.query(f"ANALYZE TABLE `{scene.line.database}`.`{OTHERS[0]}`")
        # Of a database that the connector does not read.
        scene.line.query(f"CREATE DATABASE not_{scene.table}")
        scene.line.query(f"CREATE TABLE not_{scene.table}.t (a INT)")
        scene.line.query(f"INSERT INTO not_{scene.table}.t VALUES (1)")
        scene.line.query(f"TRUNCATE TABLE not_{scene.table}.t")
        scene.run("ALTER TABLE {} ADD COLUMN auto VARCHAR(20)")
    scene.damage()
    scene.write()


def _year(scene: Scene) -> None:
    numbers = ", ".join(f"c{place} INT UNSIGNED" for place in range(6))
    scene.make(f"CREATE TABLE {{}} (id INT PRIMARY KEY, n INT, {numbers}, born YEAR)", rows=0)
    scene.damage()
    scene.write()


def _killed(kind: str) -> Callable[[Scene], None]:
    def play(scene: Scene) -> None:
        with _behind_statement(scene, kind):
            scene.line.stack.kill("connect")
        scene.line.stack.start("connect")

    return play


def _restarted(kind: str) -> Callable[[Scene], None]:
    def play(scene: Scene) -> None:
        with _behind_statement(scene, kind):
            scene.line.rest.restart(scene.line.connector)

    return play


def _server_restarted(kind: str) -> Callable[[Scene], None]:
    def play(scene: Scene) -> None:
        ddl, renames = _BEHIND[kind]
        scene.make()
        scene.write_on()
        scene.wait_read()
        with scene.all_paused():
            scene.run(ddl, renames=renames)
            scene.close_sessions()
            scene.right_behind()
            scene.line.stack.stop(scene.line.server)
            scene.damage()
            scene.line.stack.start(scene.line.server)
        scene.write()

    return play


def _killed_when_idle(kind: str) -> Callable[[Scene], None]:
    """Behind a statement, and the heartbeats of a source on which nothing happens for a while."""

    def play(scene: Scene) -> None:
        ddl, renames = _BEHIND[kind]
        scene.make()
        scene.wait_read()
        with scene.all_paused():
            scene.run(ddl, renames=renames)
            scene.line.wait_told(scene.table)
            time.sleep(IDLE_S)
            scene.line.stack.kill("connect")
            scene.damage()
        scene.write(20)
        scene.line.stack.start("connect")

    return play


@contextmanager
def _behind_statement(scene: Scene, kind: str) -> Iterator[None]:
    """A statement, and a random moment right behind it."""
    moment = scene.moment or scene.chance.choice(MOMENTS)
    ddl, renames = _BEHIND[kind]
    scene.make()
    scene.wait_read()
    scene.write_on()
    with nullcontext() if moment == "busy" else scene.all_paused():
        scene.run(ddl, renames=renames)
        if moment == "seen":
            scene.line.wait_told(scene.table)
        else:
            scene.right_behind()
        scene.damage()
        yield
    scene.write()


def _plain(ddl: str) -> Callable[[Scene], None]:
    def play(scene: Scene) -> None:
        scene.make()
        scene.run(ddl)
        scene.damage()
        scene.write()

    return play


def _gtids_switched(*, kills: bool) -> Callable[[Scene], None]:
    def play(scene: Scene) -> None:
        steps = ("OFF", "OFF_PERMISSIVE", "ON_PERMISSIVE", "ON")
        scene.make()
        scene.write_on()
        was_on = scene.line.query("SELECT @@GLOBAL.gtid_mode")[0][0] == "ON"
        scene.line.query("SET GLOBAL enforce_gtid_consistency = ON")
        for number, there in enumerate((was_on, not was_on)):
            scene.wait_read()
            _switch(scene, steps[::-1] if there else steps, kills=kills)
            scene.damage()
            scene.write()
            if number == 0:
                scene.run("ALTER TABLE {} ADD COLUMN c INT")
                scene.write()
        # Whoever connects anew has to find a way past the transactions of both modes.
        scene.wait_read()
        scene.line.rest.restart(scene.line.connector)
        scene.damage()
        scene.write()

    return play


def _switch(scene: Scene, steps: Sequence[str], *, kills: bool) -> None:
    """Take the server through modes; or kill and start the worker behind one of them, too."""
    killed = scene.chance.choice(steps[1:]) if kills else ""
    for step in steps[1:]:
        if step == killed:
            # A server that is OFF refuses what has a GTID and is not read; ON, what has none.
            scene.wait_read()
        with scene.all_paused():  # no transaction of the former mode is open
            scene.line.query(f"SET GLOBAL gtid_mode = {step}")
        if step == killed:
            scene.right_behind()
            scene.line.stack.kill("connect")
            scene.line.stack.start("connect")
            scene.wait_read()


def cases(words: Sequence[str]) -> tuple[Case, ...]:
    """Every case, in the order of the issue."""
    found = []
    for word in words:
        found.append(Case(f"create-{word}", _word_in_create(word)))
        found.append(Case(f"alter-{word}", _word_in_alter(word)))
    found.append(Case("bit-default", _bit_default))
    found.append(Case("unique-index", _unique_index))
    found.append(Case("swap", _plain(_SWAP)))
    found.append(Case("alter-behind-others", _behind_others))
    found.append(Case("chain", _plain("ALTER TABLE {} RENAME COLUMN a TO b, RENAME COLUMN b TO c")))
    found += [Case(f"kill-{kind}", _killed(kind), many=True) for kind in _BEHIND]
    found += [Case(f"restart-{kind}", _restarted(kind), many=True) for kind in _BEHIND]
    found.append(Case("idle-drop", _killed_when_idle("drop")))
    found.append(Case("year", _year))
    for name, kills in (("gtids", False), ("gtids-kill", True)):
        found.append(Case(name, _gtids_switched(kills=kills), many=kills, flavours=("mysql",)))
    found += [Case(f"server-{kind}", _server_restarted(kind)) for kind in _BEHIND]
    return tuple(found)
