"""What came of a change, in one form for all the ways to write it. Pure.

``ADD c INT UNIQUE`` and ``ADD c INT, ADD UNIQUE (c)``, ``RENAME COLUMN a TO b`` and
``CHANGE a b INT``, or an ALTER TABLE and a run of gh-ost, have one effect. It tells what a join
looks at: made-up names, comments, visibility, the order of columns and of actions do not count.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from shardmerge.schemas.ddl.changes import AddCheck, AddForeignKey, AddIndex
from shardmerge.schemas.ddl.describe import column_text, describe
from shardmerge.schemas.model.names import quote_identifier
from shardmerge.schemas.model.shard_columns import Lineage
from shardmerge.schemas.model.tables import Check, ForeignKey, Index, TableSchema

from .column_join import in_target_names
from .joined import ShardSchema
from .key_join import Constraint, PrimaryKey, constraints_of

_CHARSET = "DEFAULT CHARACTER SET"
_DROPPED = "\0"
"""Before the name of a column that a change dropped: no column's name holds this character."""


@dataclass(frozen=True, slots=True)
class ChangeEffect:
    """What a change did to its table.

    Attributes:
        texts: What was done, for people, sorted; never empty.
        present: What is true of every table that made the change.
        absent: What is true of no table that made it.
    """

    texts: tuple[str, ...]
    present: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()

    def is_in(self, schema: ShardSchema) -> bool:
        """Whether a table already is as the change would make it.

        Never for a change that drops a column and adds it again, or swaps two names: what came of
        it does not tell that it was made.
        """
        facts = _facts_of(schema)
        return facts.issuperset(self.present) and facts.isdisjoint(self.absent)


def change_effect(
    before: TableSchema, after: TableSchema, lineage: Iterable[Lineage]
) -> ChangeEffect | None:
    """The effect of a change; None when there is none.

    Args:
        before: The table before it.
        after: The table after it.
        lineage: Of columns of ``after``; one that is not in it is the same by name.
    """
    told = {line.name.lower(): line.before.lower() for line in lineage}
    had = {column.name.lower() for column in before.columns}
    names = {column.name.lower() for column in after.columns}
    kept = {origin: name for name in names if (origin := told.get(name, name)) in had}
    renamed = {origin: name for origin, name in kept.items() if origin != name}
    dropped = had - kept.keys()
    earlier = _facts(before, {name: kept.get(name, _DROPPED + name) for name in had})
    later = _facts(after, {name: name for name in names})
    came = later.keys() - earlier.keys()
    # An index that a dropped column took along went without being told to.
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
    """Sentences that are true of a table → the column that each is about, "" for none.

    Args:
        schema: Of the table.
        names: Column names in lower case → the names that the sentences use.
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
