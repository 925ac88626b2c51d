"""The answers of ``/api`` as values. The JSON is their plain form. Pure.

Every field is always there. Later versions may add fields.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from shardmerge.agents.holds.reports import HoldReport
from shardmerge.agents.holds.shapes import ShownConflict, WayOut
from shardmerge.agents.status.connector_log import UNASKED, ConnectorsView
from shardmerge.agents.status.overview import Need, connector_needs, summary
from shardmerge.agents.status.validations import is_before_statement
from shardmerge.agents.status.view import TargetView
from shardmerge.schemas.records.decisions import Decision
from shardmerge.schemas.records.progress import SinkProgress
from shardmerge.schemas.records.validations import TargetValidation

RECENT = 20
"""Decisions of each target in ``/api/status``. ``/api/target/NAME`` has all that are kept."""


@dataclass(frozen=True, slots=True)
class ErrorAnswer:
    """Why there is no other answer.

    Attributes:
        error: A sentence, with a code if there is one.
    """

    error: str


@dataclass(frozen=True, slots=True)
class HealthAnswer:
    """Whether the worker's agents consume.

    Attributes:
        ready: Whether they consume. False while the worker starts, recovers or rebalances.
        assigned: The partitions that the agents read.
        view_caught_up: Whether the pages show everything that was in the topics when the worker
            started.
    """

    ready: bool
    assigned: tuple[str, ...]
    view_caught_up: bool


@dataclass(frozen=True, slots=True)
class ColumnAnswer:
    """One joined column.

    Attributes:
        name: The column's name in the target.
        definition: Type and properties as SQL.
        id: The column's identity.
        partial: Whether some live shard lacks the column.
        missing_on: The live shards that lack it, sorted.
    """

    name: str
    definition: str
    id: str
    partial: bool
    missing_on: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ShardAnswer:
    """One shard.

    Attributes:
        shard: As ``source/database.table``.
        state: ``live``, ``held``, ``paused`` or ``left``.
        version: Version of the decision that brought the shard to this state.
        position: The place in the source's binlog that this decision is about.
        reason: Why the shard is held or paused; "" otherwise.
        hint: What ends the hold or the pause.
        code: The code of the reason.
        since_ms: When this state began, in milliseconds since 1970; 0 if that is not known.
    """

    shard: str
    state: str
    version: int
    position: str
    reason: str
    hint: str
    code: str
    since_ms: int


@dataclass(frozen=True, slots=True)
class NeedAnswer:
    """Something about a target, or about the connectors, that an operator should know.

    Attributes:
        state: ``silent`` (the sink does not report), ``failing``, ``refused``, ``unread`` (a
            source's connector does not run), ``held``, ``changed`` (the table was changed by hand),
            ``differs`` (a comparison found rows that are not those of the shards), ``disabled``,
            ``paused`` or ``waiting``; ``unknown``: Connect does not answer.
        what: A sentence; with a code if there is one.
        hint: What the operator can do; "" for none.
        since_ms: When it began, in milliseconds since 1970; 0 if that is not known.
        shards: The shards that it concerns.
        source: The source that it concerns; "" for none, and for all.
    """

    state: str
    what: str
    hint: str
    since_ms: int
    shards: tuple[str, ...]
    source: str


@dataclass(frozen=True, slots=True)
class ConnectorAnswer:
    """The connector of a source, as Kafka Connect told it to the worker at its last look.

    Attributes:
        source: Name of the source.
        name: The connector's name in Kafka Connect.
        state: ``RUNNING``, ``FAILED``, ``PAUSED``, ``STOPPED``, ``UNASSIGNED``, ``RESTARTING``, or
            ``missing``. If only its task does not run, the task's state.
        reason: The messages of its stack trace; "" when nothing failed.
        since_ms: When the worker first saw it in this state, in milliseconds since 1970.
    """

    source: str
    name: str
    state: str
    reason: str
    since_ms: int


@dataclass(frozen=True, slots=True)
class ValidationAnswer:
    """What is known of comparisons of a target with its shards.

    Attributes:
        state: ``never`` (none is known), ``differs``, ``equal``, ``failed`` (something did not
            answer in the latest one) or ``incomplete`` (the latest one did not compare everything,
            or some rows are in doubt).
        differences: How many rows differ, at least.
        is_before_statement: Whether the target got a statement after the comparison that the state
            is about: the one with the most differences; without any, the latest one.
        whole: The latest comparison of all rows; null if none is known.
        later: A later one that did not compare all rows; null without one.
    """

    state: str
    differences: int
    is_before_statement: bool
    whole: TargetValidation | None
    later: TargetValidation | None


@dataclass(frozen=True, slots=True)
class TargetAnswer:
    """One target.

    Attributes:
        target: As ``database.table``.
        state: The state of the first of ``needs``. Without any, ``new`` if the sink has not
            reported the target yet, else ``flows``.
        needs: What an operator should know, the worst first.
        version: Version of the latest decision.
        columns: The columns of the joined schema, in the target's order.
        shards: All shards, also those that left the target; sorted.
        decisions: Decisions, newest first.
        progress: The sink's last report; null if it has not reported yet.
        oldest_ms: Since when the oldest row waits that was not applied at that report, as far as
            the worker saw it, in milliseconds since 1970; 0 if every row was applied.
        validation: What ``shardmerge validate`` found in it.
    """

    target: str
    state: str
    needs: tuple[NeedAnswer, ...]
    version: int
    columns: tuple[ColumnAnswer, ...]
    shards: tuple[ShardAnswer, ...]
    decisions: tuple[Decision, ...]
    progress: SinkProgress | None
    oldest_ms: int
    validation: ValidationAnswer


@dataclass(frozen=True, slots=True)
class StatusAnswer:
    """All targets.

    Attributes:
        pipeline: Name of the pipeline.
        caught_up: Whether the answer has everything that was in the topics when the worker started.
        targets: All targets, sorted by name, each with its last 20 decisions.
        ignored: The last decisions about statements that concern no shard, newest first.
        connectors: The connector of each source; empty before the worker's first look, and while
            Kafka Connect does not answer.
        needs: What an operator should know about the connectors: those that do not run, or that
            Kafka Connect does not answer.
    """

    pipeline: str
    caught_up: bool
    targets: tuple[TargetAnswer, ...]
    ignored: tuple[Decision, ...]
    connectors: tuple[ConnectorAnswer, ...]
    needs: tuple[NeedAnswer, ...]


@dataclass(frozen=True, slots=True)
class HoldAnswer:
    """One reason why shards are held or paused.

    Attributes:
        conflict: The reason with both sides.
        shard: The shard that ``ways`` are for; "" if there are no ways out in this answer.
        ways: The ways out for ``shard``.
        waits_for: For the DDL lock: the shards that have not made the change of ``shard``.
    """

    conflict: ShownConflict
    shard: str
    ways: tuple[WayOut, ...]
    waits_for: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class HoldsAnswer:
    """Why shards of a target are held or paused.

    Attributes:
        target: As ``database.table``.
        reasons: The reasons, holds before pauses.
    """

    target: str
    reasons: tuple[HoldAnswer, ...]


def status_answer(
    targets: Iterable[TargetView],
    ignored: tuple[Decision, ...],
    now_ms: int,
    *,
    pipeline: str,
    caught_up: bool,
    connectors: ConnectorsView = UNASKED,
) -> StatusAnswer:
    """The answer of ``/api/status``.

    Args:
        targets: All targets.
        ignored: The decisions about statements that concern no shard, newest first.
        now_ms: Milliseconds since 1970.
        pipeline: Name of the pipeline.
        caught_up: See ``StatusAnswer``.
        connectors: What is known of the pipeline's connectors.
    """
    return StatusAnswer(
        pipeline,
        caught_up,
        tuple(target_answer(target, now_ms, RECENT, connectors) for target in targets),
        ignored[:RECENT],
        tuple(
            ConnectorAnswer(s.source, s.name, s.state, s.reason, each.since_ms)
            for each in connectors.connectors
            for s in (each.state,)
        ),
        tuple(map(_need, connector_needs(connectors, now_ms))),
    )


def _need(need: Need) -> NeedAnswer:
    shards = tuple(map(str, need.shards))
    return NeedAnswer(need.state, need.what, need.hint, need.since_ms, shards, need.source)


def target_answer(
    target: TargetView,
    now_ms: int,
    decisions: int | None = None,
    connectors: ConnectorsView = UNASKED,
) -> TargetAnswer:
    """One target.

    Args:
        target: The target.
        now_ms: Milliseconds since 1970.
        decisions: How many of the newest decisions to return; None for all that are kept.
        connectors: What is known of the pipeline's connectors.
    """
    found = summary(target, now_ms, connectors)
    return TargetAnswer(
        str(target.target),
        found.state,
        tuple(map(_need, found.needs)),
        target.version,
        tuple(
            ColumnAnswer(c.name, c.definition, c.id, c.partial, tuple(map(str, c.missing_on)))
            for c in target.columns
        ),
        tuple(
            ShardAnswer(
                str(s.shard), s.state, s.version, str(s.position), s.reason, s.hint, s.code, s.ts_ms
            )
            for s in target.shards
        ),
        target.decisions[:decisions],
        target.progress,
        target.samples[-1].oldest_ms if target.samples else 0,
        _validation(target),
    )


def _validation(target: TargetView) -> ValidationAnswer:
    found = target.validation
    return ValidationAnswer(
        found.state,
        found.differing.differences if found.differing else 0,
        found.telling is not None and is_before_statement(found.telling, target.decisions),
        found.whole,
        found.later,
    )


def holds_answer(target: str, reports: list[HoldReport]) -> HoldsAnswer:
    """The answer of ``/api/target/NAME/holds``."""
    reasons = (
        HoldAnswer(r.conflict, str(r.shard or ""), r.ways, tuple(map(str, r.waits_for)))
        for r in reports
    )
    return HoldsAnswer(target, tuple(reasons))
