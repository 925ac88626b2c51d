"""Column identities: which target column a shard's column belongs to, whatever its name is.

An identity is ``<name at birth>#<generation>``. A rename keeps it. A column that a shard adds
takes the identity of the target's column of that name if there is one, else a new one: the
next generation of its name, so that a value of a dropped column never comes back under a
re-added name. Origin columns, which no shard has, have identities of their own (``origin``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from shardmerge.schemas.events import Lineage, SchemaChange
from shardmerge.schemas.joined import ShardSchema
from shardmerge.schemas.origin import origin_part
from shardmerge.schemas.origin_columns import with_origin

from .state import TargetState


@dataclass(frozen=True, slots=True)
class Assigned:
    """The result of ``assign``.

    Attributes:
        tracked: The shard's schema after the change, with identities.
        names: Identity → name in the target, of every identity that is known now.
        generations: See ``TargetState``.
        warnings: Renames that the target does not follow, for people.
    """

    tracked: ShardSchema
    names: Mapping[str, str]
    generations: Mapping[str, int]
    warnings: tuple[str, ...]


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
    contradicts another shard's is not followed, which loses nothing, and is warned of.

    Two identities with one target name are possible here; such schemas have no join.
    """
    assert change.after is not None
    shard = state.shards.get(change.shard)
    before = shard.real.by_name if shard and shard.real else {}
    book = _NameBook(known_names(state), state.generations)
    lineages = _lineage(change, before)
    kept = [before.get(x.before.lower()) if x.before else None for x in lineages]
    taken = {column_id for column_id in kept if column_id is not None}
    ids: list[str] = []
    warnings: list[str] = []
    for lineage, column_id in zip(lineages, kept, strict=True):
        if column_id is not None:
            ids.append(column_id)
            if lineage.before != lineage.name and (warning := book.rename(column_id, lineage)):
                warnings.append(warning)
            continue
        found = book.find(lineage.name)
        if found is None or found in taken or origin_part(found):
            found = book.give_birth(lineage.name)
        taken.add(found)
        ids.append(found)
    for column in state.origin.columns:
        book.names.setdefault(column.part.column_id, column.name)
    tracked = with_origin(ShardSchema(change.after, tuple(ids)), state.origin)
    return Assigned(tracked, book.names, book.generations, tuple(warnings))


def _lineage(change: SchemaChange, before: Mapping[str, str]) -> tuple[Lineage, ...]:
    """The change's lineage; by name when the change only describes a known shard anew."""
    assert change.after is not None
    if change.lineage:
        return change.lineage
    return tuple(
        Lineage(c.name, c.name if c.name.lower() in before else "") for c in change.after.columns
    )


class _NameBook:
    """Target names by identity while one change is worked through."""

    def __init__(self, names: dict[str, str], generations: Mapping[str, int]) -> None:
        self.names = names
        self.generations = generations
        self._index()

    def _index(self) -> None:
        self._ids: dict[str, str] = {}
        for column_id, name in self.names.items():
            self._ids.setdefault(name.lower(), column_id)

    def find(self, name: str) -> str | None:
        """The identity whose target column has that name, without regard to case."""
        return self._ids.get(name.lower())

    def give_birth(self, name: str) -> str:
        folded = name.lower()
        generation = self.generations.get(folded, 0) + 1
        self.generations = {**self.generations, folded: generation}
        column_id = f"{name}#{generation}"
        self.names[column_id] = name
        self._ids.setdefault(folded, column_id)
        return column_id

    def rename(self, column_id: str, lineage: Lineage) -> str:
        """Follow a rename in the target; a text why not, or "" when nothing contradicts."""
        current, old, new = self.names[column_id], lineage.before, lineage.name
        if old.lower() == new.lower() or current.lower() == new.lower():
            return ""
        if current.lower() != old.lower():
            return (
                f"this shard renames {old!r} to {new!r}, the target's column stays "
                f"{current!r}, as another shard renamed it"
            )
        if self.find(new) is not None:
            return (
                f"this shard renames {old!r} to {new!r}, the target's column stays {old!r}, "
                f"since the target has another column {new!r}"
            )
        self.names[column_id] = new
        self._index()
        return ""
