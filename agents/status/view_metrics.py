"""Metrics from the status view: sums over the shards of each target. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from shardmerge.connectors.metrics import catalog
from shardmerge.connectors.metrics.family import Sample
from shardmerge.schemas.records.decisions import Outcome

from .view import StatusView

_STATES = ("live", "held", "paused", "left")


def view_samples(view: StatusView, now_ms: int) -> Iterator[Sample]:
    """The metrics of the pipeline's targets.

    Args:
        view: The view as it is now.
        now_ms: Milliseconds since 1970.
    """
    for target, version, outcomes, shards in view.states():
        name = str(target)
        yield Sample(catalog.AGENTS_VERSION, (name,), version)
        for outcome in (Outcome.EMIT, Outcome.NOOP, Outcome.HOLD, Outcome.REFUSED):
            yield Sample(catalog.AGENTS_DECISIONS, (name, outcome.value), outcomes[outcome])
        states: Counter[str] = Counter()
        conflicts: list[int] = []
        held = Counter({("conflict", ""): 0, ("other", ""): 0})
        for shard in shards:
            states[shard.state] += 1
            if shard.state != "held":
                continue
            held["conflict" if shard.is_conflict else "other", shard.code] += 1
            if shard.is_conflict:
                conflicts.append(shard.ts_ms)
        for state in _STATES:
            yield Sample(catalog.AGENTS_SHARDS, (name, state), states[state])
        for labels, count in held.items():
            yield Sample(catalog.AGENTS_HELD, (name, *labels), count)
        age_ms = max(0, now_ms - min(conflicts)) if conflicts else 0
        yield Sample(catalog.AGENTS_CONFLICT, (name,), age_ms / 1000)
