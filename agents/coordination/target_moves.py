"""Where a target moves to when its shards' schemas are joined, and by which statements. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from shardmerge.agents.coordination.rows.column_replacement import NO_RENEWALS, Renewals
from shardmerge.agents.coordination.rows.new_keys import HINT, unknown_key
from shardmerge.agents.coordination.state.target_state import TargetState
from shardmerge.schemas.lattice.copied_columns import contradiction, copy_moves, widened
from shardmerge.schemas.lattice.join_index import JoinIndex
from shardmerge.schemas.lattice.joined import Conflict, JoinedTable, ShardSchema
from shardmerge.schemas.lattice.type_join import PUBLISHED, TypeRules
from shardmerge.schemas.model.coded_text import CodedText
from shardmerge.schemas.model.frozen import made_at_once
from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.model.origin import OriginPart, without_origin
from shardmerge.schemas.model.policies import Keyless, Mode
from shardmerge.schemas.model.shard_columns import ShardColumn
from shardmerge.schemas.model.tables import TableSchema
from shardmerge.schemas.records.decisions import TargetStatement
from shardmerge.schemas.target.dialects.dialect import Dialect
from shardmerge.schemas.target.diff import CannotRender, diff
from shardmerge.schemas.target.target_table import changed_comments, target_schema

NO_COMMENTS: Mapping[str, str] = {}
"""The column comments of a change that sets none."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a change cannot be brought onto the target, what ends the hold, and its code."""

    reason: str
    hint: str
    code: str


@made_at_once
@dataclass(frozen=True, slots=True)
class Joined:
    """Where a target moves to, and the statements that bring it there.

    Attributes:
        told: Sentences on where the target differs from the join, or what it does without.
        notes: The sentences of ``told`` that are new and that no statement's reason tells.
        reloads: Shards whose rows go before the primary key changes, and are read again, sorted.
    """

    schema: TableSchema | None
    columns: tuple[ShardColumn, ...]
    statements: tuple[TargetStatement, ...]
    joined: JoinedTable | None
    names: Mapping[str, str]
    told: tuple[str, ...] = ()
    notes: tuple[CodedText, ...] = ()
    reloads: tuple[ShardId, ...] = ()


def join_target(
    state: TargetState,
    index: JoinIndex,
    names: Mapping[str, str],
    *,
    dialect: Dialect,
    first: Sequence[str] = (),
    comments: Mapping[str, str] | Callable[[], Mapping[str, str]] = NO_COMMENTS,
    renewals: Renewals = NO_RENEWALS,
) -> Joined | Refusal:
    """The move from the target as it is to the join of some of its shards' schemas.

    Args:
        state: With the shards as they would be.
        index: Of the schemas that are joined: the effective or the final ones.
        names: Identity → name in the target.
        dialect: The target's kind and version.
        first: Identities whose columns come first among those that are new in the target.
        comments: Comments of columns that the change set, by identity. A function that gives them
            is called only if there is a join: it may look at every held shard, and while shards
            contradict each other every change of any shard comes here.
        renewals: Columns that shards dropped and added again.
    """
    if not index.shards:
        return Joined(state.schema, state.columns, (), state.joined, names, state.told)
    called = _without_clash(state, index, names)
    if isinstance(called, Refusal):
        return called
    names = called
    if state.copies and (why := _cannot_copy(state, index, names)):
        return why
    joined = index.join(names, first, state.type_rules)
    if not isinstance(joined, Conflict):
        joined = widened(joined, state.copies, state.type_rules)
    if isinstance(joined, Conflict):
        return Refusal(str(joined), joined.resolve, code=joined.code)
    if why := _keyless(state, joined):
        return why
    for column in state.policies.origin.columns:
        found = joined.column(column.column_id)
        lacks = found is None or found.partial
        # A shard with a primary key does not need the position of its rows.
        if lacks and not (column.part is OriginPart.POSITION and joined.key):
            return Refusal(
                f"a shard has a column {column.name!r}, which is the target's origin column",
                "rename or drop the column on the shard",
                code="SM-1209",
            )
    comments = comments() if callable(comments) else comments
    key = {column_id for column_id, _ in joined.key}
    if (
        not comments
        and joined == state.joined
        and _default_charset(joined) == _default_charset(state.joined)
    ):
        unknown = unknown_key(state, index, key, state.columns, state.columns, renewals=renewals)
        if unknown and not unknown.reloads(state):
            return Refusal(unknown.reason, HINT, code="SM-1211")
        reloads = unknown.shards if unknown else ()
        return Joined(
            state.schema, state.columns, (), state.joined, names, state.told, reloads=reloads
        )
    copies = copy_moves(state.copies, state.columns, joined)
    columns = copies.rekeyed(state.columns)
    to = target_schema(
        joined, columns, table=state.target.table, dialect=dialect, comments=comments,
        collations=state.defaults, there=state.schema,
    )  # fmt: skip
    statements = diff(
        state.schema, columns, to, state.target, dialect,
        copies=copies, renewed=lambda column_id: renewals.makes_anew(column_id, state, index),
        types=_types_between(state),
    )  # fmt: skip
    if isinstance(statements, CannotRender):
        return Refusal(statements.reason, statements.hint, code=statements.code)
    unknown = unknown_key(state, index, key, columns, to.columns, renewals=renewals)
    if unknown and not unknown.reloads(state):
        return Refusal(unknown.reason, HINT, code="SM-1211")
    notes = to.unreported_notes(state.told, statements)
    reloads = unknown.shards if unknown else ()
    return Joined(to.schema, to.columns, statements, joined, names, to.sentences, notes, reloads)


@dataclass(frozen=True, slots=True)
class Settled:
    """Where a target moves to with its shards' schemas as they are, and which gates open.

    Attributes:
        state: With the shards as they count then, and the target's schema as it was before.
        answer: Where the target moves to.
        releases: Shard → version up to which its gates open.
    """

    state: TargetState
    answer: Joined
    releases: Mapping[ShardId, int]


def comments_between(
    before: TargetState, after: TargetState, shards: Iterable[ShardId]
) -> dict[str, str]:
    """Identity → the comment that these shards' changes set on a column when they begin to count.

    A change that waits (for the DDL lock, or in a conflict) sets its comments when it is let
    through.
    """
    found: dict[str, str] = {}

    def waits_since(name: ShardId) -> tuple[int, ShardId]:
        held = before.shards.get(name)
        return (held.hold.version if held and held.hold else before.version, name)

    # Of two comments on one column, that of the shard that was held last counts.
    for name in sorted(shards, key=waits_since):
        old, new = before.shards.get(name), after.shards.get(name)
        if new is not None and new.effective is not None:
            columns = old.effective.columns if old and old.effective else ()
            found |= changed_comments(columns, new.effective.columns)
    return found


def unmoved(state: TargetState, names: Mapping[str, str]) -> Joined:
    """The move of a target that stays as it is, and accepts what it accepted.

    After a shard left, the others still have a join. The target stays then because it cannot be
    brought to that join by statements.
    """
    return Joined(state.schema, state.columns, (), state.joined, names, state.told)


def _cannot_copy(state: TargetState, index: JoinIndex, names: Mapping[str, str]) -> Refusal | None:
    """Why the renames by copying contradict each other; looks at all shards if some are held."""
    schemas = list(state.finals) if index is state.final else effective_schemas(state)
    there = [column.id for column in state.columns]
    why = contradiction(state.copies, index.ids.keys(), there, schemas, names)
    return Refusal(*why, code="SM-1207") if why else None


def _keyless(state: TargetState, joined: JoinedTable) -> Refusal | None:
    """Why a table without a primary key is refused; None if the target already has no key."""
    if state.policies.keyless is Keyless.COUNT or joined.key:
        return None
    if state.schema is not None and state.schema.primary_key is None:
        return None
    return Refusal(
        "the table has no primary key, which its route asks for (keyless = 'refuse')",
        "add a primary key to the table, or take such tables in: `shardmerge command set-policy "
        f"keyless={Keyless.COUNT} --target {state.target}`",
        code="SM-1210",
    )


def _types_between(state: TargetState) -> TypeRules:
    """The rules for the types through which a column of the target passes.

    When a lock opens, all shards have changed alike. So the target's column is changed once, to
    their type, and need not hold values from before and from after the change at the same time.
    """
    return PUBLISHED if state.policies.mode is Mode.PESSIMISTIC else state.type_rules


def _default_charset(joined: JoinedTable) -> tuple[str, str]:
    return joined.charset, joined.collation


def _as_shards_call_them(state: TargetState, names: Mapping[str, str]) -> dict[str, str]:
    """``names``, with a shard's name for each column whose target name no shard uses any more.

    The shard that used the target's name has left, or has renamed the column. Looks at all shards;
    needed only where two columns would have one name.
    """
    called = names_on(state.finals)
    return {
        column_id: name
        if name.lower() in {n.lower() for n in called.get(column_id, {name})}
        else min(called[column_id])
        for column_id, name in names.items()
    }


def as_all_call_them(schemas: Iterable[ShardSchema], names: Mapping[str, str]) -> Mapping[str, str]:
    """``names``, with the shards' name for each column that they all call alike."""
    found = dict(names)
    for column_id, on_shards in names_on(schemas).items():
        if len({name.lower() for name in on_shards}) == 1:
            found[column_id] = min(on_shards)
    return found


def as_renamed_meanwhile(
    schemas: Iterable[ShardSchema], names: Mapping[str, str]
) -> Mapping[str, str]:
    """``names``, with a shard's new name for each column that shares its name with another one.

    That happens when the target did not follow a rename, and a shard used the old name again.
    """
    taken = Counter(name.lower() for name in names.values())
    called, found = names_on(schemas), dict(names)
    for column_id, name in names.items():
        free = [other for other in called.get(column_id, ()) if other.lower() not in taken]
        if free and taken[name.lower()] > 1:
            found[column_id] = min(free)
    return found


def effective_schemas(state: TargetState) -> set[ShardSchema]:
    """The different schemas with which shards count now."""
    return {s.effective for s in state.shards.values() if s.effective is not None}


def names_on(schemas: Iterable[ShardSchema]) -> dict[str, set[str]]:
    """What the columns of some schemas are called, by identity."""
    called: dict[str, set[str]] = {}
    for schema in schemas:
        for item in schema.columns:
            called.setdefault(item.id, set()).add(item.column.name)
    return called


def _without_clash(
    state: TargetState, index: JoinIndex, names: Mapping[str, str]
) -> Mapping[str, str] | Refusal:
    """``names``, so that no two columns of the index have one name; or which two would."""
    if index is state.final and not _clash(index.ids, names, state):
        return names  # no two of its columns have one name, with the origin columns or without
    ids = without_origin({*index.ids, *state.final.ids})
    if clash := _clash(ids, names, state):
        names = _as_shards_call_them(state, names)
        if _clash(ids, names, state):
            return clash
    return _clash(index.ids, names, state) or names


def _clash(ids: Collection[str], names: Mapping[str, str], state: TargetState) -> Refusal | None:
    """Two columns of different identity (``ids``) that would have one name in the target."""
    if len({names[column_id].lower() for column_id in ids}) == len(ids):
        return None
    taken: dict[str, str] = {}
    for column_id in sorted(ids):
        name = names[column_id]
        if taken.setdefault(name.lower(), column_id) != column_id:
            other = taken[name.lower()]
            if {column_id, other} & {copy.before for copy in state.copies}:
                return Refusal(
                    f"{name!r} is the old name of a column that not every shard has renamed, and "
                    "the name of another one, which cannot be copied",
                    "rename it on the other shards first, or undo the change of this one",
                    code="SM-1207",
                )
            return Refusal(
                f"the target would have two columns {name!r}: {other} and {column_id}",
                "rename or drop the column on the shard that added it last",
                code="SM-1206",
            )
    return None
