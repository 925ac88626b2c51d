"""The order of a rollout's steps that stops no shard, with the fewest steps moved. Pure.

A step stops a shard when it holds the shard, or when it pauses it until an operator has looked at
its existing rows.

Every shard's own steps keep their order. In the end the shards have the same tables as after the
given order. A step is moved when it is not executed in its turn; the other steps keep the given
order. So the number of moved steps is the number of all steps, less the longest subsequence that
keeps its order.

Theory of operation:

1. A state of the search says how far each shard has come, which steps are put off, and what the
   agents know. From a state the search goes on in one of four ways. It takes the first step that is
   neither done nor put off; this costs nothing. It puts this step off; this costs 1. It takes a
   later step ahead of its turn; this costs 1. It takes a step that was put off; this costs nothing,
   because putting it off cost 1. It never takes a step that stops a shard.
2. States are visited in the order of their cost. So the first state in which every step is done has
   moved the fewest steps. Two states count as one if the same steps are done and the same steps are
   put off: they differ at most in the numbers of identities.
3. The search tries at most ``bound`` statements. It does not begin if that is less than ten times
   the number of steps. When the bound is not enough, a simpler way is tried: see ``putting_off``.
4. Often no order avoids a pause, because the rows differ in any order. An order without holds helps
   all the same. A second search may take steps that pause shards. It begins if the given order
   leads to holds, and the first search found no order but met a step that only pauses a shard.
   The shards that the new order pauses are found by executing it once.
"""

from __future__ import annotations

import heapq
import itertools
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from immutables import Map

from shardmerge.agents.tracking.tracked import Tracked
from shardmerge.schemas.model.names import ShardId

from .plan import Plan, planned
from .putting_off import PutOff, is_good, is_stopped, putting_off
from .rollout import RolloutStep
from .simulated_agents import AgentsState, SimulatedAgents

DEFAULT_BOUND = 2_000
_FEW = 8
"""With at most this many shards, every step is tried ahead of its turn. With more shards, only one
is tried of several steps that do the same to equal tables."""
_FEWEST_ORDERS = 10
"""If the bound is too small to try this many whole orders, the search does not begin."""


@dataclass(frozen=True, slots=True)
class SafeOrder:
    """What the search found.

    Attributes:
        numbers: The steps' numbers in the order found; empty when none was found.
        moved: How many of them are moved.
        shortest: Whether no other such order moves fewer steps.
        exhausted: Whether every order was tried or can be ruled out. If so, and ``numbers`` is
            empty, there is no such order.
        folded: How many statements the search tried. Those that putting off tried do not count.
        pauses: The shards that this order pauses; none unless no order without a pause was found.
        unavoidable: Whether there is no order without a hold or a pause.
        pausing: Whether the given order pauses a shard, or the search met a step that does.
    """

    numbers: tuple[int, ...]
    moved: int
    shortest: bool
    exhausted: bool
    folded: int
    pauses: tuple[ShardId, ...] = ()
    unavoidable: bool = False
    pausing: bool = False


@dataclass(frozen=True, slots=True)
class _Taken:
    """The place of a step that was executed, and a link to the step that was executed before it."""

    place: int
    before: _Taken | None


@dataclass(frozen=True, slots=True)
class _State:
    """A state of the search.

    Attributes:
        done: How many steps of each shard are done.
        put_off: Steps that are put off and not done, as places in the given order.
        first: Every step before this place is done or put off.
        known: What the agents know after these steps.
        taken: The steps that are done, the latest one first.
    """

    done: tuple[int, ...]
    put_off: frozenset[int]
    first: int
    known: AgentsState
    taken: _Taken | None


class _Search:
    """One search, and what is left of its bound."""

    def __init__(
        self,
        agents: SimulatedAgents,
        before: AgentsState,
        steps: Sequence[RolloutStep],
        tables: Map[ShardId, Tracked],
        bound: int,
        *,
        may_pause: bool,
    ) -> None:
        self._agents, self._before, self._steps, self._tables = agents, before, steps, tables
        self._may_pause = may_pause
        self.pausing = False
        """Whether a step was not taken only because it pauses a shard."""
        self.left = bound
        self.cut = False
        """Whether a step was not tried because of the bound."""
        self.pruned = False
        """Whether only one of several like steps was tried ahead of its turn."""
        queues: dict[ShardId, list[int]] = {}
        for place, step in enumerate(steps):
            queues.setdefault(step.shard, []).append(place)
        self._queues = list(queues.values())
        self._lane = {place: n for n, queue in enumerate(self._queues) for place in queue}

    def find(self) -> tuple[int, tuple[int, ...]] | None:
        """The cost and the places of the cheapest order; None when none was found (``cut``)."""
        tie = itertools.count()
        start = _State((0,) * len(self._queues), frozenset(), 0, self._before, None)
        heap: list[tuple[int, int, int, _State]] = [(0, 0, next(tie), start)]
        seen: set[tuple[tuple[int, ...], frozenset[int]]] = set()
        while heap and not self.cut:
            cost, _, _, state = heapq.heappop(heap)
            if (state.done, state.put_off) in seen:
                continue
            seen.add((state.done, state.put_off))
            if sum(state.done) == len(self._steps):
                if is_good(self._before, state.known, self._tables):
                    return cost, _places(state.taken)
                continue
            for more, following in self._following(state):
                if (following.done, following.put_off) not in seen:
                    ahead = -sum(following.done)
                    heapq.heappush(heap, (cost + more, ahead, next(tie), following))
        return None

    def _fold(self, state: AgentsState, place: int) -> AgentsState | None:
        """The state after a step; None when it stops a shard, or the bound is reached."""
        if self.left <= 0:
            self.cut = True
            return None
        self.left -= 1
        after, answers = self._agents.executed(state, self._steps[place])
        if not is_stopped(answers, may_pause=self._may_pause):
            return after
        self.pausing |= not is_stopped(answers, may_pause=True)
        return None

    def _following(self, state: _State) -> Iterator[tuple[int, _State]]:
        """The next states, each with what it costs to get there."""
        first = self._first(state)
        fronts = sorted(
            queue[done]
            for queue, done in zip(self._queues, state.done, strict=True)
            if done < len(queue)
        )
        tried: set[tuple[str, Tracked | None]] = set()
        for place in fronts:
            free = place == first or place in state.put_off
            if not free and len(fronts) > _FEW:
                step = self._steps[place]
                kind = (_text(step), state.known.tables.get(step.shard))
                if kind in tried:
                    self.pruned = True
                    continue
                tried.add(kind)
            after = self._fold(state.known, place)
            if after is not None:
                yield (0 if free else 1), self._taken(state, place, after)
        if first is not None:
            put_off = state.put_off | {first}
            yield 1, _State(state.done, put_off, first + 1, state.known, state.taken)

    def _first(self, state: _State) -> int | None:
        """The first step that is neither done nor put off.

        If an earlier step of its shard is put off, this step is not the shard's next one. Then it
        waits, or is put off too.
        """
        for place in range(state.first, len(self._steps)):
            queue, done = self._queues[self._lane[place]], state.done[self._lane[place]]
            is_done = done == len(queue) or place < queue[done]
            if not is_done and place not in state.put_off:
                return place
        return None

    def _taken(self, state: _State, place: int, after: AgentsState) -> _State:
        lane = self._lane[place]
        done = (*state.done[:lane], state.done[lane] + 1, *state.done[lane + 1 :])
        return _State(done, state.put_off - {place}, state.first, after, _Taken(place, state.taken))


def begins(steps: int, bound: int) -> bool:
    """Whether the search begins at all; if not, steps are only put off."""
    return _FEWEST_ORDERS * steps <= bound


def safe_order(
    agents: SimulatedAgents,
    given: Plan,
    bound: int = DEFAULT_BOUND,
    put_off: Callable[[], PutOff] | None = None,
) -> SafeOrder:
    """Find the order; see the module's theory of operation.

    Args:
        agents: Of the pipeline.
        given: The rollout in the order that was given, which stops a shard.
        bound: How many statements a search tries at most. Putting off tries some more, usually
            two or three for each step.
        put_off: Gives what ``putting_off`` finds for this rollout without pauses, if that is known
            already or computed elsewhere.
    """

    def default(may_pause: bool) -> PutOff:
        if put_off is not None and not may_pause:
            return put_off()
        steps = [step.step for step in given.steps]
        return putting_off(agents, given.before, steps, given.after.tables, may_pause=may_pause)

    found = _found(agents, given, bound, default, may_pause=False)
    unavoidable = found.exhausted and not found.numbers
    if not found.numbers and given.holds and found.pausing:
        second = _found(agents, given, bound, default, may_pause=True)
        in_order = [(number, given.steps[number - 1].step) for number in second.numbers]
        pauses = planned(agents, given.before, in_order).pauses
        folded = found.folded + second.folded
        found = replace(second, folded=folded, pauses=pauses, pausing=True)
    return replace(found, unavoidable=unavoidable, pausing=found.pausing or bool(given.pauses))


def _found(
    agents: SimulatedAgents,
    given: Plan,
    bound: int,
    put_off: Callable[[bool], PutOff],
    *,
    may_pause: bool,
) -> SafeOrder:
    """What one search finds; with ``may_pause`` it takes steps that pause a shard."""
    steps = [step.step for step in given.steps]
    tables = given.after.tables
    search = _Search(agents, given.before, steps, tables, bound, may_pause=may_pause)
    found = None
    if begins(len(given.steps), bound):
        found = search.find()
    else:
        search.cut = True
    folded = bound - search.left
    if found is not None:
        moved, places = found
        numbers, shortest = _numbers(given, places), not search.pruned
        return SafeOrder(numbers, moved, shortest, True, folded, pausing=search.pausing)
    if not search.cut and not search.pruned:
        return SafeOrder((), 0, False, True, folded, pausing=search.pausing)
    found_so = put_off(may_pause)
    moved = len(found_so.places) - _longest_in_order(found_so.places)
    numbers, pausing = _numbers(given, found_so.places), search.pausing or found_so.pausing
    return SafeOrder(numbers, moved, False, False, folded, pausing=pausing)


def _numbers(given: Plan, places: Sequence[int]) -> tuple[int, ...]:
    return tuple(given.steps[place].number for place in places)


def _longest_in_order(places: Sequence[int]) -> int:
    """The length of the longest ascending subsequence."""
    ends: list[int] = []
    for place in places:
        at = bisect_left(ends, place)
        ends[at : at + 1] = [place]
    return len(ends)


def _text(step: RolloutStep) -> str:
    """The statement without its table's name: the texts of steps that do the same are equal."""
    return step.sql.replace(step.shard.table, "\0")


def _places(taken: _Taken | None) -> tuple[int, ...]:
    found: list[int] = []
    while taken is not None:
        found.append(taken.place)
        taken = taken.before
    return tuple(found[::-1])
