"""Foreign keys follow their parent table: its new name, its database, its columns' names. Pure.

Source: MySQL Reference Manual, "RENAME TABLE Statement" (foreign keys that point to the renamed
table are updated); measured on MySQL 5.7, 8.0, 9.7 and MariaDB 10.11.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from shardmerge.schemas.model.frozen import replace
from shardmerge.schemas.model.tables import ForeignKey, TableSchema

Parent = tuple[str, str]
"""A table's database and name."""


def follow_parent(child: TableSchema, database: str, old: Parent, new: Parent) -> TableSchema:
    """The table ``child`` of ``database`` after ``old`` was renamed; ``old`` may be the child."""

    def change(key: ForeignKey) -> ForeignKey:
        if _parent(key, database) != old:
            return key
        return replace(key, parent_database=_written(new[0], database), parent_table=new[1])

    return _changed(child, change)


def follow_columns(
    child: TableSchema, database: str, parent: Parent, renamed: Mapping[str, str]
) -> TableSchema:
    """The table ``child`` of ``database`` after columns of a parent were renamed.

    ``renamed``: old name in lower case → new name.
    """

    def change(key: ForeignKey) -> ForeignKey:
        if _parent(key, database) != parent:
            return key
        names = tuple(renamed.get(name.lower(), name) for name in key.parent_columns)
        return key if names == key.parent_columns else replace(key, parent_columns=names)

    return _changed(child, change)


def move_child(child: TableSchema, old: str, new: str) -> TableSchema:
    """A table after it was moved to another database; its parents stay where they are."""
    if old == new:
        return child

    def change(key: ForeignKey) -> ForeignKey:
        return replace(key, parent_database=_written(key.parent_database or old, new))

    return _changed(child, change)


def _parent(key: ForeignKey, database: str) -> Parent:
    return key.parent_database or database, key.parent_table


def _written(parent_database: str, database: str) -> str:
    """A parent's database as the model writes it: "" means the child's own database."""
    return "" if parent_database == database else parent_database


def _changed(child: TableSchema, change: Callable[[ForeignKey], ForeignKey]) -> TableSchema:
    if not child.foreign_keys:
        return child
    keys = tuple(map(change, child.foreign_keys))
    return child if keys == child.foreign_keys else replace(child, foreign_keys=keys)
