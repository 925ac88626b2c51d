"""The copies that online schema change tools make of a table: whose values their columns hold.

Pure. gh-ost and pt-online-schema-change make an empty copy of a table, alter it, fill it with the
table's rows, and give it the table's name. For the shard that is one change. It can differ from
the same ALTER on the table itself, because the tools copy values by the columns' names:

* Both find renames by looking for CHANGE in the ALTER's text: the new column gets the old one's
  values. Neither knows RENAME COLUMN: the old column's values are lost, the new one has its
  default.
* A column that is dropped and added again is new to gh-ost, which looks for DROP too.
  pt-online-schema-change copies the old one's values, since both tables have a column so named.

With gh-ost's ``--skip-renamed-columns``, which the binlog does not tell, CHANGE copies nothing.

Source: gh-ost, go/sql/parser.go and ``getSharedColumns``; pt-online-schema-change,
``find_renamed_cols`` and ``@common_cols`` (read).
"""

from __future__ import annotations

import re

from shardmerge.schemas.ddl.changes import AlterTable, ChangeColumn, DropColumn
from shardmerge.schemas.model.shard_columns import Lineage
from shardmerge.schemas.model.tables import TableSchema

from .tracked import TableCopy

_COPY = re.compile(r"_.+_(gho|new)")
_GH_OST = re.compile(r"_.+_gho")


def is_copy(table: str) -> bool:
    """Whether a table's name is one that the tools give to their copies."""
    return _COPY.fullmatch(table) is not None


def created(schema: TableSchema) -> TableCopy:
    """A new copy: each column gets the values of the table's column of the same name."""
    return TableCopy(tuple(Lineage(c.name, c.name) for c in schema.columns))


def altered(copy: TableCopy, table: str, alter: AlterTable, after: TableSchema) -> TableCopy:
    """A copy after an ALTER TABLE.

    Args:
        copy: Before it.
        table: The copy's name, which tells the tool.
        alter: The statement.
        after: The copy's schema after it.
    """
    held = {line.name.lower(): line.before for line in copy.columns}
    changes = [a for a in alter.actions if isinstance(a, ChangeColumn)]
    origins = {a.column.name.lower(): a.name.lower() for a in changes}
    others = set(origins.values())  # their values go to the new name in CHANGE
    if _GH_OST.fullmatch(table):
        others.update(a.name.lower() for a in alter.actions if isinstance(a, DropColumn))
    found = []
    for column in after.columns:
        name = column.name.lower()
        origin = origins.get(name, "" if name in others else name)
        found.append(Lineage(column.name, held.get(origin, "")))
    return TableCopy(tuple(found))


def lineage(copy: TableCopy, before: TableSchema, after: TableSchema) -> tuple[Lineage, ...]:
    """The lineage of a shard whose table a copy replaces.

    Args:
        copy: Of the table.
        before: The table's schema: it can have changed since the copy was made.
        after: The copy's.
    """
    held = {line.name.lower(): line.before for line in copy.columns}
    found = []
    for column in after.columns:
        origin = before.column(held.get(column.name.lower(), ""))
        found.append(Lineage(column.name, origin.name if origin else ""))
    return tuple(found)
