"""What needs somebody, and since when: of a target, and of the pipeline's connectors. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from shardmerge.connectors.formats.connector_status import connector_fault
from shardmerge.schemas.codes.registry import coded
from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.records.drift import needs_somebody
from shardmerge.schemas.records.progress import RENEWED_S, is_silent
from shardmerge.schemas.records.validations import DIFFER_CODE

from .ages import moment
from .connector_log import UNASKED, ConnectorsView, SeenConnector
from .rates import rates
from .validations import repairs, rows_differ
from .view import ShardView, TargetView

_FRESH_MS = 30_000
"""An older rate is not the present one, because an idle sink reports seldom."""
_URGENT = ("silent", "failing", "refused", "unread", "held", "changed", "differs")
"""States that end only when somebody does something."""
_DOCS = "; see docs/how-to/monitor.md, ShardmergeConnectorFailed"
_RESUME = (
    "the watchdog's log says whether it holds the connector for a repair. If not, let it go on: "
    "curl -X PUT http://CONNECT:8083/connectors/{state.name}/resume" + _DOCS
)
_RESTART = (
    "remove the cause. The watchdog restarts what failed within ten minutes, and this at once: "
    "shardmerge connect restart {state.source} --pipeline FILE" + _DOCS
)
_MAKE = "make it: shardmerge connect apply --pipeline FILE" + _DOCS
_WAYS = {"PAUSED": _RESUME, "STOPPED": _RESUME, "missing": _MAKE}


@dataclass(frozen=True, slots=True)
class Need:
    """Something about a target, or about the connectors, that an operator should know.

    Attributes:
        state: ``silent`` (the sink does not report), ``failing``, ``refused``, ``unread`` (a
            source's connector does not run), ``held``, ``changed`` (the table was changed by hand),
            ``differs`` (a comparison found rows that are not those of the shards), ``disabled``,
            ``paused`` or ``waiting``; ``unknown``: Connect does not answer.
        what: A sentence; with a code if there is one.
        hint: What the operator can do; "" for none.
        since_ms: When it began, in milliseconds since 1970; 0 if that is not known.
        shards: The shards that it concerns, sorted.
        source: The source that it concerns; "" for none, and for all.
    """

    state: str
    what: str
    hint: str
    since_ms: int
    shards: tuple[ShardId, ...] = ()
    source: str = ""

    @property
    def is_urgent(self) -> bool:
        """Whether it ends only when somebody does something."""
        return self.state in _URGENT


@dataclass(frozen=True, slots=True)
class TargetSummary:
    """One line of the overview.

    Attributes:
        state: The state of the first of ``needs``. Without any, ``new`` if the sink has not
            reported the target yet, else ``flows``.
        since_ms: When that state began; 0 if that is not known, and for ``flows``.
        needs: What an operator should know, the worst first.
        behind: How many versions are decided and not executed. Debts do not count.
        parked: Rows that wait, at most.
        rows_per_s: From the sink's last two reports; None if the last one is older than 30 seconds.
        lag_s: For how many seconds at least the oldest row has been waiting that is not applied;
            None if that is not known, because the sink does not report, or because rows may wait
            in a source that is not read.
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

    @property
    def is_silent(self) -> bool:
        """Whether the sink does not report: everything that it told is old."""
        return self.state == "silent"

    @property
    def is_urgent(self) -> bool:
        """Whether somebody has to do something."""
        return any(need.is_urgent for need in self.needs)


def summary(target: TargetView, now_ms: int, connectors: ConnectorsView = UNASKED) -> TargetSummary:
    """The summary of a target.

    Args:
        target: The target.
        now_ms: Milliseconds since 1970.
        connectors: What is known of the pipeline's connectors.
    """
    found = tuple(needs(target, now_ms, connectors))
    is_known = not any(need.state in ("silent", "unread") for need in found)
    progress = target.progress
    state = found[0].state if found else "flows" if progress else "new"
    latest = rates(target.samples[-2:])
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
        lag_s=target.samples[-1].lag_s(now_ms) if target.samples and is_known else None,
    )


def connector_needs(connectors: ConnectorsView, now_ms: int) -> Iterator[Need]:
    """What an operator should know about the pipeline's connectors.

    Args:
        connectors: What is known of them.
        now_ms: Milliseconds since 1970.
    """
    if connectors.fault:
        what = f"This worker does not know whether the connectors run: {connectors.fault}"
        hint = connectors.hint or "see whether Connect's workers run, and their logs"
        yield Need("unknown", coded(connectors.code, what), hint, connectors.since_ms)
    for each in connectors.unread(now_ms):
        yield _unread(each, ())


def needs(target: TargetView, now_ms: int, connectors: ConnectorsView = UNASKED) -> Iterator[Need]:
    """What an operator should know about a target, the worst first.

    Args:
        target: The target.
        now_ms: Milliseconds since 1970.
        connectors: What is known of the pipeline's connectors.
    """
    progress = target.progress
    yield from _silence(target, now_ms)
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
    for connector in connectors.unread(now_ms):
        live = tuple(s.shard for s in target.live if s.shard.source == connector.state.source)
        if live:
            yield _unread(connector, live)
    yield from _standing("held", target.shards)
    for each in progress.drift if progress else ():
        if needs_somebody(each.kind):
            what = f"decided is {each.expected or 'nothing'}, it has {each.found or 'nothing'}"
            yield Need(
                "changed",
                f"{each.subject} of the table was changed by hand: {coded(each.code, what)}",
                f"shardmerge drift show {target.target} --pipeline FILE",
                each.since_ms,
            )
    yield from _differences(target)
    if target.disabled is not None:
        command = target.disabled.command
        yield Need(
            "disabled",
            f"The target's schema stays as it is: {command.by or 'somebody'} disabled it",
            f"shardmerge command enable --pipeline FILE --target {target.target}",
            command.ts_ms,
        )
    yield from _standing("paused", target.shards)
    groups: dict[tuple[str, str, str], list[tuple[ShardId, int]]] = {}
    standing = {s.shard for s in target.shards if s.state in ("held", "paused")}
    for shard in progress.shards if progress else ():
        if shard.waiting and shard.shard not in standing:
            key = (shard.code, shard.waiting, shard.hint)
            groups.setdefault(key, []).append((shard.shard, shard.since_ms))
    for (code, waiting, hint), shards in groups.items():
        since = min((ms for _, ms in shards if ms), default=0)
        yield Need("waiting", coded(code, waiting), hint, since, tuple(s for s, _ in shards))


def _unread(connector: SeenConnector, shards: tuple[ShardId, ...]) -> Need:
    state = connector.state
    what = f"No new rows of source {state.source} come: {connector_fault(state)}"
    hint = _WAYS.get(state.state, _RESTART).format(state=state)
    return Need("unread", coded("SM-4313", what), hint, connector.since_ms, shards, state.source)


def _differences(target: TargetView) -> Iterator[Need]:
    """That a comparison found rows that differ. Applications change a target that was cut over."""
    found = target.validation.differing
    if found is None or (target.progress is not None and target.progress.is_cut_over):
        return
    what = f"{rows_differ(found)}, as a comparison found that ended at {moment(found.ended_ms)}"
    yield Need(
        "differs",
        coded(DIFFER_CODE, what),
        f"{repairs(found)[0].command}; the page of the target shows keys, and what else repairs it",
        target.validation.since_ms,
        tuple(sorted({each.shard for each in found.differing if each.shard is not None})),
    )


def _silence(target: TargetView, now_ms: int) -> Iterator[Need]:
    """That the sink does not report. A new target has some time for its first report."""
    progress = target.progress
    first = target.decisions[-1:]
    since_ms = progress.ts_ms if progress else first[0].ts_ms if first else 0
    if not since_ms or not is_silent(since_ms, now_ms):
        return
    told = "does not report this target any more" if progress else "has not reported this target"
    rest = ". What is told of rows and statements is from its last report" if progress else ""
    what = f"The sink {told}; while it runs, it does so every {RENEWED_S:.0f} s{rest}"
    hint = "start the sink. If it runs, its log says what it waits for, or the clocks differ"
    yield Need("silent", coded("SM-6723", what), hint, since_ms)


def _standing(state: str, shards: Iterable[ShardView]) -> Iterator[Need]:
    groups: dict[tuple[str, str, str], list[ShardView]] = {}
    for shard in shards:
        if shard.state != state:
            continue
        # The hint of a paused shard has its name, and no other difference.
        hint = shard.hint if state == "held" else ""
        groups.setdefault((shard.code, shard.reason, hint), []).append(shard)
    for (code, reason, hint), alike in groups.items():
        since = min((s.ts_ms for s in alike if s.ts_ms), default=0)
        names = tuple(s.shard for s in alike)
        yield Need(state, coded(code, reason), hint or alike[0].hint, since, names)
