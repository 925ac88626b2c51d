"""Waiting for what a scenario expects: polling, until nothing has moved for a while."""

from __future__ import annotations

import dataclasses
import re
import time
from collections.abc import Callable
from dataclasses import dataclass

from .stage import Failed, Stage

QUIET_SECONDS = 12.0
"""Nothing moved for so long: what is missing now will not come."""
QUIETEST_SECONDS = 40.0
UNMOVED_SECONDS = 0.9
"""For so long a case in which nothing was seen to move is not looked at."""
REREAD_SECONDS = 90.0
"""A connector that leaves a request unanswered is brought on after 30 s; see `RereadWatch`."""
BOUND_SECONDS = 300.0
DRAIN_SECONDS = 90.0
"""Longer than a broker keeps a transaction open whose connector was restarted."""


@dataclass(slots=True)
class Waiting:
    """Waits for what happens on a stage."""

    stage: Stage
    _marks: int = 0
    # The first wait is for the end of the connectors' snapshots.
    _quiet: float = BOUND_SECONDS

    def drained(self) -> None:
        """Wait until every schema change of this case has its decisions."""
        self._marks += 1
        mark = f"m_{self._marks}"
        began = time.monotonic()
        for source in self.stage.scenario.sources:
            self.stage.execute(
                source, f"CREATE TABLE {self.stage.case}_mark.{mark} (id INT PRIMARY KEY)"
            )
        for source in self.stage.scenario.sources:
            self.poll_faults(
                lambda source=source: self._undecided_before(source, mark),  # type: ignore[misc]
                # The line takes the cases in turn: it works for this one as long as it works.
                picture=lambda: len(self.stage.facts.decisions),
                quiet=DRAIN_SECONDS,
                cheap=True,
            )
        # What a statement's way through the line takes now tells what "nothing moves" means.
        self._quiet = min(max(QUIET_SECONDS, 4 * (time.monotonic() - began)), QUIETEST_SECONDS)

    def _undecided_before(self, source: str, mark: str) -> list[str]:
        database = f"{self.stage.case}_mark"
        for event in self.stage.facts.events.get(source, ()):
            if event.database == database and re.search(rf"\b{mark}\b", event.ddl):
                names = (*self.stage.databases, database)
                open_events = self.stage.facts.undecided(source, names, event.offset)
                return [f"{source}: no decision about {e.ddl[:120]!r}" for e in open_events]
        return [f"{source}: CREATE TABLE {database}.{mark} has not come to Kafka"]

    def poll(self, condition: Callable[[], bool], otherwise: str) -> None:
        """Poll until the condition holds; ``otherwise`` says what is wrong when it does not."""
        self.poll_faults(lambda: [] if condition() else [otherwise], cheap=True)

    def poll_faults(
        self,
        faults: Callable[[], list[str]],
        picture: Callable[[], object] | None = None,
        quiet: float = 0.0,
        cheap: bool = False,
    ) -> None:
        """Poll until there are no faults; give up when nothing has moved for a while.

        Args:
            faults: What is not as expected yet.
            picture: Changes while something moves; by default whatever the line does for the case.
            quiet: Seconds without a move that are allowed at least.
            cheap: Whether faults are looked for each time. To compare a target with its shards
                costs more than to see whether anything moved.

        Raises:
            Failed: Nothing moves any more, or the bound is over.
        """
        begin = moved = looked = time.monotonic()
        seen: object = None
        found: list[str] = []
        while True:
            now = time.monotonic()
            latest = (picture or self._picture)()
            if cheap or latest != seen or now - looked > UNMOVED_SECONDS or not found:
                looked = now
                if not (found := faults()):
                    return
            if latest != seen or self.stage.line.recovering():
                seen, moved = latest, now
            # A connector that reads a table again asks for its signals one after the other.
            rereads = REREAD_SECONDS if self.stage.facts.unread(self.stage.target) else 0.0
            if now - moved > max(quiet, self._quiet, rereads) or now - begin > BOUND_SECONDS:
                if found := faults():
                    raise Failed("; ".join(found))
                return
            time.sleep(0.2)

    def _picture(self) -> object:
        """Whatever changes while the line works for this case."""
        facts = self.stage.facts
        progress = facts.progress.get(self.stage.target)
        return (
            tuple(len(self.stage.events(source)) for source in self.stage.scenario.sources),
            len(facts.of_target(self.stage.target)),
            None if progress is None else dataclasses.replace(progress, ts_ms=0),
            # A connector reads one table after the other: it works for this case as long as it
            # works for those before it.
            len(facts.notices) if facts.unread(self.stage.target) else 0,
        )
