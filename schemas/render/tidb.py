"""TiDB as a target: MySQL's statements, one action each, less what its documents exclude.

Source (read, not run): TiDB documentation, "MySQL Compatibility", "MODIFY COLUMN", "Generated
Columns", "Default Values", "Character Set and Collation", "Clustered Indexes".
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from shardmerge.schemas.grammar.context import ServerContext
from shardmerge.schemas.model import (
    Check,
    Column,
    Default,
    DefaultKind,
    Generated,
    Index,
    IndexKind,
    TableSchema,
)
from shardmerge.schemas.names import TargetTable
from shardmerge.schemas.type_join import value_type
from shardmerge.schemas.types import (
    BINARY_NAMES,
    INTEGER_NAMES,
    SPATIAL_NAMES,
    STRING_NAMES,
    TEMPORAL_NAMES,
    ColumnType,
)

from .dialect import CannotRender, FittedColumn, LeftOut, Place, Texts
from .mysql_dialect import MySqlDialect
from .mysql_fit import NULL_DEFAULT, without_default

_CHARSETS = frozenset({"utf8mb3", "utf8mb4", "ascii", "latin1", "binary", "gbk"})
_COLLATIONS = frozenset({
    "utf8mb4_bin", "utf8mb4_general_ci", "utf8mb4_unicode_ci", "utf8mb4_0900_ai_ci",
    "utf8mb4_0900_bin", "utf8mb3_bin", "utf8mb3_general_ci", "utf8mb3_unicode_ci", "ascii_bin",
    "latin1_bin", "binary", "gbk_bin", "gbk_chinese_ci",
})  # fmt: skip
_WITHOUT_DEFAULTS = frozenset({"json", *STRING_NAMES[2:], *BINARY_NAMES[2:]})
"""Text, blob and JSON: no literal default, and few expressions, none of them a constant."""
_FAMILIES = (INTEGER_NAMES, ("float", "double"), STRING_NAMES, BINARY_NAMES)
_UNCAST = frozenset({*TEMPORAL_NAMES, "bit", "enum", "set", "json"})


@dataclass(frozen=True, slots=True)
class TiDbDialect(MySqlDialect):
    """A TiDB cluster.

    Attributes:
        server: Unused version of MySQL that TiDB's syntax follows.
        version: TiDB's own.
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

    def set_default_charset(self, table: TargetTable, charset: str, collation: str) -> Texts:
        """Only from utf8 to utf8mb4, which is all that TiDB changes; nothing otherwise."""
        if charset != "utf8mb4" or (collation and collation not in _COLLATIONS):
            return ()
        return MySqlDialect.set_default_charset(self, table, charset, collation)

    def fit_column(self, column: Column, place: Place) -> FittedColumn | CannotRender:
        """The column as TiDB can have it; a STORED column is computed when it is read."""
        kind = column.type
        if kind.name in SPATIAL_NAMES or kind.name == "vector":
            return CannotRender(
                f"TiDB has no type {kind.name}, which {column.name} has",
                f"give {column.name} another type, or drop it, on every shard",
            )
        if kind.charset and kind.charset not in _CHARSETS:
            return CannotRender(
                f"TiDB has no character set {kind.charset}, which {column.name} has",
                f"convert {column.name} to utf8mb4 on every shard",
            )
        notes: list[str] = []
        plain = kind
        if kind.zerofill or (kind.name in ("float", "double") and kind.scale is not None):
            plain = replace(kind, zerofill=False)
            if plain.name != "decimal":
                plain = replace(plain, length=None, scale=None)
            notes.append("TiDB shows no zeros and no fixed digits")
        if kind.collation and kind.collation not in _COLLATIONS:
            if kind.collation.endswith("_nopad_bin") and place.key:
                return CannotRender(
                    f"{column.name} is in a key and needs the collation {kind.collation}, which "
                    "TiDB lacks: keys that differ in trailing spaces alone would collide",
                    f"give {column.name} one collation on every shard, or take it out of the key",
                )
            plain = replace(plain, collation=f"{kind.charset}_bin")
            notes.append(f"TiDB has no collation {kind.collation}, it compares by bytes")
        fitted = MySqlDialect.fit_column(self, replace(column, type=plain), place)
        if isinstance(fitted, CannotRender):
            return fitted
        return self._fit_rest(fitted.column, place, [*notes, *fitted.notes])

    def _fit_rest(self, column: Column, place: Place, notes: list[str]) -> FittedColumn:
        if column.generated is not None and column.generated.stored:
            notes.append("TiDB adds no STORED column to a table, it computes the value when read")
            virtual = Generated(column.generated.expression, stored=False)
            return FittedColumn(replace(column, generated=virtual), tuple(notes))
        default = column.default
        if default is None or default == NULL_DEFAULT:
            return FittedColumn(column, tuple(notes))
        is_now = default.text.startswith("CURRENT_TIMESTAMP")
        is_expression = default.kind is DefaultKind.EXPRESSION and not is_now
        if is_expression or column.type.name in _WITHOUT_DEFAULTS:
            notes.append("TiDB takes no such default")
            column = without_default(column, place, notes, self.zero_value(column.type))
        return FittedColumn(column, tuple(notes))

    def fit_index(self, index: Index, schema: TableSchema) -> Index | LeftOut:
        """The index as TiDB can have it."""
        if index.kind in (IndexKind.FULLTEXT, IndexKind.SPATIAL, IndexKind.VECTOR):
            return LeftOut(f"TiDB has no {index.kind.value} indexes")
        return MySqlDialect.fit_index(self, index, schema)

    def fit_check(self, check: Check) -> Check | LeftOut:
        """TiDB reads a check and forgets it, unless a cluster-wide variable says otherwise."""
        return LeftOut("TiDB forgets checks")

    def change_column(
        self, table: TargetTable, before: Column, after: Column, *, in_key: bool
    ) -> Texts:
        """MODIFY, unless TiDB's documents refuse it."""
        if before.generated is not None or after.generated is not None:
            return CannotRender(
                f"TiDB does not change the computed column {after.name}",
                f"drop {after.name} on every shard and add it again",
            )
        if value_type(before.type) != value_type(after.type):
            reason = _unsupported(before.type, after.type, in_key=in_key)
            if reason:
                return CannotRender(
                    f"TiDB does not change {after.name} from {before.type.name} to "
                    f"{after.type.name}: {reason}",
                    f"add a new column of the new type on every shard, and drop {after.name}",
                )
        return MySqlDialect.change_column(self, table, before, after, in_key=in_key)

    def change_primary_key(
        self, table: TargetTable, before: Index | None, after: Index | None
    ) -> Texts:
        """Refused: the rows of a TiDB table are stored under their primary key."""
        return CannotRender(
            "TiDB does not change the primary key of a table whose rows are clustered by it",
            "give the shards their primary key back, or merge them into a new target",
        )


def _unsupported(before: ColumnType, after: ColumnType, *, in_key: bool) -> str:
    """Why TiDB refuses a change of type; "" where it does not."""
    if in_key and not (before.name == after.name != "decimal" and before.fsp == after.fsp):
        both = before.is_integer and after.is_integer and before.unsigned == after.unsigned
        if not (both and INTEGER_NAMES.index(before.name) < INTEGER_NAMES.index(after.name)):
            return "the primary key's values would have to be written anew"
    if before.charset and after.charset and before.charset != after.charset:
        to_wider = after.charset == "utf8mb4" and before.charset in ("utf8mb3", "ascii", "latin1")
        return "" if to_wider else "its character set only changes to utf8mb4"
    if before.name == after.name or any(
        before.name in family and after.name in family for family in _FAMILIES
    ):
        return ""
    if before.name in _UNCAST or after.name in _UNCAST:
        return "its conversion differs from MySQL's"
    return ""
