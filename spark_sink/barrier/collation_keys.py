"""Which key columns have values that are equal and yet different bytes. Pure."""

from __future__ import annotations

from shardmerge.schemas.model.types import BLOB_NAMES, ColumnType

_NUMBERS = ("float", "double")
_EXACT = ("utf8mb4_0900_bin", "_nopad_bin", "binary")


def is_collation_key(kind: ColumnType) -> bool:
    """Whether two values of a key column can be one key, and messages have them as two.

    Text can be, under every collation that is not binary; under a binary one that pads with blanks
    too ('a' = 'a '), unless the type has no blanks at the end. So are 0 and -0. Of a BLOB the key
    has the first bytes alone.

    Source: MySQL Reference Manual, "The binary Collation Compared to _bin Collations".
    """
    if not kind.is_string:
        return kind.name in (*_NUMBERS, *BLOB_NAMES)
    if kind.charset == "binary" or kind.collation.endswith(_EXACT):
        return False
    return kind.name != "char" or not kind.collation.endswith("_bin")
