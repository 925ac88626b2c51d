"""Equal schemas, and equal parts of different schemas, are one object.

A hundred thousand shards share few schemas, and schemas that differ share most of their columns.
The pool counts the uses of each object and drops an object without uses.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from typing import Any

from immutables import Map

from shardmerge.schemas.model.tables import TableSchema

from .joined import ShardSchema, name_at_birth

_REST = tuple(f.name for f in fields(TableSchema) if f.name != "columns")


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
        schemas, parts = self._schemas.mutate(), self._parts.mutate()
        renamed = self.renamed
        for schema in plus:
            known = schemas.get(schema)
            if known is not None:
                schemas[known[0]] = (known[0], known[1] + 1)
                continue
            shared = _schema_of_parts(
                schema, [_pooled_part(parts, part) for part in _parts_of(schema)]
            )
            schemas[shared] = (shared, 1)
            renamed += _is_renamed(shared)
        for schema in minus:
            one, uses = schemas[schema]
            if uses > 1:
                schemas[one] = (one, uses - 1)
                continue
            del schemas[schema]
            renamed -= _is_renamed(one)
            for part in _parts_of(one):
                kept, count = parts[part]
                if count > 1:
                    parts[kept] = (kept, count - 1)
                else:
                    del parts[part]
        return SchemaPool(renamed, schemas.finish(), parts.finish())


def _is_renamed(schema: ShardSchema) -> bool:
    pairs = zip(schema.ids, schema.schema.columns, strict=True)
    return any(name_at_birth(i) not in ("", column.name) for i, column in pairs)


def _pooled_part(parts: Any, part: Any) -> Any:
    """The pool's object that is equal to this part, with one more use counted in ``parts``."""
    known, count = parts.get(part, (part, 0))
    parts[known] = (known, count + 1)
    return known


def _parts_of(schema: ShardSchema) -> list[Any]:
    """The parts that schemas share: the columns, the identities, then the other table fields."""
    table = schema.schema
    return [*table.columns, schema.ids, *(getattr(table, name) for name in _REST)]


def _schema_of_parts(schema: ShardSchema, parts: list[Any]) -> ShardSchema:
    columns, (ids, *rest) = tuple(parts[: len(schema.ids)]), parts[len(schema.ids) :]
    return ShardSchema(TableSchema(columns, **dict(zip(_REST, rest, strict=True))), ids)
