"""The summary of a target: its state in one word, what needs somebody, and since when. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from shardmerge.schemas.codes.registry import coded
from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.records.drift import needs_somebody

from .rates import rates
from .view import ShardView, TargetView

_FRESH_MS = 30_000
"""An older rate is not the present one, because an idle sink does not report."""


@dataclass(frozen=True, slots=True)
class Need:
    """Something about a target that an operator should know.

    Attributes:
        state: ``failing``, ``refused``, ``held``, ``paused``, ``changed`` (the table was changed by
            hand) or ``waiting``.
        what: A sentence; with a code if there is one.
        hint: What the operator can do; "" for none.
        since_ms: When it began, in milliseconds since 1970; 0 if that is not known.
        shards: The shards that it concerns, sorted.
    """

    state: str
    what: str
    hint: str
    since_ms: int
    shards: tuple[ShardId, ...] = ()


@dataclass(frozen=True, slots=True)
class TargetSummary:
    """One line of the overview.

    Attributes:
        state: The state of the first of ``needs``. Without any, ``silent`` if the sink has not
            reported on the target yet, else ``flows``.
        since_ms: When that state began; 0 if that is not known.
        needs: What an operator should know, the worst first.
        behind: How many versions are decided and not executed. Debts do not count.
        parked: Rows that wait, at most.
        rows_per_s: From the sink's last two reports; None if the last one is older than 30 seconds.
        lag_s: For how many seconds at least the oldest row has been waiting that is not applied;
            None if the sink has not reported yet.
    """

    target: TargetView
    state: str
    since_ms: int
    needs: tuple[Need, ...]
    live: int
    held: int
    behind: int
    parked: int
    rows: int
    rows_per_s: float | None
    lag_s: float | None


def summary(target: TargetView, now_ms: int) -> TargetSummary:
    """The summary of a target.

    Args:
        target: The target.
        now_ms: Milliseconds since 1970.
    """
    found = tuple(needs(target))
    progress = target.progress
    state = found[0].state if found else "flows" if progress else "silent"
    latest = rates(target.samples)[-1:]
    fresh = latest and now_ms - latest[0].ts_ms <= _FRESH_MS
    return TargetSummary(
        target=target,
        state=state,
        since_ms=min((n.since_ms for n in found if n.state == state and n.since_ms), default=0),
        needs=found,
        live=len(target.live),
        held=len(target.held),
        behind=max(0, target.version - progress.executed_version) if progress else target.version,
        parked=sum(s.parked for s in progress.shards if s.waiting) if progress else 0,
        rows=progress.rows if progress else 0,
        rows_per_s=latest[0].rows_per_s if fresh else None,
        lag_s=target.samples[-1].lag_s(now_ms) if target.samples else None,
    )


def needs(target: TargetView) -> Iterator[Need]:
    """What an operator should know about a target, the worst first."""
    progress = target.progress
    if progress is not None and (failed := progress.failure) is not None:
        yield Need(
            "failing",
            f"The rows of {failed.where} cannot be applied: {coded(failed.code, failed.message)} "
            f"({failed.times:,} tries)",
            failed.hint,
            failed.since_ms,
        )
    for statement in progress.open if progress else ():
        if statement.state == "refused":
            yield Need(
                "refused",
                f"The target refuses statement {statement.version}.{statement.ordinal}: "
                f"{coded(statement.code, statement.detail)}",
                "",
                statement.since_ms,
            )
    for state in ("held", "paused"):
        yield from _standing(state, [s for s in target.shards if s.state == state])
    for each in progress.drift if progress else ():
        if needs_somebody(each.kind):
            what = f"decided is {each.expected or 'nothing'}, it has {each.found or 'nothing'}"
            yield Need(
                "changed",
                f"{each.subject} of the table was changed by hand: {coded(each.code, what)}",
                f"shardmerge drift show {target.target} --pipeline FILE",
                each.since_ms,
            )
    groups: dict[tuple[str, str, str], list[tuple[ShardId, int]]] = {}
    standing = {s.shard for s in target.shards if s.state in ("held", "paused")}
    for shard in progress.shards if progress else ():
        if shard.waiting and shard.shard not in standing:
            key = (shard.code, shard.waiting, shard.hint)
            groups.setdefault(key, []).append((shard.shard, shard.since_ms))
    for (code, waiting, hint), shards in groups.items():
        since = min((ms for _, ms in shards if ms), default=0)
        yield Need("waiting", coded(code, waiting), hint, since, tuple(s for s, _ in shards))


def _standing(state: str, shards: list[ShardView]) -> Iterator[Need]:
    groups: dict[tuple[str, str, str], list[ShardView]] = {}
    for shard in shards:
        # The hint of a paused shard has its name, and no other difference.
        hint = shard.hint if state == "held" else ""
        groups.setdefault((shard.code, shard.reason, hint), []).append(shard)
    for (code, reason, hint), alike in groups.items():
        since = min((s.ts_ms for s in alike if s.ts_ms), default=0)
        names = tuple(s.shard for s in alike)
        yield Need(state, coded(code, reason), hint or alike[0].hint, since, names)
