"""The key by which a shard's row and the target's row are matched. Pure.

A key is one text for each column. The text of a value is the same on all servers, so rows of two
servers are matched without knowing a collation. Whole numbers are written as their digits, texts as
hexadecimal digits of their bytes in utf8mb4. The same texts are the boundaries of the ranges that
are compared.

If a shard orders the key's texts otherwise than the target, both sides order them by their bytes.
Then servers read more than with the index of the key; see ``orders_alike``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from shardmerge.schemas.model.names import quote_identifier
from shardmerge.schemas.model.types import ColumnType
from shardmerge.spark_sink.loading.key_order import Boundary, KeyColumn

from .value_texts import UTF8, value_text


@dataclass(frozen=True, slots=True)
class RowKeyColumn(KeyColumn):
    """A column of the key on one side.

    Attributes:
        wanted: The column's type in the target; None if it is ``kind``.
        by_bytes: Whether ranges are in the order of the text's bytes in utf8mb4.
        constant: For an origin column, which the shard itself does not have: SQL of the value for
            all rows of the shard. "" for a column of the table.
        in_ranges: Whether ranges are cut by it; False for an origin column.
    """

    wanted: ColumnType | None = None
    by_bytes: bool = False
    constant: str = ""
    in_ranges: bool = True

    @property
    def value(self) -> str:
        """SQL of the column's value."""
        return self.constant or quote_identifier(self.name)

    @property
    def target_type(self) -> ColumnType:
        """The target's type."""
        return self.kind if self.wanted is None else self.wanted

    @property
    def is_bytes(self) -> bool:
        """Whether a key's text is hexadecimal digits."""
        return self.target_type.is_string or self.target_type.is_binary

    def order_value(self, text: str) -> Decimal | str:
        """What sorts key texts as the target sorts the keys."""
        kind = self.target_type
        is_number = kind.is_integer or kind.name in ("decimal", "year")
        return Decimal(text) if is_number else text

    @property
    def compared(self) -> str:
        """SQL by which ranges are compared and ordered."""
        if self.by_bytes:
            return f"CAST(CONVERT({self.value} USING utf8mb4) AS BINARY)"
        return self.equality_value

    @property
    def equality_value(self) -> str:
        """SQL that ``equal_to`` is compared with."""
        return f"({self.value} + 0)" if self.kind.name in ("enum", "set") else self.value

    @property
    def selected(self) -> str:
        """SQL that gives the key's text, in ASCII."""
        if self.kind.name in ("enum", "set"):
            return f"CAST({self.value} + 0 AS CHAR)"
        if self.kind.name in ("float", "double"):
            return f"CAST({self.value} + 0e0 AS CHAR)"
        text = value_text(self.value, self.kind, self.target_type)
        assert text is not None, self.kind
        return f"HEX({text.sql})" if self.is_bytes else text.sql

    def literal(self, value: str) -> str:
        """SQL of a key's text, for ranges."""
        if self.by_bytes:
            return f"X'{value}'"
        return self.equal_to(value)

    def equal_to(self, value: str) -> str:
        """SQL of a key's text in the column's own character set, so that its index can be used."""
        if not self.kind.is_string:
            return KeyColumn(self.name, self.kind).literal(value)
        if self.kind.charset in ("utf8mb4", ""):
            return f"_utf8mb4 X'{value}'"
        charset = "utf8" if self.kind.charset == "utf8mb3" else self.kind.charset
        collation = f" COLLATE {self.kind.collation}" if self.kind.collation else ""
        return f"CONVERT(_utf8mb4 X'{value}' USING {charset}){collation}"


def orders_alike(kinds: Sequence[ColumnType]) -> bool:
    """Whether servers order the values of all these types in the same way."""
    if not any(kind.is_string for kind in kinds):
        return True
    return len({(kind.is_string, kind.charset, kind.collation) for kind in kinds}) == 1


def orders_by_bytes(kinds: Sequence[ColumnType]) -> bool:
    """Whether servers order the values of all these types as Spark does, which takes bytes."""
    return all(
        not kind.is_string or (kind.charset in UTF8 and kind.collation.endswith("_bin"))
        for kind in kinds
    )


def first_boundary(key: Sequence[RowKeyColumn], found: Sequence[Boundary]) -> Boundary | None:
    """The first of some boundaries in the order of the target; None for none.

    A wrong order would only make ranges larger: see ``chunk_ranges``.
    """
    return min(
        found,
        key=lambda one: [c.order_value(text) for c, text in zip(key, one, strict=True)],
        default=None,
    )


def key_texts(key: Sequence[RowKeyColumn]) -> str:
    """SQL that selects a row's key."""
    return ", ".join(column.selected for column in key)


def keys_condition(key: Sequence[RowKeyColumn], keys: Sequence[Sequence[str]]) -> str:
    """The SQL condition of rows with one of these keys.

    A collation can make it true for other rows too; their keys tell them apart.

    Args:
        key: At least one column.
        keys: At least one key.
    """
    if len(key) == 1:
        values = ", ".join(key[0].equal_to(value) for (value,) in keys)
        return f"{key[0].equality_value} IN ({values})"
    return " OR ".join(
        "("
        + " AND ".join(
            f"{column.equality_value} = {column.equal_to(value)}"
            for column, value in zip(key, one, strict=True)
        )
        + ")"
        for one in keys
    )
