"""What the driver knows of first loads: their stored states, and why some do not go on."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

from shardmerge.connectors.event_log import logger
from shardmerge.connectors.growing_pause import GrowingPause
from shardmerge.schemas.model.errors import ShardMergeError
from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.model.position import SourcePosition
from shardmerge.spark_sink.barrier.applied import LoadPlace
from shardmerge.spark_sink.barrier.decisions import TargetDecisions
from shardmerge.spark_sink.barrier.shard_gates import ShardGates
from shardmerge.spark_sink.driver.applied_rows import AppliedRows
from shardmerge.spark_sink.kafka.intake import Intake
from shardmerge.spark_sink.loading.load_estimate import LOADED_FIRST, rows_of
from shardmerge.spark_sink.loading.load_orders import load_place
from shardmerge.spark_sink.loading.load_rules import passed_over_to
from shardmerge.spark_sink.loading.load_state import Load
from shardmerge.spark_sink.planning.progress import Trouble
from shardmerge.spark_sink.targets.load_interface import Loads

log = logger(__name__)

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.5, 10.0
_NO_READING = sys.maxsize
"""A number that no reading of watermarks has: the rows of the shard do not agree yet."""


class LoadBook:
    """The first loads of one driver's shards.

    Args:
        target: Stores them; None where the sink loads nothing.
        intake, rows: What is decided, and how far rows are applied.
        sources: Names of the sources whose first rows the sink reads. Of loads of other sources it
            is only remembered whether they have brought rows.
        epoch: The writer epoch.
        clock: Monotonic seconds.

    Attributes:
        latest: Shard → its latest load, of the sources whose first rows the sink reads.
        active: Shards whose latest load is not complete. Shards that an operator has taken out are
            not among them. When one of those joins again, its load goes on: every chunk is read
            behind the place that its stream has passed.
        unsettled: Shards whose table was dropped after chunks of it were given out. Their streams
            go on. But it is not known yet up to where the row topic must be applied until the rows
            agree: the connector may be behind the chunks (``settle``).
        troubles: Shard whose load does not go on → why.
        is_stale: Whether the target may have stored steps that this book does not know.
        has_news: Whether a load was completed since this was set to False. Then another load may
            have been ordered.
    """

    def __init__(
        self,
        target: Loads | None,
        *,
        intake: Intake,
        rows: AppliedRows,
        sources: Collection[str],
        epoch: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._target, self._epoch, self._clock = target, epoch, clock
        self._intake, self._rows, self._sources = intake, rows, sources
        self.latest: dict[ShardId, Load] = {}
        self.active: set[ShardId] = set()
        self.unsettled: set[ShardId] = set()
        self.troubles: dict[ShardId, Trouble] = {}
        self.is_stale = self.has_news = False
        self._pauses: dict[ShardId | str, GrowingPause] = {}
        self._readings: dict[ShardId, int] = {}
        self._open: set[ShardId] = set()
        self._places: dict[ShardId, LoadPlace] = {}
        self._elsewhere: dict[ShardId, SourcePosition] = {}

    @property
    def passed_over(self) -> Mapping[ShardId, SourcePosition]:
        """Shard → position before which rows of its stream are skipped (``load_rules``)."""
        found = dict(self._elsewhere)
        for name, load in self.latest.items():
            target = self._intake.decisions.targets.get(load.target)
            if target is not None and name in target.shards:
                place = passed_over_to(target.shards[name], load)
                if place is not None:
                    found[name] = place
        return found

    def load(self) -> None:
        """Read the state from the target. Chunks that were given out are planned again.

        Raises:
            WriterReplaced: Another writer took over.
            TargetError: The target does not answer.
        """
        if self._target is None:
            return
        self.is_stale = True
        # Loads come in the order of their versions, so a later one replaces an earlier one.
        found = {load.shard: load for load in self._target.loads()}
        self.latest = {name: load for name, load in found.items() if name.source in self._sources}
        self._elsewhere = {
            name: load.position
            for name, load in found.items()
            if name not in self.latest and load.is_complete and load.position is not None
        }
        self._places = {n: LoadPlace(f.base, None, 0, f.has_rows) for n, f in found.items()}
        self.keep([(load, load.give_all_back()) for load in self.latest.values()])
        # All completed loads were completed before the next reading of the topics' ends. Which of
        # them this process has completed since the last one is not known any more.
        self._readings = dict.fromkeys(self.latest, self._intake.watermarks.number + 1)
        self._open = {name for name, load in self.latest.items() if not load.is_complete}
        self.unsettled = {name for name, load in self.latest.items() if _is_unsettled(load)}
        self._readings |= dict.fromkeys(self.unsettled, _NO_READING)
        self.is_stale, self.has_news = False, True
        for name in self.latest.keys() - self._open:
            self._set_place(name)
        self.tell_barrier()

    def keep(self, steps: Sequence[tuple[Load | None, Load]]) -> None:
        """Store steps of loads.

        Args:
            steps: For each step the load before it (None for a new load), and the load after it.

        Raises:
            WriterReplaced: Another writer took over.
            TargetError: The target cannot be written now (``retryable``).
        """
        changed = [(before, after) for before, after in steps if before != after]
        if not changed or self._target is None:
            return
        try:
            self._target.keep(self._epoch, changed)
        except ShardMergeError:
            self.is_stale = True
            raise
        for _, after in changed:
            self.latest[after.shard] = after
            self._take_completed(after)

    def note(self, load: Load, rows: int) -> None:
        """Remember a step that the target has stored already, with the rows that came with it."""
        self.latest[load.shard] = load
        self._rows.written[load.target] += rows

    def settle(self, names: Collection[ShardId]) -> None:
        """The row topics of unsettled shards have now every event that their chunks include."""
        for name in names:
            self.unsettled.discard(name)
            self._readings[name] = self._intake.watermarks.number + 1
            self._set_place(name)

    def gates(self, load: Load) -> ShardGates:
        """The gates of its shard."""
        return self.decided(load).shards[load.shard]

    def decided(self, load: Load) -> TargetDecisions:
        """Everything decided for its target."""
        return self._intake.decisions.targets[load.target]

    def tell_barrier(self) -> None:
        """Tell the barrier where the loads stand, by the decisions that are known now."""
        for name in self._open:
            self._set_place(name)
        self.active = {name for name in self._open if not self._is_left(name)}
        self._rows.loads = dict(self._places)

    @property
    def following(self) -> Mapping[ShardId, Load]:
        """The loads that their shards' streams must follow: all but those of shards taken out."""
        left = self._open - self.active
        return {n: f for n, f in self.latest.items() if n not in left} if left else self.latest

    def _is_left(self, name: ShardId) -> bool:
        target = self._intake.decisions.targets.get(self.latest[name].target)
        return target is None or name not in target.shards or name in target.left

    def _set_place(self, name: ShardId) -> None:
        load = self.latest[name]
        target = self._intake.decisions.targets.get(load.target)
        if target is None or name not in target.shards:
            return
        place = load_place(target.shards[name], load, self._readings.get(name, 1))
        self._places[name] = replace(place, position=None) if self._is_left(name) else place

    # --- troubles -----------------------------------------------------------------

    def rests(self, who: ShardId | str) -> bool:
        """Whether a shard, or a source, still pauses."""
        pause = self._pauses.get(who)
        return pause is not None and not pause.is_over(self._clock())

    def rest(self, who: ShardId | str, why: Trouble) -> None:
        """Let a shard, or a source, pause. The pause grows each time."""
        pause = self._pauses.setdefault(who, GrowingPause(_FIRST_PAUSE_S, _LONGEST_PAUSE_S))
        pause.begin(self._clock())
        concerned = [name for name in self.active if who in (name, name.source)]
        for name in concerned:
            self.trouble(name, why)

    def trouble(self, name: ShardId, why: Trouble) -> None:
        """Remember why a load does not go on, and log it once."""
        if self.troubles.get(name) != why:
            self.troubles[name] = why
            log.warning("load_delayed", shard=name, reason=why.reason, hint=why.hint, code=why.code)

    def failed(self, who: ShardId | str, error: Exception) -> None:
        """A job of a shard, or a source, has failed: it is tried again after a pause.

        Raises:
            Exception: The error itself, if it is no ``ShardMergeError``.
        """
        if not isinstance(error, ShardMergeError):
            raise error
        self.rest(who, Trouble(error.message, error.hint, error.code))

    def waits(self, name: ShardId, why: str) -> None:
        """Let a shard pause for a reason that passes by itself."""
        self.rest(name, Trouble(why, "", LOADED_FIRST))

    def goes_on(self, who: ShardId | str) -> None:
        """A shard, or a source, works again: forget its pause and its troubles."""
        self._pauses.pop(who, None)
        for name in [name for name in self.troubles if who in (name, name.source)]:
            del self.troubles[name]

    def _take_completed(self, load: Load) -> None:
        name = load.shard
        if not load.is_complete:
            self._open.add(name)
            self.unsettled.discard(name)
        elif name in self._open:
            self._open.discard(name)
            self.active.discard(name)
            self.goes_on(name)
            if _is_unsettled(load):
                self.unsettled.add(name)
                self._readings[name] = _NO_READING
            else:
                self._readings[name] = self._intake.watermarks.number + 1
            self._set_place(name)
            self.has_news = True
            log.info("load_completed", shard=name, target=load.target, loaded_rows=rows_of(load))


def _is_unsettled(load: Load) -> bool:
    return load.is_void and load.has_mixed_rows
