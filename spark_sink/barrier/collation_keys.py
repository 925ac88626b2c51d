"""Which key columns can have two values that compare as equal but differ in bytes. Pure."""

from __future__ import annotations

from shardmerge.schemas.model.types import BLOB_NAMES, ColumnType

_NUMBERS = ("float", "double")
_EXACT = ("utf8mb4_0900_bin", "_nopad_bin", "binary")


def is_collation_key(kind: ColumnType) -> bool:
    """Whether two values of a column can be one key for the server but two message keys.

    That is so for text under every collation that is not binary. It is so under a binary collation
    that pads with blanks, too ('a' = 'a '), except for CHAR, which has no blanks at the end. For
    FLOAT and DOUBLE, 0 and -0 are equal. The key of a BLOB has only the first bytes of the value.

    Source: MySQL Reference Manual, "The binary Collation Compared to _bin Collations".
    """
    if not kind.is_string:
        return kind.name in (*_NUMBERS, *BLOB_NAMES)
    if kind.charset == "binary" or kind.collation.endswith(_EXACT):
        return False
    return kind.name != "char" or not kind.collation.endswith("_bin")
