"""What a target's table needs after the merging, and the statements for it. Pure.

* A column that a shard lacks has a default that no shard gave it: the type's zero value. It can go.
* Origin columns say which shard a row came from. They can go.
* During the merging the target generates no ids, because rows bring theirs. An application that
  relied on AUTO_INCREMENT of its shard now needs it from the target.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from shardmerge.schemas.lattice.joined import ShardSchema
from shardmerge.schemas.model.mysql_text import column_definition, default_value
from shardmerge.schemas.model.names import TargetTable, quote_identifier
from shardmerge.schemas.model.shard_columns import ShardColumn
from shardmerge.schemas.model.tables import Column, DefaultKind, IndexKind, TableSchema
from shardmerge.schemas.model.types import INTEGER_NAMES

from .record import Tidied

DEFAULTS, ORIGIN = "defaults", "origin"
"""What ``--drop`` removes. It stays without the option, because applications may depend on it."""

_OF_SEQUENCE = "_id"
_LONGEST = 64 - len(_OF_SEQUENCE)


@dataclass(frozen=True, slots=True)
class MergedTable:
    """A target's table, and what is known about its columns.

    Attributes:
        table: The target.
        there: The table as its server has it.
        joined: The target's columns with identities.
        shards: The schemas of the live shards.
        origin: Names of the origin columns.
        kind: The target's kind: ``mysql``, ``mariadb`` or ``tidb``.
    """

    table: TargetTable
    there: TableSchema
    joined: Sequence[ShardColumn]
    shards: Sequence[ShardSchema]
    origin: Sequence[str] = ()
    kind: str = "mysql"

    def on_shards(self, name: str) -> list[Column]:
        """A target column's definitions on the shards that have it."""
        ids = {c.id for c in self.joined if c.column.name.lower() == name.lower()}
        return [c.column for shard in self.shards for c in shard.columns if c.id in ids]


@dataclass(frozen=True, slots=True)
class Tidying:
    """How the table is tidied.

    Attributes:
        statements: In the order of execution.
        notes: What is left as it is, as sentences for the operator.
    """

    statements: tuple[Tidied, ...]
    notes: tuple[str, ...]


def id_column(merged: MergedTable) -> Column | None:
    """The column with AUTO_INCREMENT on a shard and not in the target; None without one."""
    for column in merged.there.columns:
        if any(own.auto_increment for own in merged.on_shards(column.name)):
            return None if column.auto_increment else column
    return None


def counted_column(merged: MergedTable) -> Column | None:
    """The column whose next values are needed; None without one, and when it cannot count."""
    column = id_column(merged)
    return None if column is None or _cannot_count(merged, column) else column


def tidying(merged: MergedTable, drop: Sequence[str], largest: int) -> Tidying:
    """The statements that tidy a table, and notes about what stays.

    Args:
        merged: The table.
        drop: ``DEFAULTS``, ``ORIGIN``, both or none.
        largest: The largest value in ``counted_column``; 0 without rows.
    """
    statements: list[Tidied] = []
    notes: list[str] = []
    alter = f"ALTER TABLE {merged.table.sql}"
    defaults = list(_merging_defaults(merged))
    if DEFAULTS in drop:
        for column in defaults:
            assert column.default is not None
            name = quote_identifier(column.name)
            back = f"{alter} ALTER COLUMN {name} SET DEFAULT "
            back += default_value(column.default, column.type)
            statements.append(Tidied(f"{alter} ALTER COLUMN {name} DROP DEFAULT", back))
    elif defaults:
        names = ", ".join(column.name for column in defaults)
        notes.append(
            f"these columns keep a default that no shard gave them: {names}. --drop defaults "
            "removes the default; then an INSERT must give these columns a value"
        )
    if (ids := id_column(merged)) is not None:
        if reason := _cannot_count(merged, ids):
            notes.append(f"{ids.name} gets no AUTO_INCREMENT: {reason}")
        elif merged.kind == "tidb":
            made = "; ".join(sequence_statements(merged.table, ids, largest))
            notes.append(
                f"{ids.name} gets no AUTO_INCREMENT: TiDB cannot add it to a column that exists. "
                f"A sequence can give the next values: {made}. LAST_INSERT_ID() does not tell them"
            )
        else:
            definition = column_definition(ids)
            statements.append(
                Tidied(
                    f"{alter} MODIFY COLUMN {definition} AUTO_INCREMENT,"
                    f" AUTO_INCREMENT = {_next(largest)}",
                    f"{alter} MODIFY COLUMN {definition}",
                )
            )
    origin = [c.name for c in merged.there.columns if c.name in merged.origin]
    if ORIGIN in drop and origin:
        keys = [i for i in merged.there.indexes if i.kind is IndexKind.PRIMARY or i.is_unique]
        in_keys = {name for index in keys for name in index.columns}
        if kept := [name for name in origin if name in in_keys]:
            notes.append(
                f"these origin columns stay, because unique keys need them: {', '.join(kept)}"
            )
        if gone := [name for name in origin if name not in in_keys]:
            dropped = ", ".join(f"DROP COLUMN {quote_identifier(name)}" for name in gone)
            statements.append(Tidied(f"{alter} {dropped}", ""))
    elif origin:
        notes.append(
            f"these origin columns stay: {', '.join(origin)}. --drop origin removes them; then "
            "there is no way back"
        )
    return Tidying(tuple(statements), tuple(notes))


def sequence_statements(table: TargetTable, column: Column, largest: int) -> tuple[str, str]:
    """Statements of TiDB that give a column the next values of a sequence.

    Args:
        table: The target.
        column: Its column.
        largest: The largest value in the column; 0 without rows.
    """
    database = quote_identifier(table.database)
    sequence = f"{database}.{quote_identifier(table.table[:_LONGEST] + _OF_SEQUENCE)}"
    name = quote_identifier(column.name)
    return (
        f"CREATE SEQUENCE {sequence} START WITH {_next(largest)}",
        f"ALTER TABLE {table.sql} ALTER COLUMN {name} SET DEFAULT (NEXTVAL({sequence}))",
    )


def _next(largest: int) -> int:
    return max(largest, 0) + 1


def _merging_defaults(merged: MergedTable) -> Iterator[Column]:
    """The columns whose default no shard has."""
    for column in merged.there.columns:
        own = merged.on_shards(column.name)
        if (
            column.default is not None
            and column.default.kind is not DefaultKind.NULL
            and own
            and all(c.default is None and c.generated is None and not c.nullable for c in own)
        ):
            yield column


def _cannot_count(merged: MergedTable, column: Column) -> str:
    """Why a column cannot have AUTO_INCREMENT; "" when it can."""
    if column.type.name not in INTEGER_NAMES:
        return f"its type in the target is {column.type.name}"
    if column.nullable or column.default is not None:
        return "the target lets rows leave it out"
    leading = {index.columns[0] for index in merged.there.indexes if index.columns}
    if column.name not in leading:
        return "no index of the target begins with it"
    return ""
