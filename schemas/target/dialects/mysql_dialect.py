"""MySQL 5.7 to 9.x and MariaDB 10.x and 11.x as targets.

One class serves both: ``features`` says how they differ.

Source: MySQL and MariaDB reference manuals, "ALTER TABLE"; tests/integration/mysql.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from shardmerge.schemas.lattice.charset_order import finest_collation, server_defaults
from shardmerge.schemas.lattice.type_join import value_type
from shardmerge.schemas.model import mysql_text as mysql
from shardmerge.schemas.model.actions import (
    Action,
    CharsetChange,
    CheckAddition,
    CheckRemoval,
    ColumnAddition,
    ColumnChange,
    ColumnRemoval,
    ColumnRename,
    DefaultChange,
    IndexAddition,
    IndexRemoval,
    TableCreation,
)
from shardmerge.schemas.model.frozen import replace
from shardmerge.schemas.model.mysql_facts import MAX_KEY_BYTES, MAX_ROW_BYTES
from shardmerge.schemas.model.names import TargetTable
from shardmerge.schemas.model.server_context import ServerContext
from shardmerge.schemas.model.tables import (
    Check,
    Column,
    Default,
    DefaultKind,
    Index,
    IndexKind,
    TableSchema,
)
from shardmerge.schemas.model.types import WITHOUT_LITERAL_DEFAULT, ColumnType

from .collations import fit_collation
from .dialect import CannotRender, Dialect, FittedColumn, LeftOut, Place, Rendered, Rendering
from .features import (
    DESCENDING_INDEXES,
    DROPS_CHECKS,
    FUNCTIONAL_INDEXES,
    INDEX_PARSERS,
    MULTI_VALUED_INDEXES,
    RENAME_COLUMN,
    UNENFORCED_CHECKS,
    VECTOR_INDEXES,
    missing_function,
    stored_otherwise,
)
from .mysql_alter import alter_clause
from .mysql_fit import fit_column, in_flavour, zero_default
from .mysql_rows import has_value, row_value
from .mysql_sizes import key_bytes, row_bytes


@dataclass(frozen=True, slots=True)
class MySqlDialect(Dialect):
    """A MySQL or MariaDB server of one version.

    Attributes:
        server: Flavour and version, and the settings with which sessions of the sink read SQL.
    """

    server: ServerContext = field(default=ServerContext(version=(8, 0, 36)))

    @property
    def name(self) -> str:
        """Kind and version, as people write them."""
        kind = "MariaDB" if self.server.is_mariadb else "MySQL"
        return f"{kind} {'.'.join(map(str, self.server.version))}"

    @property
    def shares_check_names(self) -> bool:
        """True for MySQL (error 3822); on MariaDB each table has names of its own."""
        return DROPS_CHECKS.is_in(self.server) and not self.server.is_mariadb

    def reorders(self, joined: ColumnType, fitted: ColumnType, collations: frozenset[str]) -> bool:
        """Whether a text column has another collation than its shards state or mean by none."""
        if not (joined.charset and fitted.charset):
            return False
        meant = {joined.collation}
        if not joined.collation:
            meant = {*server_defaults(joined.charset, collations)}
        has = fitted.collation or self.default_collation(fitted.charset)
        same = {finest_collation("utf8mb4"), "utf8mb4_nopad_bin"}  # two names of one order
        return bool(meant) and meant != {has} and not (meant <= same and has in same)

    def stored_otherwise(self, expression: str) -> str:
        """Why the server computes something else of an expression; "" when it does not."""
        return stored_otherwise(expression, self.server)

    def default_collation(self, charset: str) -> str:
        """The collation that the server gives a column that names none."""
        return self.server.default_collation(charset)

    def zero_value(self, kind: ColumnType) -> Default | None:
        """The type's zero value as a default; None when the server takes none for it."""
        return zero_default(kind, self.server)

    def fit_column(self, column: Column, place: Place) -> FittedColumn | CannotRender:
        """The column as the server can have it."""
        return fit_column(column, place, self.server)

    def fit_index(self, index: Index, schema: TableSchema) -> Index | LeftOut:
        """The index as the server can have it."""
        expressions = [part.expression for part in index.parts if part.expression]
        if expressions and not FUNCTIONAL_INDEXES.is_in(self.server):
            return LeftOut(f"{self.name} has no functional indexes")
        if any(e.endswith(" array)") for e in expressions) and not MULTI_VALUED_INDEXES.is_in(
            self.server
        ):
            return LeftOut(f"{self.name} has no multi-valued indexes")
        for text in expressions:
            if missing := missing_function(text, self.server):
                return LeftOut(f"{self.name} has no {missing}")
            if why := self.stored_otherwise(text):
                return LeftOut(why)
        if index.kind is IndexKind.VECTOR and not VECTOR_INDEXES.is_in(self.server):
            return LeftOut(f"{self.name} has no vector indexes")
        if index.parser and not INDEX_PARSERS.is_in(self.server):
            return LeftOut(f"{self.name} has no parser {index.parser}")
        if (size := key_bytes(index, schema)) > MAX_KEY_BYTES and (
            index.kind is not IndexKind.PRIMARY
        ):
            return LeftOut(f"its entries have up to {size:,} bytes, {MAX_KEY_BYTES:,} are allowed")
        if not DESCENDING_INDEXES.is_in(self.server):
            return replace(
                index, parts=tuple(replace(part, descending=False) for part in index.parts)
            )
        return index

    def fit_check(self, check: Check) -> Check | LeftOut:
        """The check as the server can have it."""
        if not DROPS_CHECKS.is_in(self.server):
            return LeftOut(f"{self.name} could not drop it again")
        if not check.enforced and not UNENFORCED_CHECKS.is_in(self.server):
            return LeftOut(f"{self.name} would enforce it")
        if missing := missing_function(check.expression, self.server):
            return LeftOut(f"{self.name} has no {missing}")
        return replace(check, expression=in_flavour(check.expression, self.server))

    def refusal(self, schema: TableSchema, *, has_key: bool) -> CannotRender | None:
        """Why the server cannot have the table."""
        key = schema.primary_key
        if key is not None and (size := key_bytes(key, schema)) > MAX_KEY_BYTES:
            return CannotRender(
                f"the primary key would have {size:,} bytes, {MAX_KEY_BYTES:,} are allowed",
                "make its columns shorter again on one of the shards",
                code="SM-1221",
            )
        if (size := row_bytes(schema)) > MAX_ROW_BYTES:
            return CannotRender(
                f"a row of all shards' columns would have {size:,} bytes, {MAX_ROW_BYTES:,} are "
                "allowed",
                "make long VARCHAR columns TEXT, or drop one, on a shard",
                code="SM-1222",
            )
        return None

    def row_value(self, fill: str, column: Column) -> str | None:
        """The literal of a fill."""
        return row_value(fill, column)

    def has_value(self, column: Column, literal: str) -> str:
        """The condition that a row already has the literal."""
        return has_value(column, literal)

    def create_table(self, table: TargetTable, schema: TableSchema) -> Rendering:
        """CREATE TABLE without IF NOT EXISTS: the caller checks whether the table exists."""
        # Every column names its own collation, so the default need not be available.
        collation = self._default_collation(schema.collation) or ""
        schema = replace(schema, collation=collation)
        sql = mysql.create_table(schema, table.sql, old_utf8=self._old_utf8)
        return (Rendered(sql, (TableCreation(schema),)),)

    def set_default_charset(
        self, table: TargetTable, charset: str, collation: str, *, before: str = ""
    ) -> Rendering:
        """DEFAULT CHARACTER SET; no statement when the server has no collation that is near."""
        fitted = self._default_collation(collation)
        if fitted is None:
            return ()
        return self._alter(table, CharsetChange(charset, fitted))

    def _default_collation(self, collation: str) -> str | None:
        """The nearest collation that the server has; None when none is near enough."""
        if not collation:
            return ""
        fitted = fit_collation(collation, "the table", in_key=False, server=self.server)
        return None if isinstance(fitted, CannotRender) else fitted[0]

    def add_column(self, table: TargetTable, column: Column) -> Rendering:
        """ADD COLUMN at the end."""
        return self._alter(table, ColumnAddition(column))

    def drop_column(self, table: TargetTable, column: Column) -> Rendering:
        """DROP COLUMN."""
        return self._alter(table, ColumnRemoval(column.name))

    def rename_column(self, table: TargetTable, column: Column, to: str) -> Rendering:
        """RENAME COLUMN, or on older servers CHANGE with the whole definition."""
        if RENAME_COLUMN.is_in(self.server):
            return self._alter(table, ColumnRename(column.name, to))
        return self._alter(table, ColumnChange(column.name, replace(column, name=to)))

    def change_column(
        self, table: TargetTable, before: Column, after: Column, *, in_key: bool
    ) -> Rendering:
        """ALTER COLUMN, which changes no row, when only the default changes; else MODIFY."""
        default = after.default
        only_default = (
            before.generated is None
            and after.generated is None
            and (
                replace(before, type=value_type(before.type), default=None)
                == replace(after, type=value_type(after.type), default=None)
            )
        )
        if only_default and before.default == default:
            return ()  # Only display properties differ, and they change no value.
        # ALTER COLUMN is not used for an expression: CURRENT_TIMESTAMP in parentheses would be
        # another default, and MySQL 8.0.15 refuses every expression for text, blob and JSON
        # (measured). For these types every MySQL refuses even NULL in ALTER COLUMN.
        whole = default is not None and (
            default.kind is DefaultKind.EXPRESSION
            or (default.kind is DefaultKind.NULL and after.type.name in WITHOUT_LITERAL_DEFAULT)
        )
        if not only_default or whole:
            return self._alter(table, ColumnChange(after.name, after))
        return self._alter(table, DefaultChange.of(after.name, default), kind=after.type)

    def add_index(self, table: TargetTable, index: Index) -> Rendering:
        """ADD INDEX of any kind."""
        return self._alter(table, IndexAddition(index))

    def drop_index(self, table: TargetTable, index: Index) -> Rendering:
        """DROP INDEX."""
        return self._alter(table, IndexRemoval(index.name))

    def add_check(self, table: TargetTable, check: Check) -> Rendering:
        """ADD CONSTRAINT … CHECK."""
        return self._alter(table, CheckAddition(check))

    def drop_check(self, table: TargetTable, check: Check) -> Rendering:
        """DROP CHECK, or DROP CONSTRAINT for MariaDB."""
        return self._alter(table, CheckRemoval(check.name))

    def change_primary_key(
        self, table: TargetTable, before: Index | None, after: Index | None
    ) -> Rendering:
        """Drop and add the key in one statement: between two, the table would have no key."""
        actions: list[Action] = [IndexRemoval(before.name)] if before else []
        actions += [IndexAddition(after)] if after else []
        return self._alter(table, *actions)

    @property
    def _old_utf8(self) -> bool:
        # All these servers accept utf8mb3_bin as another name of utf8_bin (measured, also on 5.7).
        return False

    def _alter(
        self, table: TargetTable, *actions: Action, kind: ColumnType | None = None
    ) -> Rendering:
        """One ALTER TABLE; ``kind`` is the type of the column that gets another default."""
        clauses = [
            alter_clause(action, kind, old_utf8=self._old_utf8, mariadb=self.server.is_mariadb)
            for action in actions
        ]
        return (Rendered(f"ALTER TABLE {table.sql} {', '.join(clauses)}", actions),)


MYSQL_8 = MySqlDialect()
"""The default dialect of ``diff``: MySQL 8.0.36."""
