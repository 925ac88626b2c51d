"""Column identities: which target column a shard's column belongs to, whatever its name is.

An identity is ``<name at birth>#<generation>``. A rename keeps it. A column that a shard adds
takes the identity of the target's column of that name if there is one, else a new one: the
next generation of its name, so that a value of a dropped column never comes back under a
re-added name. Origin columns, which no shard has, have identities of their own (``origin``).

A shard can rename a column to a name that it has not used yet, but under which other shards
already have a column. The renamed column then takes the identity of the others' column, and the
shard's rows are read again for it. Such a shard is behind the others, for now or for good.

Under ``RenamePolicy.COPY`` the first shard's rename gives its column a new identity, and a ``Copy``
leads from the old identity to the new one (``copied_columns``). The same rename on the other
shards, and renames back, follow the copies that exist.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from shardmerge.agents.coordination.rows.rereads import is_read_again
from shardmerge.agents.coordination.state.target_state import TargetState
from shardmerge.schemas.lattice.copied_columns import Copy, are_kin, later_names
from shardmerge.schemas.lattice.joined import ShardSchema, name_at_birth
from shardmerge.schemas.lattice.origin_columns import with_origin
from shardmerge.schemas.lattice.type_join import joined_type
from shardmerge.schemas.model.coded_text import CodedText
from shardmerge.schemas.model.frozen import made_at_once
from shardmerge.schemas.model.origin import origin_part
from shardmerge.schemas.model.policies import Mode, RenamePolicy
from shardmerge.schemas.model.shard_columns import Lineage
from shardmerge.schemas.records.schema_changes import SchemaChange


@made_at_once
@dataclass(frozen=True, slots=True)
class Assigned:
    """The result of ``assign``.

    Attributes:
        tracked: The shard's schema after the change, with identities.
        names: Identity → name in the target, of every identity that is known now.
        generations: See ``TargetState``.
        copies: Likewise, with those that the change begins.
        unfollowed: Identity → the shard's name of the column, and the warning to give if the target
            does not follow this rename.
    """

    tracked: ShardSchema
    names: Mapping[str, str]
    generations: Mapping[str, int]
    copies: tuple[Copy, ...]
    unfollowed: Mapping[str, tuple[str, CodedText]]

    def warnings(self, names: Mapping[str, str]) -> list[CodedText]:
        """The renames that the target does not follow, for people.

        Args:
            names: Identity → name in the target, after the decision.
        """
        return [
            warning
            for column_id, (name, warning) in self.unfollowed.items()
            if names[column_id].lower() != name.lower()
        ]


def known_names(state: TargetState) -> dict[str, str]:
    """Identity → target name: the target's columns, then those that only shards have."""
    names = {c.id: c.column.name for c in state.columns}
    for column_id in sorted(state.names):
        names.setdefault(column_id, state.names[column_id])
    return names


def assign(state: TargetState, change: SchemaChange) -> Assigned:
    """Give every column of ``change.after`` its identity, and the target's columns their names.

    A rename is mapped: the target's column is renamed with the first shard that renames it;
    shards that have not renamed yet keep writing into it under their own name. A rename that
    contradicts another shard's rename is not followed: this loses nothing, and a warning tells it,
    unless the target follows because all shards agree by now.
    A rename by copying gives the shard's column another identity.

    Two identities with one target name are possible here; such schemas have no join.
    """
    assert change.after is not None
    shard = state.shards.get(change.shard)
    before: Mapping[str, str] = shard.real.by_name if shard and shard.real else {}
    if state.policies.origin.columns:
        # A column of that name that the shard itself has is another one.
        before = {name: i for name, i in before.items() if origin_part(i) is None}
    book = _NameBook(known_names(state), state.generations)
    lineages = _lineage(change, before)
    kept = [before.get(x.before.lower()) if x.before else None for x in lineages]
    copies = _Copies(state, change, book, {*before.values()})
    ids: list[str] = []
    waiting: list[tuple[str, Lineage]] = []
    for lineage, column_id in zip(lineages, kept, strict=True):
        found = column_id or ""
        if lineage.before == lineage.name == book.names.get(found):
            ids.append(found)  # it keeps its name, which is the target's
            continue
        if column_id is not None and _is_called_anew(state, book, column_id, lineage):
            found = copies.renamed(column_id, lineage.name)
        if column_id is not None and found == column_id and lineage.before != lineage.name:
            waiting.append((column_id, lineage))
            waiting = book.renamed(waiting)
        ids.append(found)
    taken = set(filter(None, ids))
    for place, lineage in enumerate(lineages):
        if ids[place]:
            continue
        added = book.find(lineage.name) or _called(state, lineage.name)
        if added is None or added in taken or origin_part(added) or copies.gave_up(added, taken):
            added = book.give_birth(lineage.name)
        taken.add(added)
        ids[place] = added
    for column in state.policies.origin.columns:
        book.names.setdefault(column.column_id, column.name)
    tracked = with_origin(ShardSchema(change.after, tuple(ids)), state.policies.origin)
    unfollowed = {i: (line.name, book.why_not_renamed(i, line)) for i, line in waiting}
    return Assigned(tracked, book.names, book.generations, copies.all, unfollowed)


def _lineage(change: SchemaChange, before: Mapping[str, str]) -> tuple[Lineage, ...]:
    """The change's lineage; by name when the change only describes a known shard anew."""
    assert change.after is not None
    if change.lineage:
        return change.lineage
    return tuple(
        Lineage(c.name, c.name if c.name.lower() in before else "") for c in change.after.columns
    )


def _is_called_anew(state: TargetState, book: _NameBook, column_id: str, lineage: Lineage) -> bool:
    """Whether a shard renamed a column: by this change, or earlier, and the target did not follow.

    An earlier rename is tried again, because the type of the others' column of that name may fit
    by now. A column that still has its name at birth was not renamed by this shard. Under
    ``RenamePolicy.COPY`` only a rename by this change counts.
    """
    old, new = lineage.before.lower(), lineage.name.lower()
    if state.policies.renames is RenamePolicy.COPY or old != new:
        return old != new
    at_birth = name_at_birth(column_id).lower()
    return new not in (book.names[column_id].lower(), at_birth)


def _called(state: TargetState, name: str) -> str | None:
    """The identity that shards have under this name; None unless there is exactly one.

    Only called for a name that is new in the target. A shard with such a column has renamed it and
    waits, or has not followed the others' rename yet. The cost is one look at every different
    schema if columns were renamed.
    """
    folded = name.lower()
    born = any(name_at_birth(column_id).lower() == folded for column_id in state.final.ids)
    if state.policies.renames is RenamePolicy.COPY or not (born or state.pool.renamed):
        return None
    called = (schema.by_name.get(folded) for schema in state.finals)
    found = set(filter(None, called))
    return found.pop() if len(found) == 1 else None


class _Copies:
    """The renames by copying while one change is worked through.

    Args:
        state: Before the change.
        change: Of one shard.
        book: Names and births.
        had: The identities that the shard had before the change.
    """

    def __init__(
        self, state: TargetState, change: SchemaChange, book: _NameBook, had: set[str]
    ) -> None:
        self._state, self._change, self._book, self._had = state, change, book, had
        self._found = list(state.copies)
        optimistic = state.policies.mode is Mode.OPTIMISTIC
        self._policy = state.policies.renames is RenamePolicy.COPY and optimistic

    @property
    def all(self) -> tuple[Copy, ...]:
        """The copies known before the change, and those that it begins."""
        return tuple(sorted(self._found))

    def renamed(self, column_id: str, name: str) -> str:
        """The identity of the shard's column under its new name; often it stays the same."""
        for known, called in self._book.names.items():
            if called.lower() != name.lower() or known == column_id or known in self._had:
                continue
            if are_kin(self._found, column_id, known):
                return known
        there = self._book.find(name)
        if there is not None and self._joins_others(there, name):
            return there
        if not self._policy:
            return column_id
        if there is None and not self._is_copied(column_id) and not self._others_have(column_id):
            return column_id
        born = self._book.give_birth(name)
        self._found.append(Copy(column_id, born))
        return born

    def _joins_others(self, there: str, name: str) -> bool:
        """Whether a renamed column takes identity ``there``, which others have under that name."""
        if there in self._had or origin_part(there) or self.gave_up(there, self._had):
            return False
        if self._policy:
            return True
        after, state = self._change.after, self._state
        assert after is not None
        if state.policies.renames is RenamePolicy.MAP and not is_read_again(
            state.policies.existing_rows, self._change.shard, after
        ):
            return False  # the target at least keeps the values under the former name
        column = after.column(name)
        others = [c.column for c in state.columns if c.id == there] or [
            # Only held shards have it yet.
            schema.columns[schema.ids.index(there)].column
            for schema in state.pool.counts()
            if there in schema.ids
        ]
        return column is not None and any(
            not isinstance(joined_type((other.type, column.type), state.type_rules), str)
            for other in others
        )

    def gave_up(self, column_id: str, has: Iterable[str]) -> bool:
        """Whether a shard with these columns (``has``) renamed one that others still have."""
        return not set(later_names(self._found, column_id)).isdisjoint(has)

    def _is_copied(self, column_id: str) -> bool:
        return any(column_id in (copy.before, copy.after) for copy in self._found)

    def _others_have(self, column_id: str) -> bool:
        others = self._state.without_shard(self._change.shard).pool.counts()
        return any(column_id in schema.ids for schema in others)


class _NameBook:
    """Target names by identity while one change is worked through."""

    def __init__(self, names: dict[str, str], generations: Mapping[str, int]) -> None:
        self.names = names
        self.generations = generations
        self._indexed: dict[str, str] | None = None

    @property
    def _ids(self) -> dict[str, str]:
        """Name in lower case → the first identity with it; made when a name is looked up."""
        if self._indexed is None:
            self._indexed = {}
            for column_id, name in self.names.items():
                self._indexed.setdefault(name.lower(), column_id)
        return self._indexed

    def find(self, name: str) -> str | None:
        """The identity whose target column has that name, without regard to case."""
        return self._ids.get(name.lower())

    def give_birth(self, name: str) -> str:
        folded = name.lower()
        generation = self.generations.get(folded, 0) + 1
        self.generations = {**self.generations, folded: generation}
        column_id = f"{name}#{generation}"
        self.names[column_id] = name
        if self._indexed is not None:
            self._indexed.setdefault(folded, column_id)
        return column_id

    def renamed(self, waiting: Sequence[tuple[str, Lineage]]) -> list[tuple[str, Lineage]]:
        """Rename the target's columns; returns the renames for which the target is not ready.

        A rename can free the name that another one needs.
        """
        left = [each for each in waiting if not self._rename(*each)]
        return left if len(left) == len(waiting) else self.renamed(left)

    def _rename(self, column_id: str, lineage: Lineage) -> bool:
        current, old, new = (
            name.lower() for name in (self.names[column_id], lineage.before, lineage.name)
        )
        if new in (old, current):
            return True
        if current != old or self.find(new) is not None:
            return False
        self.names[column_id] = lineage.name
        self._indexed = None
        return True

    def why_not_renamed(self, column_id: str, lineage: Lineage) -> CodedText:
        """Why the target does not follow a rename that ``renamed`` returned."""
        current, old, new = self.names[column_id], lineage.before, lineage.name
        why = f"since the target has another column {new!r}"
        if current.lower() != old.lower():
            why = "as another shard renamed it"
        return CodedText(
            f"this shard renames {old!r} to {new!r}, the target's column stays {current!r}, {why}",
            "SM-1706",
        )
