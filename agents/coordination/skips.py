"""Commands about the change that holds a shard: skip it, or replace it by another one. Pure.

The shard's rows come as its server has them. So the shard must count with a schema that accepts
them. A column whose values do not fit the target's column is left out of the rows, until a DDL of
the shard changes that column (``effective_schema``). So the rows behind the gate pass, and the
decision tells what the command costs.

A shard that arrived in conflict has no schema before its change. When its change is skipped, it
counts with as many of its columns as can be joined: the key first, the others in their order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial

from shardmerge.agents.coordination.state.effective_schema import (
    as_rows_fit,
    values_fit,
    with_columns,
)
from shardmerge.agents.coordination.state.shard_state import Made, ShardState
from shardmerge.agents.coordination.state.target_state import TargetState
from shardmerge.schemas.ddl.apply.statements import apply_alter
from shardmerge.schemas.ddl.changes import AlterTable
from shardmerge.schemas.ddl.grammar import ServerContext, parse
from shardmerge.schemas.lattice.joined import Conflict, ShardSchema
from shardmerge.schemas.model.coded_text import CodedText
from shardmerge.schemas.model.errors import SourceError
from shardmerge.schemas.model.frozen import replace
from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.model.origin import origin_part
from shardmerge.schemas.model.tables import Column
from shardmerge.schemas.records.operator_commands import OperatorCommand
from shardmerge.schemas.records.schema_changes import SchemaChange
from shardmerge.schemas.target.dialects.dialect import Dialect

from .ddl_lock import head_of
from .decision_records import Step, with_warning
from .identities import assign, known_names
from .settling import settle
from .target_moves import Refusal, Settled, comments_between, join_target, unmoved

NOT_HELD = "the agents' status page lists the live shards, and why a shard is held"
_OTHERWISE = "change the shard until it fits, or take it out with leave: its rows are passed over"


def held_by_known(state: TargetState, known: ShardState) -> ShardState | Refusal:
    """The shard, if it is held by a change whose effect is known."""
    if known.hold is None:
        return Refusal(f"{known.shard} is not held", NOT_HELD, code="SM-1304")
    has = _first(known)
    if has is None:
        return Refusal(
            f"{known.shard} is held, and what its change did is not known",
            "tell its schema with set-schema, or take it out with leave: its rows are passed over",
            code="SM-1305",
        )
    keyed = has.schema.primary_key is not None
    for column in state.policies.origin.of_shard if keyed else state.policies.origin.columns:
        if column.column_id not in has.ids:
            return Refusal(
                f"{known.shard} has a column {column.name!r}, which is the target's origin column",
                "rename or drop the column on the shard, or take the shard out with leave",
                code="SM-1209",
            )
    return known


def skip(state: TargetState, known: ShardState, dialect: Dialect) -> Settled | Refusal:
    """The held change does not count."""
    if known.effective is None:
        skipped = _admitted(state, known, dialect)
    else:
        skipped = _skipped(known, state.without_shard(known.shard))
    if isinstance(skipped, Refusal):
        return skipped
    return _opened(state, [skipped], partial(_settled_or_still, state, dialect))


def replaced(
    state: TargetState,
    known: ShardState,
    command: OperatorCommand,
    dialect: Dialect,
    context: ServerContext,
) -> Settled | Refusal:
    """The held change counts as if it were the ALTER TABLE of the command.

    The ALTER TABLE is applied to the shard's schema before the change. A shard that arrived in
    conflict has none: there it is applied to the schema with which the shard arrived.
    """
    has = _first(known)
    assert has is not None
    base = known.effective or has
    hint = "write an ALTER TABLE of the shard, as it could have run instead"
    try:
        statement = parse(command.argument, context)
        if not isinstance(statement, AlterTable):
            return Refusal("the statement is no ALTER TABLE", hint, code="SM-1310")
        result = apply_alter(base.schema, statement, known.shard.table, context)
    except SourceError as error:
        return Refusal(error.message, error.hint or hint, code=error.code)
    change = SchemaChange(
        command.id, command.target, known.shard, known.position, base.schema,
        result.schema, tuple(result.lineage), tuple(result.actions), command.argument,
    )  # fmt: skip
    free = state.with_shard(replace(known, effective=base, hold=None, actual=None))
    assigned = assign(free, change)
    counts = as_rows_fit(assigned.tracked, has, (), state.type_rules)
    if isinstance(counts, str):
        return Refusal(f"{known.shard}: {counts}", hint, code="SM-1311")
    shard = _counting(known, counts, has)
    state = replace(state, generations=assigned.generations, copies=assigned.copies)
    return _opened(state, [shard], lambda moved, told: settle(moved, assigned.names, dialect, told))


def unlock_execute(state: TargetState, known: ShardState, dialect: Dialect) -> Settled | Refusal:
    """The shard's first waiting change is executed, for all shards that wait with the same one."""
    if known.head is None:
        return _no_lock(known)
    popped = [shard.popped for shard in _with_head_of(state, known.head)]
    return _opened(
        state, popped, lambda moved, told: settle(moved, known_names(moved), dialect, told)
    )


def unlock_discard(state: TargetState, known: ShardState, dialect: Dialect) -> Settled | Refusal:
    """The shard's first waiting change is skipped, for all shards that wait with the same one."""
    if known.head is None:
        return _no_lock(known)
    waiting = _with_head_of(state, known.head)
    others = state
    for shard in waiting:
        others = others.without_shard(shard.shard)
    skipped = []
    for shard in waiting:
        without = _skipped(shard, others)
        if isinstance(without, Refusal):
            return without
        skipped.append(without)
    return _opened(state, skipped, partial(_settled_or_still, state, dialect))


def with_opened(settled: Settled, opens: Mapping[ShardId, int]) -> Settled:
    """``settled``, with the gates that a command itself opens."""
    releases = dict(settled.releases)
    for shard, through in opens.items():
        releases[shard] = max(through, releases.get(shard, 0))
    return replace(settled, releases=releases)


def with_left_out(step: Step) -> Step:
    """The step, with warnings about the columns left out of its released shards' rows."""
    decision = step.decision
    assert decision is not None
    for release in reversed(decision.releases):
        shard = step.state.shards.get(release.shard)
        if shard is None or shard.actual is None or not release.left_out:
            continue
        names = (c.column.name for c in shard.actual.columns if c.id in release.left_out)
        text = (
            f"values of {release.shard} in {', '.join(names)} are left out: rows in the target "
            "keep theirs, rows that are written get the default, until a DDL of the shard changes "
            "the column"
        )
        step = with_warning(step, CodedText(text, "SM-1709"))
    return step


def _first(shard: ShardState) -> ShardSchema | None:
    """The shard's schema after the first change that it waits with; None when it is not known."""
    hold = shard.hold
    if hold is None:
        return None
    return hold.queue[0].post if hold.queue else hold.post


def _counting(known: ShardState, counts: ShardSchema, has: ShardSchema) -> ShardState:
    """The shard when it counts with ``counts``, and its first waiting change is done."""
    actual = None if counts == has else has
    return replace(known, effective=counts, actual=actual, hold=known.rest)


def _skipped(shard: ShardState, others: TargetState) -> ShardState | Refusal:
    """The shard when its first waiting change does not count.

    A column that the change added counts with the other shards' definition, if that accepts the
    shard's values: if only the default differs, for example.

    Args:
        shard: A held one.
        others: The target without it.
    """
    has = _first(shard)
    if has is None or shard.effective is None:
        return Refusal(
            f"what {shard.shard} has is not known",
            "tell its schema with set-schema",
            code="SM-1305",
        )
    counts = as_rows_fit(
        _with_fitting(shard.effective, has, others), has, others.effective.ids, others.type_rules
    )
    if isinstance(counts, str):
        return Refusal(f"{shard.shard}: {counts}", _OTHERWISE, code="SM-1311")
    return _counting(shard, counts, has)


def _with_fitting(counts: ShardSchema, has: ShardSchema, others: TargetState) -> ShardSchema:
    """``counts``, plus the others' columns that it lacks and that accept the shard's values."""
    effective, names_there = others.effective, known_names(others)
    joined = effective.join(names_there, types=others.type_rules) if effective.shards else None
    if joined is None or isinstance(joined, Conflict):
        return counts
    names, columns, ids = set(counts.by_name), list(counts.schema.columns), list(counts.ids)
    for item in has.columns:
        theirs = joined.column(item.id)
        if item.id in counts.ids or theirs is None or item.column.name.lower() in names:
            continue
        if values_fit(item.column, theirs.column):
            columns.append(replace(theirs.column, name=item.column.name))
            ids.append(item.id)
    if len(ids) == len(counts.ids):
        return counts
    return ShardSchema(replace(counts.schema, columns=tuple(columns)), tuple(ids))


def _admitted(state: TargetState, known: ShardState, dialect: Dialect) -> ShardState | Refusal:
    """A shard that arrived in conflict, counting with what can be joined of its schema."""
    has, names = _first(known), known_names(state)
    assert has is not None
    joined = state.effective.join(names, types=state.type_rules) if state.effective.shards else None

    def tried(columns: Mapping[str, Column]) -> ShardState | Refusal:
        shard = _counting(known, with_columns(has, columns), has)
        moved = state.with_shard(shard)
        answer = join_target(moved, moved.effective, names, dialect=dialect)
        return answer if isinstance(answer, Refusal) else shard

    key, by_name = has.schema.primary_key, has.by_name
    keys = {by_name[name.lower()] for name in key.columns} if key else set[str]()
    own = dict(zip(has.ids, has.schema.columns, strict=True))
    columns = {i: c for i, c in own.items() if i in keys or origin_part(i) is not None}
    found = tried(columns)
    for column_id, column in own.items():
        if column_id in columns or (isinstance(found, Refusal) and columns):
            continue
        theirs = joined.column(column_id) if joined and not isinstance(joined, Conflict) else None
        ways = [column]
        if theirs is not None and values_fit(column, theirs.column):
            ways.append(replace(theirs.column, name=column.name))
        for way in ways:
            better = tried({**columns, column_id: way})
            if not isinstance(better, Refusal):
                columns, found = {**columns, column_id: way}, better
                break
    if isinstance(found, Refusal):
        return Refusal(found.reason, f"{found.hint}; or take it out with leave", code=found.code)
    return found


def _with_head_of(state: TargetState, head: Made) -> list[ShardState]:
    """The shards whose first waiting change is the same as ``head``."""
    ways = head_of(state, head).ways
    held = (state.shards[name] for name in sorted(state.held))
    return [shard for shard in held if shard.head in ways]


def _no_lock(known: ShardState) -> Refusal:
    return Refusal(
        f"{known.shard} does not wait for a DDL lock",
        "it is held by a conflict: skip or replace its change",
        code="SM-1312",
    )


def _opened(
    state: TargetState,
    shards: Iterable[ShardState],
    act: Callable[[TargetState, Mapping[str, str]], Settled | Refusal],
) -> Settled | Refusal:
    """What the target moves to with these shards as given, and the gates that open with them."""
    opens: dict[ShardId, int] = {}
    moved = state
    for shard in shards:
        hold = state.shards[shard.shard].hold
        queue = hold.queue if hold else ()
        opens[shard.shard] = queue[0].version if queue else state.version
        moved = moved.with_shard(shard)
    settled = act(moved, comments_between(state, moved, opens))
    return settled if isinstance(settled, Refusal) else with_opened(settled, opens)


def _settled_or_still(
    before: TargetState, dialect: Dialect, moved: TargetState, comments: Mapping[str, str]
) -> Settled | Refusal:
    """Like ``settle``; without a join the target stays if every held shard counts as before."""
    names = known_names(moved)
    found = settle(moved, names, dialect, comments)
    same = all(
        shard.effective == before.shards[name].effective
        for name, shard in moved.shards.items()
        if name in before.held
    )
    if isinstance(found, Refusal) and same:
        return Settled(moved, unmoved(moved, names), {})
    return found
