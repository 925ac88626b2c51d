"""The effect of a schema change, in one form for all the ways to write the change. Pure.

These pairs have the same effect: ``ADD c INT UNIQUE`` and ``ADD c INT, ADD UNIQUE (c)``;
``RENAME COLUMN a TO b`` and ``CHANGE a b INT``; an ALTER TABLE and a run of gh-ost. The effect
holds what a join looks at: made-up names, comments, visibility and the order of columns and
actions do not count.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from shardmerge.schemas.ddl.changes import AddCheck, AddForeignKey, AddIndex
from shardmerge.schemas.ddl.describe import column_text, describe
from shardmerge.schemas.model.frozen import replace
from shardmerge.schemas.model.names import quote_identifier
from shardmerge.schemas.model.shard_columns import Lineage
from shardmerge.schemas.model.tables import Check, ForeignKey, Index, TableSchema

from .column_join import in_target_names
from .joined import ShardSchema
from .key_join import Constraint, PrimaryKey, constraints_of

_CHARSET = "DEFAULT CHARACTER SET"
_MOST_CHANGES = 256
"""Changes whose effects are remembered: the shards of a target make the same ones."""
_DROPPED = "\0"
"""Prefix for the name of a column that a change dropped. No column's name contains it."""


@dataclass(frozen=True, slots=True)
class ChangeEffect:
    """What a change did to its table.

    Attributes:
        texts: What was done, for people, sorted; never empty.
        present: Facts that the change made true of its table.
        absent: Facts that the change made false of its table.
    """

    texts: tuple[str, ...]
    present: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()

    def is_in(self, schema: ShardSchema) -> bool:
        """Whether a table is already as the change would make it.

        This is always false for a change that drops a column and adds it again, or that swaps two
        names: the schema does not show whether such a change was made.
        """
        facts = _facts_of(schema)
        return facts.issuperset(self.present) and facts.isdisjoint(self.absent)


def change_effect(
    before: TableSchema, after: TableSchema, lineage: Iterable[Lineage]
) -> ChangeEffect | None:
    """The effect of a change; None when there is none.

    Args:
        before: The table before the change.
        after: The table after the change.
        lineage: The lineage of columns of ``after``. A column that is not in it had the same name
            before.
    """
    return _change_effect(before, after, tuple(lineage))


@lru_cache(maxsize=_MOST_CHANGES)
def _change_effect(
    before: TableSchema, after: TableSchema, lineage: tuple[Lineage, ...]
) -> ChangeEffect | None:
    old_names = {line.name.lower(): line.before.lower() for line in lineage}
    had = {column.name.lower() for column in before.columns}
    names = {column.name.lower() for column in after.columns}
    kept = {origin: name for name in names if (origin := old_names.get(name, name)) in had}
    renamed = {origin: name for origin, name in kept.items() if origin != name}
    dropped = had - kept.keys()
    earlier = _facts(before, {name: kept.get(name, _DROPPED + name) for name in had})
    later = _facts(after, {name: name for name in names})
    came = later.keys() - earlier.keys()
    # A fact that names a dropped column is left out: MySQL itself removes such an index with it.
    went = {fact for fact in earlier.keys() - later.keys() if _DROPPED not in fact}

    texts = [f"RENAME {_column(old)} TO {quote_identifier(new)}" for old, new in renamed.items()]
    texts += [f"DROP {_column(name)}" for name in dropped]
    changed = set(kept.values())
    for fact in came:
        name = later[fact]
        if fact.startswith(_CHARSET):
            texts.append(fact)
        elif fact != _column(name):
            texts.append(f"{'MODIFY' if name in changed else 'ADD'} {fact}")
    gone = {fact for fact in went if not earlier[fact]}
    texts += [f"DROP {fact}" for fact in gone if not fact.startswith(_CHARSET)]
    if not texts:
        return None
    present = came | {_column(name) for name in renamed.values()}
    absent = gone | {_column(name) for name in (*dropped, *renamed)}
    return ChangeEffect(tuple(sorted(texts)), tuple(sorted(present)), tuple(sorted(absent)))


@lru_cache(maxsize=1024)
def _facts_of(schema: ShardSchema) -> frozenset[str]:
    return frozenset(_facts(schema.schema, {name: name for name in schema.by_name}))


def _facts(schema: TableSchema, names: Mapping[str, str]) -> dict[str, str]:
    """The facts that are true of a table → the column that each is about, "" for none.

    Args:
        schema: The table's schema.
        names: Column names in lower case → the names that the facts use.
    """
    found: dict[str, str] = {}
    for column in schema.columns:
        name = names[column.name.lower()]
        found[_column(name)] = name
        definition = replace(
            in_target_names(column, names), name=name, auto_increment=False, invisible=False
        )
        found[f"COLUMN {column_text(definition)}"] = name
    shard = ShardSchema(schema, tuple(names[c.name.lower()] for c in schema.columns))
    for constraint in constraints_of(shard, names):
        if text := _constraint(constraint):
            found[text] = ""
    collation = f" COLLATE {schema.collation}" if schema.collation else ""
    found[f"{_CHARSET} {schema.charset}{collation}"] = ""
    return found


def _column(name: str) -> str:
    return f"COLUMN {quote_identifier(name)}"


def _constraint(constraint: Constraint) -> str:
    match constraint:
        case PrimaryKey(()):
            return ""
        case PrimaryKey(parts):
            columns = (quote_identifier(n) + (f"({size})" if size else "") for n, size in parts)
            return f"PRIMARY KEY ({', '.join(columns)})"
        case Index():
            text = describe(AddIndex(constraint), None)
        case Check():
            text = describe(AddCheck(constraint), None)
        case ForeignKey():
            text = describe(AddForeignKey(constraint), None)
    return text.removeprefix("ADD ")
