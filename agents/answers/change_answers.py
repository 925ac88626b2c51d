"""What ``/api`` answers about changes shard by shard, as values. JSON is their plain form. Pure.

It is what the time line of a target's page shows, for every change that is kept: so many changes
in each part, and of many shards the first names.
"""

from __future__ import annotations

from dataclasses import dataclass

from shardmerge.agents.status.execution import MAX_CHANGES, Stand, StandingGroup
from shardmerge.agents.status.timeline import ExecutedStatement, ShownChange, changes
from shardmerge.agents.status.view import TargetView
from shardmerge.schemas.model.names import ShardId

MOST_NAMES = 200
"""Names of shards in one list. A search finds the others."""


@dataclass(frozen=True, slots=True)
class ColumnChangeAnswer:
    """What a change does to one column.

    Attributes:
        id: The column's identity.
        kind: ``added``, ``changed``, ``renamed``, ``dropped`` or ``left out``.
        detail: The new definition of an added or changed column, the new name of a renamed one,
            and the name of one that was dropped or is left out.
    """

    id: str
    kind: str
    detail: str


@dataclass(frozen=True, slots=True)
class StatementAnswer:
    """A statement of the target that a change asked for.

    Attributes:
        version: Version of the decision.
        sql: The statement.
        state: ``executed``, ``debt``, ``waiting``, ``executing``, ``refused``, or ``not known``
            while the sink has not reported on this version.
        detail: What the statement waits for, or what the target's server answered.
        code: The code of ``detail``, or "".
        since_ms: When the sink first reported that state, in milliseconds since 1970; 0 if not
            known.
    """

    version: int
    sql: str
    state: str
    detail: str
    code: str
    since_ms: int


@dataclass(frozen=True, slots=True)
class StandingAnswer:
    """Shards that are equally far with one change.

    Attributes:
        stand: Where their rows are, seen from the change.
        kind: What waiting shards wait at: ``hold``, ``lock`` (the DDL lock), ``gate`` (that the
            target reaches a version), ``pause``, or ``row`` for anything else; "" for other states.
        reason: Why they wait, as the sink tells it; "" for shards that do not wait.
        code: The code of ``reason``, or "".
        hint: What the operator can do, or "".
        count: How many shards they are.
        shards: In the order in which they made the change; the first 200 of them.
        since_ms: When the first of them began to wait, in milliseconds since 1970; 0 for none.
        parked: Rows of all of them that are not applied, at most.
        fastest_ms: Of shards with the stand ``passed``: least time in milliseconds between the
            change on the shard and the first report of the sink that has it passed; null if no
            time is known.
        slowest_ms: The largest of these times.
    """

    stand: Stand
    kind: str
    reason: str
    code: str
    hint: str
    count: int
    shards: tuple[str, ...]
    since_ms: int
    parked: int
    fastest_ms: int | None
    slowest_ms: int | None


@dataclass(frozen=True, slots=True)
class ChangeAnswer:
    """Equal changes of shards: what they asked of the target, and how far each shard is.

    With a search, only the shards that it found are counted and named.

    Attributes:
        ddl: The statement of the shard that made the change first.
        first_version: Version of the decision about the first shard's change.
        last_version: Version of the decision about the last shard's change.
        columns: What the change does; empty for a change that leaves all columns as they were.
        statements: The target's statements, in the order of their versions, as far as the
            decisions are kept: those of the decisions about the change, and of those that ended a
            hold of a shard with it.
        shards: The shards that made the change, the worst stand first.
        lacking_count: How many live shards have not made it; 0 for a change that leaves all columns
            as they were, such as an index, because some may have come with it.
        lacking: Their names, sorted; the first 200 of them.
        differing_count: How many live shards have what it makes, but with another definition.
        differing: Their names, sorted; the first 200 of them.
        without_count: How many live shards do not have the column that it renames or redefines.
        without: Their names, sorted; the first 200 of them.
    """

    ddl: str
    first_version: int
    last_version: int
    columns: tuple[ColumnChangeAnswer, ...]
    statements: tuple[StatementAnswer, ...]
    shards: tuple[StandingAnswer, ...]
    lacking_count: int
    lacking: tuple[str, ...]
    differing_count: int
    differing: tuple[str, ...]
    without_count: int
    without: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ChangesAnswer:
    """How far each shard of a target is with each change.

    Attributes:
        target: As ``database.table``.
        changes: The changes of this page, the latest one first; at most 15.
        change_count: How many changes all pages have.
        page: Number of this page, from 1.
        pages: How many pages there are.
    """

    target: str
    changes: tuple[ChangeAnswer, ...]
    change_count: int
    page: int
    pages: int


def changes_answer(target: TargetView, search: str = "", page: int = 1) -> ChangesAnswer:
    """The answer of ``/api/target/NAME/changes``.

    Args:
        target: The target.
        search: Counts and names only shards whose name contains this text, in upper or lower case.
        page: Number of the page, from 1. A number beyond the last page gives the last page.
    """
    count = len(target.rollouts)
    pages = max(1, -(-count // MAX_CHANGES))
    page = min(max(1, page), pages)
    found = changes(target, (page - 1) * MAX_CHANGES, MAX_CHANGES, search)
    return ChangesAnswer(str(target.target), tuple(map(_change, found)), count, page, pages)


def _change(shown: ShownChange) -> ChangeAnswer:
    execution = shown.execution
    rollout = execution.rollout
    return ChangeAnswer(
        rollout.ddl,
        rollout.first,
        rollout.last,
        tuple(ColumnChangeAnswer(*each) for each in rollout.change),
        tuple(
            _statement(entry.decision.version, each)
            for entry in shown.entries
            for each in entry.statements
        ),
        tuple(map(_standing, execution.groups)),
        len(execution.lacking),
        _names(execution.lacking),
        len(execution.differing),
        _names(execution.differing),
        len(execution.without),
        _names(execution.without),
    )


def _names(shards: tuple[ShardId, ...]) -> tuple[str, ...]:
    return tuple(map(str, shards[:MOST_NAMES]))


def _statement(version: int, told: ExecutedStatement) -> StatementAnswer:
    sql = told.statement.sql
    return StatementAnswer(version, sql, told.state, told.detail, told.code, told.since_ms)


def _standing(group: StandingGroup) -> StandingAnswer:
    return StandingAnswer(
        group.stand,
        group.kind,
        group.reason,
        group.code,
        group.hint,
        len(group.shards),
        _names(group.shards),
        group.since_ms,
        group.parked,
        group.fastest_ms,
        group.slowest_ms,
    )
