"""Random expressions over the columns of a table, as CHECK, generated columns and indexes hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random

from shardmerge.schemas.model.tables import Column

from .random_types import Dialect, quoted

_NUMERIC = (
    "{c} + 1", "{c} * 2 - 3", "ABS({c})", "COALESCE({c}, 0)", "IFNULL({c}, 5)", "{c} DIV 2",
    "{c} MOD 7", "{c} % 3", "MOD({c}, 4)", "-{c}", "- ({c} + 1)", "{c} & 15", "{c} | 1", "{c} ^ 3",
    "{c} << 2", "~{c}", "ROUND({c}, 1)", "FLOOR({c} / 2)", "CEILING({c})", "GREATEST({c}, 3)",
    "LEAST({c}, 3, 9)", "IF({c} > 1, 2, 3)", "POW({c}, 2)", "SIGN({c})", "TRUNCATE({c}, 1)",
    "CASE WHEN {c} > 1 THEN 'x' ELSE 'y' END", "CASE {c} WHEN 1 THEN 2 WHEN 3 THEN 4 END",
    "CAST({c} AS CHAR(10))", "CAST({c} AS UNSIGNED)", "CAST({c} AS SIGNED INTEGER)",
    "CAST({c} AS DECIMAL(10,2))", "CONVERT({c}, CHAR)", "NULLIF({c}, 0)", "({c} + 1) * 2",
    "{c} - (1 - 2)", "{c} / 2 * 3", "FORMAT({c}, 2)", "HEX({c})", "CONV({c}, 10, 16)",
    "{c} + {d}", "CONCAT_WS('-', {c}, {d})", "{c} * -1", "{c} + 1.50", "{c} + 1e3",
)  # fmt: skip
_TEXT = (
    "CONCAT({c}, 'x')", "UPPER({c})", "LCASE({c})", "LENGTH({c})", "CHAR_LENGTH({c})",
    "LEFT({c}, 3)", "SUBSTRING({c}, 1, 2)", "SUBSTRING({c} FROM 2 FOR 3)", "SUBSTR({c}, 2)",
    "TRIM({c})", "TRIM(LEADING 'x' FROM {c})", "LTRIM({c})", "REPLACE({c}, 'a', 'b')",
    "REVERSE({c})", "MD5({c})", "SHA2({c}, 256)", "CRC32({c})", "LOCATE('x', {c})",
    "POSITION('x' IN {c})", "INSTR({c}, 'x')", "LPAD({c}, 5, '0')", "COALESCE({c}, 'it''s')",
    "CAST({c} AS UNSIGNED)", "{c} COLLATE utf8mb4_bin", "CONVERT({c} USING utf8mb4)",
    "ASCII({c})", "REPEAT({c}, 2)", "MID({c}, 2, 3)", "FIELD({c}, 'a', 'b')", "BINARY {c}",
    "CAST({c} AS BINARY(4))", "SUBSTRING_INDEX({c}, ',', 1)", "ELT(1, {c}, 'b')", "{c} = 'x'",
)  # fmt: skip
_MOMENT = (
    "YEAR({c})", "MONTH({c})", "DAY({c})", "DAYOFWEEK({c})", "TO_DAYS({c})",
    "DATE_FORMAT({c}, '%Y-%m')", "{c} + INTERVAL 1 DAY", "{c} - INTERVAL 2 MONTH",
    "DATE_ADD({c}, INTERVAL 1 HOUR)", "DATE_SUB({c}, INTERVAL '1:2' MINUTE_SECOND)",
    "DATEDIFF({c}, '2020-01-01')", "EXTRACT(YEAR FROM {c})", "LAST_DAY({c})", "DATE({c})",
    "CAST({c} AS DATE)", "QUARTER({c})", "WEEK({c}, 1)", "TIMESTAMPDIFF(DAY, {c}, '2020-01-01')",
)  # fmt: skip
_MOMENT_TRUTH = (
    "{c} > '2020-01-01'", "YEAR({c}) > 2000", "{c} BETWEEN '2000-01-01' AND '2030-01-01'",
    "DATE({c}) = DATE'2020-01-02'", "{c} + INTERVAL 1 DAY > '2020-01-01'", "{c} <> {d}",
)  # fmt: skip
_JSON = (
    "JSON_EXTRACT({c}, '$.a')", "JSON_UNQUOTE(JSON_EXTRACT({c}, '$.a'))", "JSON_LENGTH({c})",
    "JSON_VALID({c})", "JSON_CONTAINS({c}, '1')",
)  # fmt: skip
_JSON_TRUTH = ("JSON_VALID({c})", "JSON_LENGTH({c}) > 1", "{c} IS NOT NULL")
_ARROWS = ("{c}->'$.a'", "{c}->>'$.a.b'")
_TRUTH = (
    "{c} > 3", "{c} >= 1 AND {c} < 9", "{c} <> 5", "{c} != 5 OR {c} IS NULL", "{c} IS NOT NULL",
    "{c} IN (1, 2, 3)", "{c} NOT IN (4, 5)", "{c} BETWEEN 1 AND 9", "{c} NOT BETWEEN 1 AND 2",
    "NOT ({c} > 3)", "!({c})", "{c} <=> 1", "{c} XOR 1", "{c} IS TRUE", "{c} IS NOT FALSE",
    "{c} IS UNKNOWN", "({c} > 1) = ({c} < 9)", "{c} > {d}", "({c} > 1 AND {d} > 2) OR {c} = 9",
    "{c} > 1 AND ({d} > 2 OR {c} = 9)", "{c} && 1", "{c} || 0", "COALESCE({c}, 1) > 0",
    "{c} + 1 > 2 * {d}", "IF({c} IS NULL, 1, {c} > 0)", "1 < {c}",
)  # fmt: skip
_TEXT_TRUTH = (
    "{c} LIKE 'x%'", "{c} NOT LIKE '%y'", "{c} LIKE 'a|%' ESCAPE '|'", "{c} <> ''",
    "LENGTH({c}) > 2", "{c} IN ('a', 'b')", "{c} REGEXP '^a'", "{c} NOT REGEXP 'b$'",
    "{c} BETWEEN 'a' AND 'z'", "{c} = 'it''s'", r"{c} <> 'a\\b'", "UPPER({c}) = {c}",
    "CHAR_LENGTH({c}) < 10", "{c} IS NOT NULL",
)  # fmt: skip
# Not YEAR: MySQL rewrites the numbers that it is compared with (1 to 2001).
_NUMBER_TYPES = frozenset(
    {"tinyint", "smallint", "mediumint", "int", "bigint", "decimal", "float", "double"}
)
_TEXT_TYPES = frozenset({"char", "varchar", "tinytext", "text", "enum"})
_MOMENT_TYPES = frozenset({"date", "datetime", "timestamp"})


def value(chance: Random, dialect: Dialect, columns: Sequence[Column]) -> str:
    """An expression of some value; "" when no column suits."""
    json = _JSON if dialect.is_mariadb else _JSON + _ARROWS
    return _filled(
        chance, columns, {"number": _NUMERIC, "text": _TEXT, "moment": _MOMENT, "json": json}
    )


def truth(chance: Random, columns: Sequence[Column]) -> str:
    """A condition; "" when no column suits."""
    return _filled(
        chance, columns,
        {"number": _TRUTH, "text": _TEXT_TRUTH, "moment": _MOMENT_TRUTH, "json": _JSON_TRUTH},
    )  # fmt: skip


def _filled(chance: Random, columns: Sequence[Column], forms: Mapping[str, Sequence[str]]) -> str:
    by_kind = {
        "number": [c.name for c in columns if c.type.name in _NUMBER_TYPES],
        "text": [c.name for c in columns if c.type.name in _TEXT_TYPES],
        "moment": [c.name for c in columns if c.type.name in _MOMENT_TYPES],
        "json": [c.name for c in columns if c.type.name == "json"],
    }
    kinds = [kind for kind, names in by_kind.items() if names]
    if not kinds:
        return ""
    kind = chance.choice(kinds)
    first, second = (quoted(chance.choice(by_kind[kind])) for _ in "cd")
    return chance.choice(forms[kind]).replace("{c}", first).replace("{d}", second)
