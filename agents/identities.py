"""Column identities: which target column a shard's column belongs to, whatever its name is.

An identity is ``<name at birth>#<generation>``. A rename keeps it. A column that a shard adds
takes the identity of the target's column of that name if there is one, else a new one: the
next generation of its name, so that a value of a dropped column never comes back under a
re-added name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from shardmerge.schemas.events import Lineage, SchemaChange

from .state import TargetState, TrackedSchema


@dataclass(frozen=True, slots=True)
class Assigned:
    """The result of ``assign``.

    Attributes:
        tracked: The shard's schema after the change, with identities.
        names: Identity → name in the target, of every identity that is known now.
        generations: See ``TargetState``.
        warnings: Renames that the target does not follow, for people.
    """

    tracked: TrackedSchema
    names: Mapping[str, str]
    generations: Mapping[str, int]
    warnings: tuple[str, ...]


def known_names(state: TargetState) -> dict[str, str]:
    """Identity → target name: the target's columns, and those that only shards have.

    Only a shard has the columns of a held change, and generated columns that another shard lacks.
    """
    names: dict[str, str] = {}
    for _, shard in sorted(state.shards.items()):
        for tracked in (shard.effective, shard.final):
            for column in tracked.columns if tracked else ():
                names.setdefault(column.id, column.column.name)
    names.update({c.id: c.column.name for c in state.columns})
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
    before = shard.final if shard else None
    book = _NameBook(known_names(state), dict(state.generations))
    ids: list[str] = []
    warnings: list[str] = []
    for lineage in _lineage(change, before):
        column_id = before.id_of(lineage.before) if before and lineage.before else None
        if column_id is None:
            column_id = book.find(lineage.name)
            if column_id is None or column_id in ids:
                column_id = book.give_birth(lineage.name)
        elif warning := book.rename(column_id, lineage):
            warnings.append(warning)
        ids.append(column_id)
    tracked = TrackedSchema(change.after, tuple(ids))
    return Assigned(tracked, book.names, book.generations, tuple(warnings))


def prune(names: Mapping[str, str], state: TargetState) -> dict[str, str]:
    """``names`` without the identities that no shard has any more."""
    used = {
        column_id
        for shard in state.shards.values()
        for tracked in (shard.effective, shard.final)
        if tracked
        for column_id in tracked.ids
    }
    return {column_id: name for column_id, name in names.items() if column_id in used}


def _lineage(change: SchemaChange, before: TrackedSchema | None) -> tuple[Lineage, ...]:
    """The change's lineage; by name when the change only describes a known shard anew."""
    assert change.after is not None
    if change.lineage:
        return change.lineage
    return tuple(
        Lineage(c.name, c.name if before and before.id_of(c.name) else "")
        for c in change.after.columns
    )


class _NameBook:
    """Target names by identity while one change is worked through."""

    def __init__(self, names: dict[str, str], generations: dict[str, int]) -> None:
        self.names = names
        self.generations = generations

    def find(self, name: str) -> str | None:
        """The identity whose target column has that name, without regard to case."""
        folded = name.lower()
        return next((i for i, known in self.names.items() if known.lower() == folded), None)

    def give_birth(self, name: str) -> str:
        folded = name.lower()
        self.generations[folded] = self.generations.get(folded, 0) + 1
        column_id = f"{name}#{self.generations[folded]}"
        self.names[column_id] = name
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
        return ""
