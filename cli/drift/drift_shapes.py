"""The values that ``shardmerge drift --json`` prints, and the lines for people. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from shardmerge.cli.views.picture import moment
from shardmerge.cli.views.text import short_time
from shardmerge.schemas.codes.registry import coded
from shardmerge.schemas.records.drift import Difference
from shardmerge.schemas.target.drift import MEANINGS, adoption_of
from shardmerge.schemas.target.drift_healing import Healing

from .drift_reader import TargetDrift


@dataclass(frozen=True, slots=True)
class HealingStatement:
    """One statement that gives a part of a table its decided definition again.

    Attributes:
        sql: The statement; "" when somebody must make the part by hand.
        loses: Which data the statement destroys, or does not bring back; "" for none.
        reason: Why there is no statement; "" when there is one.
    """

    sql: str
    loses: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class TableDifference:
    """One difference between a target's table and what was decided and executed.

    Attributes:
        subject: ``column:<name>``, ``index:<name>``, ``check:<name>``, ``foreign key:<name>``,
            ``trigger:<name>``, ``partitioning``, ``charset`` or ``table``; of an Iceberg table also
            ``identifier``, ``rows`` and ``rollback``.
        kind: ``harmless``; ``refuses``: the table can refuse rows; ``values``: it can change rows;
            ``missing``: it lacks something; or ``unread``: it cannot be compared.
        code: The code of the kind, for example ``SM-6802``.
        expected: What was decided, as SQL; "" for nothing.
        found: What the server shows; "" for nothing.
        since: When the sink first saw the difference; "" when it has not seen it yet.
        before: When the sink last saw the table without the difference; "" when this is not known.
        means: What the difference can do to rows.
        healing: The statements that heal the difference, in execution order.
        unadoptable: Why the difference cannot be adopted; "" when it can.
    """

    subject: str
    kind: str
    code: str
    expected: str
    found: str
    since: str
    before: str
    means: str
    healing: tuple[HealingStatement, ...]
    unadoptable: str


@dataclass(frozen=True, slots=True)
class ShownDrift:
    """What ``shardmerge drift`` prints of one target.

    Attributes:
        target: As ``database.table``.
        looked_at: Whether the table was compared.
        differences: Sorted by subject.
    """

    target: str
    looked_at: bool
    differences: tuple[TableDifference, ...]


def shown(drift: TargetDrift) -> ShownDrift:
    """The value to print for one target."""
    return ShownDrift(
        str(drift.target),
        drift.compared is not None,
        tuple(_difference(drift, each) for each in drift.differences),
    )


def _difference(drift: TargetDrift, each: Difference) -> TableDifference:
    assert drift.compared is not None
    adoption = adoption_of(each, drift.compared.found)
    return TableDifference(
        each.subject,
        each.kind.value,
        each.code,
        each.expected,
        each.found,
        moment(each.since_ms),
        moment(each.clear_ms),
        MEANINGS[each.kind],
        tuple(_statement(h) for h in drift.healings if h.subject == each.subject),
        adoption if isinstance(adoption, str) else "",
    )


def _statement(healing: Healing) -> HealingStatement:
    return HealingStatement(healing.sql, healing.loses, healing.reason)


def lines(drift: ShownDrift) -> Iterator[str]:
    """The lines to print for one target."""
    if not drift.looked_at:
        yield f"{drift.target}: not looked at"
        return
    if not drift.differences:
        yield f"{drift.target}: as decided"
        return
    things = "1 thing" if len(drift.differences) == 1 else f"{len(drift.differences)} things"
    yield f"{drift.target}: differs in {things} from what was decided"
    for each in drift.differences:
        yield f"  {each.subject}: {coded(each.code, each.means)}"
        yield f"    decided: {each.expected or 'nothing'}"
        yield f"    found:   {each.found or 'nothing'}"
        yield f"    since:   {_since(each)}"
        yield from healing_lines(each.healing, "    ")
        if each.unadoptable:
            yield f"    cannot be adopted: {each.unadoptable}"


def healing_lines(healing: tuple[HealingStatement, ...], indent: str) -> Iterator[str]:
    """The lines to print for the statements."""
    for statement in healing:
        if statement.reason:
            yield f"{indent}heal by hand: {statement.reason}"
        else:
            yield f"{indent}heal: {statement.sql}"
        if statement.loses:
            yield f"{indent}  is lost: {statement.loses}"


def planned(healings: tuple[Healing, ...]) -> tuple[HealingStatement, ...]:
    """The shapes of statements, in execution order."""
    return tuple(map(_statement, healings))


def _since(each: TableDifference) -> str:
    if not each.since:
        return "not known; the sink has not seen it yet"
    if not each.before:
        return f"before {short_time(each.since)}, when the sink saw it at its first look"
    return f"between {short_time(each.before)} and {short_time(each.since)}"
