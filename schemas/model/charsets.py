"""MySQL's character sets: bytes per character, default collations, and names' variants.

Source: ``information_schema.character_sets`` of MySQL 8.0 and MariaDB 10.11.
"""

from __future__ import annotations

_MULTI_BYTE = {
    "utf8mb4": 4, "utf16": 4, "utf16le": 4, "utf32": 4, "gb18030": 4, "utf8mb3": 3, "ujis": 3,
    "eucjpms": 3, "ucs2": 2, "big5": 2, "sjis": 2, "cp932": 2, "gbk": 2, "gb2312": 2, "euckr": 2,
}  # fmt: skip
_DEFAULT_COLLATIONS = {
    "latin1": "latin1_swedish_ci", "binary": "binary", "big5": "big5_chinese_ci",
    "dec8": "dec8_swedish_ci", "hp8": "hp8_english_ci", "ujis": "ujis_japanese_ci",
    "sjis": "sjis_japanese_ci", "euckr": "euckr_korean_ci", "gb2312": "gb2312_chinese_ci",
    "gbk": "gbk_chinese_ci", "cp932": "cp932_japanese_ci", "eucjpms": "eucjpms_japanese_ci",
    "swe7": "swe7_swedish_ci", "tis620": "tis620_thai_ci", "gb18030": "gb18030_chinese_ci",
    "latin5": "latin5_turkish_ci",
}  # fmt: skip


def charset_name(name: str) -> str:
    """The canonical name: lower case, and ``utf8mb3`` for ``utf8``."""
    folded = name.lower()
    return "utf8mb3" if folded == "utf8" else folded


def collation_name(name: str) -> str:
    """The canonical name: lower case, ``utf8mb3_…`` for ``utf8_…``."""
    folded = name.lower()
    return "utf8mb3_" + folded[5:] if folded.startswith("utf8_") else folded


def charset_of(collation: str) -> str:
    """The character set that a canonical collation name implies; "" when it names none."""
    head = collation.partition("_")[0]
    return "" if head == "uca1400" else head


def max_bytes(charset: str) -> int:
    """Bytes of the longest character."""
    return _MULTI_BYTE.get(charset, 1)


def default_collation(charset: str, version_number: int, *, mariadb: bool) -> str:
    """The collation that a character set has when none is given.

    Source: measured on MySQL 5.7, 8.0, 9.7, MariaDB 10.11 and 11.8. That MariaDB's
    defaults are uca1400 from 11.5 on is read in its documentation, not measured.
    """
    if mariadb and version_number >= 110500 and charset in ("utf8mb4", "ucs2", "utf16", "utf32"):
        return f"{charset}_uca1400_ai_ci"
    if mariadb and version_number >= 110500 and charset == "utf8mb3":
        return "utf8mb3_uca1400_ai_ci"
    if charset == "utf8mb4" and not mariadb and version_number >= 80001:
        return "utf8mb4_0900_ai_ci"
    return _DEFAULT_COLLATIONS.get(charset, f"{charset}_general_ci")


def binary_collation(charset: str) -> str:
    """The collation that the attribute BINARY asks for."""
    return "binary" if charset == "binary" else f"{charset}_bin"
