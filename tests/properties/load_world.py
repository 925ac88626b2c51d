"""A source, its binlog, a sink that loads a shard, and everything that can happen meanwhile.

``load_source`` has the source, ``load_sink`` the agents and the sink, ``load_target`` the target.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from . import load_snapshots
from .load_sink import Sink
from .load_source import Image, place

MOST_ROUNDS = 1_000
"""Each round of a history that comes to its end brings it on by an event or a chunk."""


class Standstill(AssertionError):
    """Something waits, and nothing moves."""


class World(Sink):
    """A history: random steps, then everything that is left."""

    @property
    def calm(self) -> list[Callable[[], bool]]:
        """Steps that only bring things on."""
        return [
            self.replicate, self.decide_next, self.execute, self.move_base, self.cut, self.read,
            self.write, self.prove, self.copy, self.apply, self.add_unique_key, self.take_out,
        ]  # fmt: skip

    def run(self, steps: int) -> None:
        """Random steps, then everything that is left."""
        calm = self.calm
        # Each history has its own slow and fast parts.
        weights = [self.random.choice((1, 2, 6)) for _ in calm]
        traffic = self.random.choice((0.1, 0.25, 0.4))
        for _ in range(steps):
            dice = self.random.random()
            if dice < 0.03:
                self.crash()
            elif dice < 0.05:
                self.lose()
            elif dice < 0.06:
                self.split()
            elif dice < 0.08:
                load_snapshots.run_again(self)
            elif dice < 0.09:
                self.order_again()
            elif dice < 0.09 + traffic:
                self.source.happens()
            else:
                self.random.choices(calm, weights)[0]()
        self.settle()

    def settle(self) -> None:
        """Everything that is left to be done; then the target must be the source."""
        for _ in range(MOST_ROUNDS):
            # A step that did something may have made another one possible.
            if not sum(step() for step in self.random.sample(self.calm, len(self.calm))):
                break
        self.check()

    def check(self) -> None:
        if not self.load.is_complete or self.target.applied < len(self.source.events):
            raise Standstill(str(self.load))
        if len(self.target.executed) < len(self.decided):
            raise Standstill(f"statements {set(self.decided) - self.target.executed}")
        if self.shape.has_unique and not self.target.is_unique:
            raise Standstill("the unique key")
        wanted = [row for row in self.wanted if self.shape.keeps(row)]
        assert sorted(map(_plain, self.target.rows)) == sorted(map(_plain, wanted))

    @property
    def wanted(self) -> Sequence[Image]:
        """The rows that the target must have in the end."""
        if not self.shape.ignores_deletes:
            return self.source.now.rows
        # What was there at the load's position, and what was written since; nothing is deleted.
        assert self.load.position is not None
        first = next(n for n in range(len(self.source.states)) if place(n) >= self.load.position)
        rows = list(self.source.states[first].rows)
        for event in self.source.events[first:]:
            if event.ddl is not None:
                rows = [event.ddl.change(row) for row in rows] if event.ddl.live else []
            if event.truncates:
                rows = []
            if event.after is not None:
                gone = {event.after["id"], (event.before or event.after)["id"]}
                rows = [row for row in rows if row["id"] not in gone] + [event.after]
        return rows


def _plain(image: Image) -> str:
    return str(sorted(image.items()))
