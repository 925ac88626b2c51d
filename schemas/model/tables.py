"""Table schemas as frozen values.

The grammar and ``apply`` build ``Column``, ``Index`` and ``TableSchema`` in the form that
``normalize`` returns, so that ``==`` means "the same to MySQL".
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from .frozen import Hashed, hashed_once, made_at_once
from .types import ColumnType


class DefaultKind(StrEnum):
    """What kind of value a DEFAULT clause gives."""

    NULL = "null"
    LITERAL = "literal"
    EXPRESSION = "expression"


@dataclass(frozen=True, slots=True)
class Default:
    """The value of a DEFAULT clause. A column without one has ``default=None``.

    Attributes:
        kind: NULL, a literal or an expression.
        text: For a literal the value as MySQL would store it in ``information_schema`` (no
            quotes: ``5``, ``abc``, ``2020-01-01``; bit values ``b'101'``; binary as ``0x…``);
            for an expression its SQL (``CURRENT_TIMESTAMP(3)``, ``uuid()``); "" for NULL.
    """

    kind: DefaultKind
    text: str = ""


@dataclass(frozen=True, slots=True)
class Generated:
    """A generated column's expression (source text, canonical spacing) and storage."""

    expression: str
    stored: bool


@made_at_once
@hashed_once
@dataclass(frozen=True, slots=True)
class Column(Hashed):
    """One column.

    Attributes:
        name: As written; MySQL compares column names without regard to case.
        default: None is "no default". A nullable column without DEFAULT has
            ``Default(NULL)`` after normalisation, as MySQL does.
        on_update: Expression of ON UPDATE, canonical (``CURRENT_TIMESTAMP(3)``); "" when none.
        comment, invisible: Not part of the lattice value.
    """

    name: str
    type: ColumnType
    nullable: bool = True
    default: Default | None = None
    on_update: str = ""
    auto_increment: bool = False
    generated: Generated | None = None
    comment: str = ""
    invisible: bool = False

    @property
    def is_required(self) -> bool:
        """Whether an INSERT that leaves the column out is refused in strict mode."""
        return (
            not self.nullable
            and self.default is None
            and self.generated is None
            and not self.auto_increment
        )


class IndexKind(StrEnum):
    """What an index does."""

    PRIMARY = "primary"
    UNIQUE = "unique"
    PLAIN = "plain"
    FULLTEXT = "fulltext"
    SPATIAL = "spatial"
    VECTOR = "vector"


@dataclass(frozen=True, slots=True)
class IndexPart:
    """A key part: exactly one of ``column`` and ``expression`` is not empty.

    Attributes:
        length: Prefix length in characters (bytes for binary types); None for the whole column.
    """

    column: str = ""
    expression: str = ""
    length: int | None = None
    descending: bool = False


@made_at_once
@dataclass(frozen=True, slots=True)
class Index:
    """An index; the primary key is the one named ``PRIMARY``.

    Attributes:
        implicit: Whether the server made it for a foreign key. The server drops it as soon as
            another index begins with its columns, even if the foreign key is dropped already. SHOW
            CREATE TABLE does not show this, so it is False after a snapshot.
        hashed: Whether it was made with USING HASH on MariaDB: then no foreign key can use it.
    """

    name: str
    kind: IndexKind
    parts: tuple[IndexPart, ...]
    comment: str = ""
    invisible: bool = False
    parser: str = ""
    implicit: bool = False
    hashed: bool = False

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns that are key parts, in order; expressions are left out."""
        return tuple(part.column for part in self.parts if part.column)

    @property
    def is_unique(self) -> bool:
        """Whether the index refuses a second row with the same values."""
        return self.kind in (IndexKind.PRIMARY, IndexKind.UNIQUE)


@dataclass(frozen=True, slots=True)
class Check:
    """A CHECK constraint with its name (MySQL's generated one where none was given)."""

    name: str
    expression: str
    enforced: bool = True


@dataclass(frozen=True, slots=True)
class ForeignKey:
    """A foreign key constraint."""

    name: str
    columns: tuple[str, ...]
    parent_database: str
    parent_table: str
    parent_columns: tuple[str, ...]
    on_delete: str = ""
    on_update: str = ""


@made_at_once
@hashed_once
@dataclass(frozen=True, slots=True)
class TableSchema(Hashed):
    """A table's schema.

    Attributes:
        columns: In table order; names are unique without regard to case; never empty.
        indexes: Primary key first, then in MySQL's order; names unique without regard to case.
        charset, collation: The table's default, used for columns added later.
        comment: Table comment; not part of the lattice value.
        options: Other table options as sorted (upper-case name, text) pairs; not part of the
            lattice value.
        partitioning: Canonical text of PARTITION BY, "" when none; not part of the lattice value.
    """

    columns: tuple[Column, ...]
    indexes: tuple[Index, ...] = ()
    checks: tuple[Check, ...] = ()
    foreign_keys: tuple[ForeignKey, ...] = ()
    charset: str = "utf8mb4"
    collation: str = ""
    comment: str = ""
    options: tuple[tuple[str, str], ...] = field(default=())
    partitioning: str = ""

    def column(self, name: str) -> Column | None:
        """The column with that name, without regard to case; None when there is none."""
        folded = name.lower()
        return next((c for c in self.columns if c.name.lower() == folded), None)

    def index(self, name: str) -> Index | None:
        """The index with that name, without regard to case; None when there is none."""
        folded = name.lower()
        return next((i for i in self.indexes if i.name.lower() == folded), None)

    @property
    def primary_key(self) -> Index | None:
        """The primary key; None without one."""
        return next((i for i in self.indexes if i.kind is IndexKind.PRIMARY), None)
