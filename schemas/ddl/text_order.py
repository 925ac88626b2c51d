"""Expressions whose value depends on which texts a collation calls equal or less.

Where the target has a column in another collation than the shards mean, a comparison there can have
another result: ``'ß' = 's'`` is true in ``utf8mb4_general_ci`` and false in ``utf8mb4_0900_ai_ci``.

Source: MySQL Reference Manual, "Character Sets, Collations, Unicode", "String Functions".
"""

from __future__ import annotations

import re
from collections.abc import Collection

from .expressions import column_names

_QUOTED = re.compile(r"'(?:[^'\\]|\\.|'')*'|`(?:[^`]|``)*`", re.DOTALL)
_FUNCTION = re.compile(r"\b([a-z_][a-z0-9_]*)\(")
_BLIND = frozenset(
    {
        *(
            "ascii",
            "bit_length",
            "cast",
            "char_length",
            "coalesce",
            "concat",
            "concat_ws",
            "convert",
        ),
        *("crc32", "from_base64", "hex", "ifnull", "json_extract", "json_unquote", "json_valid"),
        *("left", "length", "lpad", "md5", "ord", "quote", "repeat", "reverse", "right", "rpad"),
        *("sha", "sha2", "substr", "to_base64", "unhex"),
    }
)
"""Functions that look at characters or bytes, not at their order."""
_NUMBER = re.compile(r"\b(?:ascii|bit_length|char_length|crc32|length|ord)\(`(?:[^`]|``)*`\)")
"""Matches numbers that are made of a text; comparing them compares no texts."""
_COMPARISON = re.compile(
    r"<|>|=|\b(?:like|rlike|regexp|in|between|case|collate|member|sounds)\b", re.IGNORECASE
)


def compares_texts(expression: str, names: Collection[str]) -> bool:
    """Whether an expression may compare the values of some text columns.

    True as well for some expressions that do not.

    Args:
        expression: Canonical text.
        names: The columns, in lower case.
    """
    reduced = _NUMBER.sub("1", expression)
    if not any(name.lower() in names for name in column_names(reduced)):
        return False
    bare = _QUOTED.sub("", reduced)
    return bool(_COMPARISON.search(bare)) or not _BLIND.issuperset(_FUNCTION.findall(bare))
