"""Iceberg tables in Spark SQL as targets.

Iceberg changes a schema only in its metadata, so a column can only be widened: int to bigint, float
to double, more digits of a decimal, NOT NULL to NULL. A change back is not made: the target then
accepts more than the join, so no row is refused. Spark 4.1 has no defaults for added columns, so a
column that rows may leave out is nullable.

Source: Iceberg documentation, "Spark DDL" and "Schema Evolution"; measured (ADD, DROP, RENAME
COLUMN, int to bigint, precision of decimals work; narrowing, SET NOT NULL, DEFAULT do not).
"""

from __future__ import annotations

from dataclasses import dataclass

from shardmerge.schemas.model.actions import (
    Action,
    ColumnAddition,
    ColumnRemoval,
    ColumnRename,
    CommentChange,
    NullPermission,
    TableCreation,
    TypeChange,
)
from shardmerge.schemas.model.frozen import replace
from shardmerge.schemas.model.mysql_facts import NULL_DEFAULT
from shardmerge.schemas.model.names import TargetTable, quote_identifier
from shardmerge.schemas.model.tables import Check, Column, Default, Index, TableSchema
from shardmerge.schemas.model.types import ColumnType

from .dialect import CannotRender, Dialect, FittedColumn, LeftOut, Place, Rendered, Rendering
from .spark_rows import has_value, row_value, string_literal
from .spark_types import can_widen, has_zero_dates, kept_type, spark_type, stored_type, type_notes
from .sql_translation import to_spark


@dataclass(frozen=True, slots=True)
class SparkDialect(Dialect):
    """Iceberg tables, version 2 of the format, through Spark SQL."""

    @property
    def name(self) -> str:
        """Kind, as people write it."""
        return "Iceberg in Spark SQL"

    @property
    def computes(self) -> bool:
        """False: the rows bring the values."""
        return False

    def zero_value(self, kind: ColumnType) -> Default | None:
        """None: Iceberg tables have no defaults here."""
        return None

    def fit_column(self, column: Column, place: Place) -> FittedColumn | CannotRender:
        """The column as an Iceberg table can have it: ordinary, without a default."""
        notes = list(type_notes(column.type))
        if column.generated is not None:
            notes.append(_computed(column.generated.expression))
            column = replace(column, generated=None, nullable=True)
        kind, previous = column.type, place.previous
        if previous is not None and (kept := kept_type(previous.type, kind)):
            stays = "stays" if kept is previous.type else "becomes"
            notes.append(f"it {stays} {spark_type(kept)}, Iceberg narrows no type")
            kind = kept
        nullable = column.nullable
        if not nullable and place.optional:
            notes.append("rows without it get NULL, Iceberg takes no default in Spark")
            nullable = True
        elif not nullable and has_zero_dates(kind) and place.key != "primary":
            nullable = True
        elif not nullable and not place.is_new_table and (previous is None or previous.nullable):
            notes.append("it stays nullable, Iceberg adds no NOT NULL to a table that is there")
            nullable = True
        return FittedColumn(
            Column(
                column.name,
                kind,
                nullable,
                NULL_DEFAULT if nullable else None,
                comment=column.comment,
            ),
            tuple(notes),
        )

    def fit_index(self, index: Index, schema: TableSchema) -> LeftOut:
        """No index: the sink knows the key of rows from the decision."""
        return LeftOut("an Iceberg table has neither keys nor indexes")

    def fit_check(self, check: Check) -> LeftOut:
        """No checks."""
        return LeftOut("an Iceberg table has no checks, the shards have checked the rows")

    def refusal(self, schema: TableSchema, *, has_key: bool) -> CannotRender | None:
        """Why the target cannot have a table without a key: MERGE finds a row by its key."""
        if has_key:
            return None
        return CannotRender(
            "the shards have no primary key in common, and an Iceberg target finds a row by it",
            "give every shard the same primary key, or leave the table out of the routes",
            code="SM-1224",
        )

    def row_value(self, fill: str, column: Column) -> str | None:
        """The literal of a fill."""
        return row_value(fill, column)

    def has_value(self, column: Column, literal: str) -> str:
        """The condition that a row already has the literal."""
        return has_value(column, literal)

    def create_table(self, table: TargetTable, schema: TableSchema) -> Rendering:
        """CREATE TABLE … USING iceberg."""
        stored = TableSchema(tuple(map(_stored, schema.columns)), comment=schema.comment)
        columns = ", ".join(map(_definition, stored.columns))
        comment = f" COMMENT {string_literal(stored.comment)}" if stored.comment else ""
        sql = f"CREATE TABLE {table.sql} ({columns}) USING iceberg{comment}"
        return (Rendered(sql, (TableCreation(stored),)),)

    def set_default_charset(
        self, table: TargetTable, charset: str, collation: str, *, before: str = ""
    ) -> Rendering:
        """Nothing: text is UTF-8."""
        return ()

    def add_column(self, table: TargetTable, column: Column) -> Rendering:
        """ADD COLUMN."""
        if not column.nullable:
            return CannotRender(
                f"Iceberg adds no NOT NULL column {column.name} to a table that is there",
                f"make {column.name} nullable on one shard",
                code="SM-1225",
            )
        return (_altered(table, ColumnAddition(_stored(column))),)

    def drop_column(self, table: TargetTable, column: Column) -> Rendering:
        """DROP COLUMN."""
        return (_altered(table, ColumnRemoval(column.name)),)

    def rename_column(self, table: TargetTable, column: Column, to: str) -> Rendering:
        """RENAME COLUMN."""
        return (_altered(table, ColumnRename(column.name, to)),)

    def change_column(
        self, table: TargetTable, before: Column, after: Column, *, in_key: bool
    ) -> Rendering:
        """ALTER COLUMN, one statement per property; none when Spark sees no difference."""
        actions: list[Action] = []
        old, new = spark_type(before.type), spark_type(after.type)
        if old != new:
            if not can_widen(old, new):
                return CannotRender(
                    f"Iceberg does not change {after.name} from {old} to {new}: it only widens "
                    "int to bigint, float to double, and the digits of a decimal",
                    f"add a new column of the new type on every shard, and drop {after.name}",
                    code="SM-1225",
                )
            actions.append(TypeChange(after.name, stored_type(after.type)))
        if before.nullable and not after.nullable:
            return CannotRender(
                f"Iceberg does not make the nullable column {after.name} NOT NULL",
                f"make {after.name} nullable on one shard",
                code="SM-1225",
            )
        if after.nullable and not before.nullable:
            actions.append(NullPermission(after.name))
        if after.comment != before.comment:
            actions.append(CommentChange(after.name, after.comment))
        return tuple(_altered(table, action) for action in actions)

    def add_index(self, table: TargetTable, index: Index) -> Rendering:
        """Nothing: ``fit_index`` leaves all of them out."""
        return ()

    def drop_index(self, table: TargetTable, index: Index) -> Rendering:
        """Nothing, see ``add_index``."""
        return ()

    def add_check(self, table: TargetTable, check: Check) -> Rendering:
        """Nothing: ``fit_check`` leaves all of them out."""
        return ()

    def drop_check(self, table: TargetTable, check: Check) -> Rendering:
        """Nothing, see ``add_check``."""
        return ()

    def change_primary_key(
        self, table: TargetTable, before: Index | None, after: Index | None
    ) -> Rendering:
        """Nothing, see ``add_index``."""
        return ()


def _stored(column: Column) -> Column:
    """A column as an Iceberg table stores it: only the properties that the DDL text contains."""
    default = NULL_DEFAULT if column.nullable else None
    kind = stored_type(column.type)
    return Column(column.name, kind, column.nullable, default, comment=column.comment)


def _altered(table: TargetTable, action: Action) -> Rendered:
    return Rendered(f"ALTER TABLE {table.sql} {_clause(action)}", (action,))


def _clause(action: Action) -> str:
    match action:
        case ColumnAddition():
            return f"ADD COLUMN {_definition(action.column)}"
        case ColumnRemoval():
            return f"DROP COLUMN {quote_identifier(action.name)}"
        case ColumnRename():
            names = f"{quote_identifier(action.name)} TO {quote_identifier(action.to)}"
            return f"RENAME COLUMN {names}"
        case TypeChange():
            head = f"ALTER COLUMN {quote_identifier(action.name)}"
            return f"{head} TYPE {spark_type(action.type)}"
        case NullPermission():
            return f"ALTER COLUMN {quote_identifier(action.name)} DROP NOT NULL"
        case CommentChange():
            head = f"ALTER COLUMN {quote_identifier(action.name)}"
            return f"{head} COMMENT {string_literal(action.comment)}"
        case _:
            raise TypeError(f"an Iceberg target gets no {type(action).__name__}")


def _definition(column: Column) -> str:
    text = f"{quote_identifier(column.name)} {spark_type(column.type)}"
    if not column.nullable:
        text += " NOT NULL"
    return text + (f" COMMENT {string_literal(column.comment)}" if column.comment else "")


def column_text(column: Column) -> str:
    """A column as an Iceberg table shows it, without its comment."""
    return _definition(replace(column, comment=""))


def _computed(expression: str) -> str:
    found = to_spark(expression, as_value=True)
    how = f", as {found} in Spark" if isinstance(found, str) else ""
    return f"the shards compute it ({expression}){how}; the target keeps their values"
