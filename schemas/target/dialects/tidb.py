"""TiDB as a target: MySQL's statements, without those that TiDB refuses (``tidb_rules``).

Source: TiDB documentation, "MySQL Compatibility", "MODIFY COLUMN", "Generated Columns", "Default
Values", "Character Set and Collation", "Clustered Indexes"; run on TiDB 8.4 (tests/tidb).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from shardmerge.schemas.lattice.charset_order import finest_collation, pads
from shardmerge.schemas.lattice.type_join import value_type
from shardmerge.schemas.model.frozen import replace
from shardmerge.schemas.model.mysql_facts import MAX_KEY_BYTES, NULL_DEFAULT
from shardmerge.schemas.model.mysql_text import column_type
from shardmerge.schemas.model.names import TargetTable
from shardmerge.schemas.model.server_context import ServerContext
from shardmerge.schemas.model.tables import (
    Check,
    Column,
    Default,
    DefaultKind,
    Generated,
    Index,
    IndexKind,
    TableSchema,
)
from shardmerge.schemas.model.types import BINARY_NAMES, SPATIAL_NAMES, STRING_NAMES, ColumnType

from .collations import in_key_collation
from .dialect import CannotRender, FittedColumn, LeftOut, Place, Rendering
from .mysql_dialect import MySqlDialect
from .mysql_fit import without_default
from .mysql_sizes import key_bytes
from .tidb_rules import (
    DEFAULTS,
    STORED,
    UNCHANGED_COMPUTED,
    UNCHANGED_KEY,
    Change,
    needs_no_index,
    refusal,
)

_CHARSETS = frozenset({"utf8mb3", "utf8mb4", "ascii", "latin1", "binary", "gbk"})
_COLLATIONS = frozenset({
    "utf8mb4_bin", "utf8mb4_general_ci", "utf8mb4_unicode_ci", "utf8mb4_0900_ai_ci",
    "utf8mb4_0900_bin", "utf8mb3_bin", "utf8mb3_general_ci", "utf8mb3_unicode_ci", "ascii_bin",
    "latin1_bin", "binary", "gbk_bin", "gbk_chinese_ci",
})  # fmt: skip
_WITHOUT_DEFAULTS = frozenset({"json", *STRING_NAMES[2:], *BINARY_NAMES[2:]})
"""Text, blob and JSON: they take no literal default, and few expressions, none a constant."""
_COLLATIONS_0900_FROM = (7, 4)
_TO_UTF8MB4 = ("utf8mb3", "utf8mb4", "latin1")


@dataclass(frozen=True, slots=True)
class TiDbDialect(MySqlDialect):
    """A TiDB cluster.

    Attributes:
        server: The MySQL version whose syntax TiDB follows.
        version: TiDB's own version.
    """

    server: ServerContext = field(default=ServerContext(version=(8, 0, 11)))
    version: tuple[int, ...] = (7, 5)

    @property
    def name(self) -> str:
        """Kind and version, as people write them."""
        return f"TiDB {'.'.join(map(str, self.version))}"

    @property
    def _old_utf8(self) -> bool:
        return True

    def zero_value(self, kind: ColumnType) -> Default | None:
        """The type's zero value as a default; None for text, blob and JSON."""
        if kind.name in _WITHOUT_DEFAULTS:
            return None
        return MySqlDialect.zero_value(self, kind)

    def set_default_charset(
        self, table: TargetTable, charset: str, collation: str, *, before: str = ""
    ) -> Rendering:
        """DEFAULT CHARACTER SET, only from utf8 or latin1 to utf8mb4, or within utf8mb4.

        Source: ``checkModifyCharsetAndCollation``.
        """
        if charset != "utf8mb4" or before not in _TO_UTF8MB4:
            return ()
        if collation and not self._has_collation(collation):
            return ()
        return MySqlDialect.set_default_charset(self, table, charset, collation)

    @property
    def shares_check_names(self) -> bool:
        """False: it has no checks."""
        return False

    @property
    def fixes_named_columns(self) -> bool:
        """True: TiDB refuses MODIFY of computed columns and of columns they name (error 3106)."""
        return True

    def needs_no_index(self, before: ColumnType, after: ColumnType) -> bool:
        """TiDB does not change the collation of a column that is in an index (error 8200)."""
        return needs_no_index(before, after)

    def refusal(self, schema: TableSchema, *, has_key: bool) -> CannotRender | None:
        """Why TiDB cannot have the table: only a primary key that is too long.

        Rows may be longer than in MySQL.
        """
        key = schema.primary_key
        if key is None or key_bytes(key, schema) <= MAX_KEY_BYTES:
            return None
        return MySqlDialect.refusal(self, schema, has_key=has_key)

    def _has_collation(self, collation: str) -> bool:
        is_new = "0900" in collation and self.version < _COLLATIONS_0900_FROM
        return collation in _COLLATIONS and not is_new

    def _near(self, collation: str) -> str:
        finest = finest_collation("utf8mb4")
        return next((c for c in (collation, finest) if self._has_collation(c)), "")

    def fit_column(self, column: Column, place: Place) -> FittedColumn | CannotRender:
        """The column as TiDB can have it. A STORED one becomes VIRTUAL, except in a primary key."""
        kind = column.type
        if kind.name in SPATIAL_NAMES or kind.name == "vector":
            return CannotRender(
                f"TiDB has no type {kind.name}, which {column.name} has",
                f"give {column.name} another type, or drop it, on every shard",
                code="SM-1227",
            )
        if kind.charset and kind.charset not in _CHARSETS:
            return CannotRender(
                f"TiDB has no character set {kind.charset}, which {column.name} has",
                f"convert {column.name} to utf8mb4 on every shard",
                code="SM-1227",
            )
        notes: list[str] = []
        plain = kind
        if kind.zerofill or (kind.name in ("float", "double") and kind.scale is not None):
            plain = replace(kind, zerofill=False)
            if plain.name != "decimal":
                plain = replace(plain, length=None, scale=None)
            notes.append("TiDB shows no zeros and no fixed digits")
        collation = self._fit_collation(column, place, notes)
        if isinstance(collation, CannotRender):
            return collation
        # Such a collation is decided: the MySQL version that TiDB follows has other ones.
        decided = bool(place.key) or collation != kind.collation
        plain = replace(plain, collation="" if decided else collation)
        rest = replace(place, collations=frozenset())
        fitted = MySqlDialect.fit_column(self, replace(column, type=plain), rest)
        if isinstance(fitted, CannotRender):
            return fitted
        found = fitted.column
        if decided and found.type.charset:
            found = replace(found, type=replace(found.type, collation=collation))
        return self._fit_rest(found, place, [*notes, *fitted.notes])

    def default_collation(self, charset: str) -> str:
        """TiDB's defaults compare bytes."""
        return f"{charset}_bin"

    def _fit_collation(self, column: Column, place: Place, notes: list[str]) -> str | CannotRender:
        """The collation that TiDB has for a column; "" for its default."""
        default = self.default_collation(column.type.charset)
        kind = in_key_collation(column.type, place, default, self._near, notes)
        if not kind.collation or self._has_collation(kind.collation):
            return kind.collation
        near = f"{kind.charset}_bin"
        had = place.previous.type if place.previous is not None else None
        is_there = had is not None and (had.charset, had.collation) == (kind.charset, near)
        if place.key and kind.name != "char" and not pads(kind.charset, kind.collation):
            finest = finest_collation(kind.charset)
            if is_there:
                notes.append(f"keys that differ in spaces at the end alone are the same in {near}")
            elif not self._has_collation(finest):
                return CannotRender(
                    f"{column.name} is in a key and needs the collation {kind.collation}, which "
                    "TiDB lacks: keys that differ in trailing spaces alone would collide",
                    f"give {column.name} one collation on every shard, or take it out of the key",
                    code="SM-1223",
                )
            else:
                near = finest
        notes.append(f"TiDB has no collation {kind.collation}, it compares by bytes")
        return near

    def _fit_rest(self, column: Column, place: Place, notes: list[str]) -> FittedColumn:
        if column.generated is not None and column.generated.stored:
            before = place.previous
            was_stored = before is not None and before.generated is not None
            # A primary key can only have stored values.
            if place.key == "primary" and (place.is_new_table or was_stored):
                return FittedColumn(column, tuple(notes))
            notes.append(STORED.reason)
            virtual = Generated(column.generated.expression, stored=False)
            return FittedColumn(replace(column, generated=virtual), tuple(notes))
        default = column.default
        if default is None or default == NULL_DEFAULT:
            return FittedColumn(column, tuple(notes))
        is_now = default.text.startswith("CURRENT_TIMESTAMP")
        is_expression = default.kind is DefaultKind.EXPRESSION and not is_now
        if is_expression or column.type.name in _WITHOUT_DEFAULTS:
            notes.append(DEFAULTS.reason)
            column = without_default(column, place, notes, self.zero_value(column.type))
        return FittedColumn(column, tuple(notes))

    def fit_index(self, index: Index, schema: TableSchema) -> Index | LeftOut:
        """The index as TiDB can have it."""
        if index.kind in (IndexKind.FULLTEXT, IndexKind.SPATIAL, IndexKind.VECTOR):
            return LeftOut(f"TiDB has no {index.kind.value} indexes")
        # TiDB parses DESC and ignores it.
        parts = tuple(replace(part, descending=False) for part in index.parts)
        return MySqlDialect.fit_index(self, replace(index, parts=parts), schema)

    def fit_check(self, check: Check) -> Check | LeftOut:
        """No check: TiDB parses checks and ignores them, unless a cluster-wide variable is set."""
        return LeftOut("TiDB forgets checks")

    def change_column(
        self, table: TargetTable, before: Column, after: Column, *, in_key: bool
    ) -> Rendering:
        """MODIFY, unless a rule says that TiDB refuses it."""
        if before.generated is not None or after.generated is not None:
            return CannotRender(
                f"{UNCHANGED_COMPUTED.reason} ({after.name})",
                f"drop {after.name} on every shard and add it again",
                code="SM-1225",
            )
        old, new = value_type(before.type), value_type(after.type)
        if old != new and (reason := refusal(Change(old, new, in_key))):
            return CannotRender(
                f"TiDB does not change {after.name} from {column_type(old)} to "
                f"{column_type(new)}: {reason}",
                f"add a new column of the new type on every shard, and drop {after.name}",
                code="SM-1225",
            )
        return MySqlDialect.change_column(self, table, before, after, in_key=in_key)

    def change_primary_key(
        self, table: TargetTable, before: Index | None, after: Index | None
    ) -> Rendering:
        """ADD PRIMARY KEY if the table has no key; TiDB refuses to replace one."""
        if before is None:
            return MySqlDialect.change_primary_key(self, table, before, after)
        return CannotRender(
            UNCHANGED_KEY.reason,
            "give the shards their primary key back, or merge them into a new target",
            code="SM-1228",
        )
