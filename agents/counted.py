"""A shard's schema with changes left out that an operator said do not count. Pure.

A shard has one schema, and counts with another one in the join. What differs between the two is
what was skipped: columns by identity, indexes and checks by name. It stays skipped as long as the
shard's definition stays the one that was skipped; the first change of it counts again.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from typing import TypeAlias

from shardmerge.schemas.joined import ShardSchema
from shardmerge.schemas.left_out_columns import columns_named
from shardmerge.schemas.model import Check, Column, ForeignKey, Index, TableSchema

Part: TypeAlias = Column | Index | Check | ForeignKey
_KEY = ("index", "primary")


def counted(schema: ShardSchema, actual: ShardSchema, counts: ShardSchema) -> ShardSchema:
    """With which schema a shard counts after a change.

    Args:
        schema: The shard's schema after the change.
        actual: Its schema before.
        counts: With which one it counted before.
    """
    before, instead, found = _parts(actual), _parts(counts), _parts(schema)
    for key in before.keys() | instead.keys():
        skipped, kept = before.get(key), instead.get(key)
        if skipped == kept or found.get(key) != skipped:
            continue
        if kept is None:
            found.pop(key, None)
        else:
            found[key] = kept
    possible, own = _possible(found), _parts(schema).get(_KEY)
    if own is not None and _KEY not in possible:
        # The key that it counted with named a column that is gone. Without any its rows would be
        # told apart otherwise.
        possible = _possible({**found, _KEY: own})
    return _schema(schema.schema, possible)


def _possible(parts: dict[Hashable, Part]) -> dict[Hashable, Part]:
    """Without what names a column that does not count: an index that was added over it, say."""
    while True:
        names = {part.name.lower() for part in parts.values() if isinstance(part, Column)}
        kept = {key: part for key, part in parts.items() if columns_named(part) <= names}
        if len(kept) == len(parts):
            return parts
        parts = kept


def _parts(shard: ShardSchema) -> dict[Hashable, Part]:
    """Everything of a table that has a name, by kind and name; columns by identity."""
    table = shard.schema
    found: dict[Hashable, Part] = {("column", c.id): c.column for c in shard.columns}
    found |= {("index", index.name.lower()): index for index in table.indexes}
    found |= {("check", c.name.lower() or c.expression): c for c in table.checks}
    found |= {("foreign key", key.name.lower() or key): key for key in table.foreign_keys}
    return found


def _schema(table: TableSchema, parts: dict[Hashable, Part]) -> ShardSchema:
    """The table with these parts: those that it has in its order, the others behind them."""
    ids = [key[1] for key in parts if isinstance(key, tuple) and key[0] == "column"]
    return ShardSchema(
        replace(
            table,
            columns=tuple(part for part in parts.values() if isinstance(part, Column)),
            indexes=tuple(part for part in parts.values() if isinstance(part, Index)),
            checks=tuple(part for part in parts.values() if isinstance(part, Check)),
            foreign_keys=tuple(part for part in parts.values() if isinstance(part, ForeignKey)),
        ),
        tuple(str(i) for i in ids),
    )
