"""Equal schemas, and equal parts of different schemas, are one object.

A hundred thousand shards share few schemas, and schemas that differ share most of their columns.
The pool counts the uses of each object and drops an object without uses.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from operator import attrgetter
from typing import Any

from immutables import Map

from shardmerge.schemas.model.tables import TableSchema

from .joined import ShardSchema, name_at_birth

_REST = tuple(f.name for f in fields(TableSchema) if f.name != "columns")
_fields = attrgetter(*_REST)


@dataclass(frozen=True, slots=True)
class SchemaPool:
    """Schemas, and the number of uses of each. The pool is immutable: a change gives a new pool.

    Attributes:
        renamed: How many of the schemas have a column whose name differs from the name that it had
            when it was added.
    """

    renamed: int = 0
    _schemas: Map[ShardSchema, tuple[ShardSchema, int]] = field(default_factory=Map)
    _parts: Map[Any, tuple[Any, int]] = field(default_factory=Map)

    def __contains__(self, schema: object) -> bool:
        return schema in self._schemas

    def __len__(self) -> int:
        return len(self._schemas)

    def one(self, schema: ShardSchema) -> ShardSchema:
        """The pool's object that is equal to this schema, which must be in the pool."""
        return self._schemas[schema][0]

    def counts(self) -> dict[ShardSchema, int]:
        """How many uses each schema has."""
        return dict(self._schemas.values())

    def exchanged(self, minus: Iterable[ShardSchema], plus: Iterable[ShardSchema]) -> SchemaPool:
        """The pool after some uses ended and others began.

        Args:
            minus: Schemas, one entry per use that ends. Each use is one of the pool's, or one of
                ``plus``.
            plus: Schemas, one entry per use that begins; a schema may be in both.
        """
        if minus == plus:
            return self
        schemas, renamed = self._schemas.mutate(), self.renamed
        came: list[ShardSchema] = []
        for schema in plus:
            known, uses = schemas.get(schema, (schema, 0))
            schemas[known] = (known, uses + 1)
            if not uses:
                came.append(known)
                renamed += _is_renamed(known)
        went: list[ShardSchema] = []
        for schema in minus:
            known, uses = schemas[schema]
            if uses > 1:
                schemas[known] = (known, uses - 1)
            else:
                del schemas[known]
                went.append(known)
                renamed -= _is_renamed(known)
        if not (came or went):
            return SchemaPool(renamed, schemas.finish(), self._parts)
        parts = self._parts.mutate()
        new, gone = _changed_parts(came, went)
        for schema, own in zip(came, new, strict=True):
            shared = _of_pooled_parts(parts, schema, own)
            if shared is not schema and schema in schemas:
                _, uses = schemas.pop(schema)
                schemas[shared] = (shared, uses)
        for part in (part for own in gone for part in own):
            kept, count = parts[part]
            if count > 1:
                parts[kept] = (kept, count - 1)
            else:
                del parts[part]
        return SchemaPool(renamed, schemas.finish(), parts.finish())


def _is_renamed(schema: ShardSchema) -> bool:
    pairs = zip(schema.ids, schema.schema.columns, strict=True)
    return any(name_at_birth(i) not in ("", column.name) for i, column in pairs)


def _changed_parts(
    came: list[ShardSchema], went: list[ShardSchema]
) -> tuple[list[list[Any]], list[list[Any]]]:
    """The parts of schemas that come to the pool and of those that go, without what stays.

    A shard that changes its schema keeps most parts of it: their numbers of uses stay.
    """
    new = [[*schema.schema.columns, *_rest(schema)] for schema in came]
    gone = [[*schema.schema.columns, *_rest(schema)] for schema in went]
    if len(came) != 1 or len(went) != 1:
        return new, gone
    here, there = came[0].schema.columns, went[0].schema.columns
    both = {*map(id, here)}.intersection(map(id, there))
    rest = zip(_rest(came[0]), _rest(went[0]), strict=True)
    pairs = [(now, was) for now, was in rest if now is not was]
    new = [[*(c for c in here if id(c) not in both), *(now for now, _ in pairs)]]
    gone = [[*(c for c in there if id(c) not in both), *(was for _, was in pairs)]]
    return new, gone


def _rest(schema: ShardSchema) -> tuple[Any, ...]:
    """The parts that schemas share besides the columns: the identities, the other table fields."""
    return (schema.ids, *_fields(schema.schema))


def _of_pooled_parts(parts: Any, schema: ShardSchema, own: list[Any]) -> ShardSchema:
    """The schema with the pool's objects for its parts.

    Args:
        parts: The pool's; one more use of each part in ``own`` is counted.
        schema: A schema that comes to the pool.
        own: Its parts that may not be the pool's objects.
    """
    pooled: dict[int, Any] = {}
    for part in own:
        known, count = parts.get(part, (part, 0))
        parts[known] = (known, count + 1)
        if known is not part:
            pooled[id(part)] = known
    if not pooled:
        return schema
    columns, (ids, *rest) = schema.schema.columns, _rest(schema)
    table = TableSchema(
        tuple(pooled.get(id(column), column) for column in columns),
        **{n: pooled.get(id(part), part) for n, part in zip(_REST, rest, strict=True)},
    )
    return ShardSchema(table, pooled.get(id(ids), ids))
