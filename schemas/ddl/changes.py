"""Parsed DDL: statements, and the actions of an ALTER TABLE.

The grammar makes these from text; ``apply`` turns them into schemas. They hold what was written,
not what it means on a server. ``apply``, which knows the table, fills in an inherited charset, a
generated index name or an implicit NOT NULL.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from shardmerge.schemas.model.tables import Check, Column, Default, ForeignKey, Index, TableSchema


@dataclass(frozen=True, slots=True)
class TableName:
    """A table as a statement names it; ``database`` is "" when the statement gives none."""

    database: str
    table: str


@dataclass(frozen=True, slots=True)
class WrittenLiteral(Default):
    """A literal DEFAULT as it was written, before ``normalize`` gives it the column's form.

    Attributes:
        form: ``string``, ``number``, ``hex``, ``bit``, ``boolean`` or ``temporal``; ``text``
            holds the value without quotes (hex digits, bits).
        charset: The introducer's character set; "" without an introducer.
    """

    form: str = "string"
    charset: str = ""


@dataclass(frozen=True, slots=True)
class WrittenForeignKey(ForeignKey):
    """A foreign key as it was written, before it gets a name.

    Attributes:
        index_name: The name in the definition for its implicit index.
        taken: Highest number of a generated name in the table before the statement. Foreign keys
            that the statement drops count too.
    """

    index_name: str = ""
    taken: int = 0


@dataclass(frozen=True, slots=True)
class Place:
    """Where an added or modified column goes: FIRST (``after == ""``) or AFTER a column."""

    after: str = ""


@dataclass(frozen=True, slots=True)
class AddColumn:
    """ADD COLUMN. ``indexes`` and ``checks`` are those inside the definition."""

    column: Column
    place: Place | None = None
    if_not_exists: bool = False
    indexes: tuple[Index, ...] = ()
    checks: tuple[Check, ...] = ()


@dataclass(frozen=True, slots=True)
class DropColumn:
    """DROP COLUMN."""

    name: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class ChangeColumn:
    """CHANGE, or MODIFY if ``name`` equals ``column.name``: a whole new definition."""

    name: str
    column: Column
    place: Place | None = None
    if_exists: bool = False
    indexes: tuple[Index, ...] = ()
    checks: tuple[Check, ...] = ()


@dataclass(frozen=True, slots=True)
class RenameColumn:
    """RENAME COLUMN … TO."""

    name: str
    to: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class AlterDefault:
    """ALTER COLUMN … SET DEFAULT, or DROP DEFAULT when ``default`` is None."""

    name: str
    default: Default | None
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class AlterColumnVisibility:
    """ALTER COLUMN … SET VISIBLE or INVISIBLE."""

    name: str
    invisible: bool


@dataclass(frozen=True, slots=True)
class AddIndex:
    """ADD INDEX, KEY, UNIQUE, FULLTEXT, SPATIAL, PRIMARY KEY; ``index.name`` may be ""."""

    index: Index
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class DropIndex:
    """DROP INDEX, KEY or PRIMARY KEY (name ``PRIMARY``)."""

    name: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class RenameIndex:
    """RENAME INDEX … TO."""

    name: str
    to: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class AlterIndexVisibility:
    """ALTER INDEX … VISIBLE or INVISIBLE; MariaDB's NOT IGNORED or IGNORED."""

    name: str
    invisible: bool
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class AddCheck:
    """ADD CHECK. With an empty expression, ALTER CHECK, which only sets ``enforced``."""

    check: Check
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class AddForeignKey:
    """ADD FOREIGN KEY."""

    foreign_key: ForeignKey
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class DropConstraint:
    """DROP CHECK, DROP FOREIGN KEY or DROP CONSTRAINT.

    Attributes:
        kind: ``check``, ``foreign key`` or ``any`` (DROP CONSTRAINT finds any kind by its name).
    """

    name: str
    kind: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class SetTableOption:
    """A table option that joins ignore (ENGINE, COMMENT, …); its name is in upper case."""

    name: str
    value: str


@dataclass(frozen=True, slots=True)
class SetDefaultCharset:
    """[DEFAULT] CHARACTER SET / COLLATE of the table: columns added later inherit it."""

    charset: str
    collation: str = ""


@dataclass(frozen=True, slots=True)
class ConvertCharset:
    """CONVERT TO CHARACTER SET: the table's default and every string column."""

    charset: str
    collation: str = ""


@dataclass(frozen=True, slots=True)
class RenameTableTo:
    """ALTER TABLE … RENAME TO."""

    to: TableName


@dataclass(frozen=True, slots=True)
class NoEffect:
    """An action that changes nothing that joins look at (ORDER BY, FORCE, partitioning, …)."""

    text: str


class TableMove(StrEnum):
    """What happens to the table that an action on a partition names."""

    EXCHANGED = "exchanged"
    MADE = "made"
    GONE = "gone"


@dataclass(frozen=True, slots=True)
class MovePartition:
    """EXCHANGE PARTITION WITH TABLE, and MariaDB's CONVERT PARTITION and CONVERT TABLE.

    It changes no property of the altered table, but moves rows from or to ``table``.
    """

    text: str
    table: TableName
    move: TableMove


Action: TypeAlias = (
    AddColumn
    | DropColumn
    | ChangeColumn
    | RenameColumn
    | AlterDefault
    | AlterColumnVisibility
    | AddIndex
    | DropIndex
    | RenameIndex
    | AlterIndexVisibility
    | AddCheck
    | AddForeignKey
    | DropConstraint
    | SetTableOption
    | SetDefaultCharset
    | ConvertCharset
    | RenameTableTo
    | NoEffect
    | MovePartition
)


@dataclass(frozen=True, slots=True)
class CreateTable:
    """CREATE TABLE with definitions or a query.

    Attributes:
        schema: The schema as written, not normalised: unnamed indexes and checks have the name "",
            inherited charsets are "".
        from_query: Whether a query gives it columns that the statement does not define.
    """

    name: TableName
    schema: TableSchema
    if_not_exists: bool = False
    temporary: bool = False
    from_query: bool = False


@dataclass(frozen=True, slots=True)
class CreateTableLike:
    """CREATE TABLE … LIKE: the other table's definition."""

    name: TableName
    like: TableName
    if_not_exists: bool = False
    temporary: bool = False


@dataclass(frozen=True, slots=True)
class AlterTable:
    """ALTER TABLE; also CREATE INDEX and DROP INDEX. Actions stand as written.

    ``ignores``: ALTER IGNORE, which deletes rows that do not fit, without row events.
    """

    name: TableName
    actions: tuple[Action, ...]
    if_exists: bool = False
    ignores: bool = False


@dataclass(frozen=True, slots=True)
class DropTable:
    """DROP TABLE."""

    names: tuple[TableName, ...]
    if_exists: bool = False
    temporary: bool = False


@dataclass(frozen=True, slots=True)
class RenameTable:
    """RENAME TABLE, applied pair by pair from left to right."""

    pairs: tuple[tuple[TableName, TableName], ...]


@dataclass(frozen=True, slots=True)
class TruncateTable:
    """TRUNCATE TABLE."""

    name: TableName


@dataclass(frozen=True, slots=True)
class CreateDatabase:
    """CREATE DATABASE. ``replaces``: every table of an existing database of the name is dropped."""

    name: str
    charset: str = ""
    collation: str = ""
    if_not_exists: bool = False
    replaces: bool = False


@dataclass(frozen=True, slots=True)
class AlterDatabase:
    """ALTER DATABASE."""

    name: str
    charset: str = ""
    collation: str = ""


@dataclass(frozen=True, slots=True)
class DropDatabase:
    """DROP DATABASE: the database and every table in it."""

    name: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class Irrelevant:
    """A known statement that changes no table's schema. ``what``: its leading words."""

    what: str


Statement: TypeAlias = (
    CreateTable
    | CreateTableLike
    | AlterTable
    | DropTable
    | RenameTable
    | TruncateTable
    | CreateDatabase
    | AlterDatabase
    | DropDatabase
    | Irrelevant
)
