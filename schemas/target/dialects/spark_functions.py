"""MySQL's operators, functions, types and units that Spark SQL has too, with their names there.

Source: Spark SQL Reference, "Functions"; MySQL Reference Manual, "Functions and Operators".
"""

from __future__ import annotations

import re

from sqlglot import exp

BINARY: dict[type[exp.Expression], str] = {
    exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.EQ: "=", exp.NEQ: "<>", exp.GT: ">",
    exp.GTE: ">=", exp.LT: "<", exp.LTE: "<=", exp.NullSafeEQ: "<=>",
}  # fmt: skip
DIVISIONS: dict[type[exp.Expression], str] = {exp.Div: "/", exp.IntDiv: "DIV", exp.Mod: "%"}
PREDICATES = (
    exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ, exp.And, exp.Or, exp.Not,
    exp.Xor, exp.Is, exp.In, exp.Between, exp.Like, exp.Escape, exp.RegexpLike, exp.Boolean,
)  # fmt: skip
CALLS: dict[type[exp.Expression], str] = {
    exp.Concat: "concat", exp.ConcatWs: "concat_ws", exp.Coalesce: "coalesce",
    exp.Nullif: "nullif", exp.Left: "left", exp.Right: "right", exp.Lower: "lower",
    exp.Upper: "upper", exp.Replace: "replace", exp.Reverse: "reverse", exp.Repeat: "repeat",
    exp.Hex: "hex", exp.Unhex: "unhex", exp.MD5: "md5", exp.SHA: "sha1", exp.SHA2: "sha2",
    exp.Abs: "abs", exp.Ceil: "ceiling", exp.Floor: "floor", exp.Round: "round", exp.Pow: "power",
    exp.Sqrt: "sqrt", exp.Ln: "ln", exp.Log: "log", exp.Sign: "sign", exp.Year: "year",
    exp.Month: "month", exp.DayOfMonth: "dayofmonth", exp.DayOfWeek: "dayofweek",
    exp.DayOfYear: "dayofyear", exp.Quarter: "quarter", exp.Hour: "hour", exp.Minute: "minute",
    exp.Second: "second", exp.LastDay: "last_day", exp.DateDiff: "datediff", exp.Ascii: "ascii",
    exp.SubstringIndex: "substring_index", exp.Uuid: "uuid", exp.Rand: "rand",
    exp.CurrentDate: "current_date",
}  # fmt: skip
ARGUMENTS = ("this", "expression", "expressions", "replacement", "times", "length", "decimals",
              "delimiter", "count")  # fmt: skip
"""Arguments of the functions in ``CALLS``, which have the same order in both languages."""
FLAGS = frozenset({"safe", "coalesce", "date_part_boundary", "binary", "kind"})
"""Arguments that can be ignored: Spark's function behaves as they say."""
BY_NAME = {"weekday": "weekday", "crc32": "crc32", "find_in_set": "find_in_set"}
NOW = frozenset({"now", "current_timestamp", "localtime", "localtimestamp"})
UNITS = frozenset({"SECOND", "MINUTE", "HOUR", "DAY", "WEEK", "MONTH", "YEAR"})
PARTS = UNITS | {"QUARTER"}
DATE_FORMATS = {
    "%Y": "yyyy", "%y": "yy", "%m": "MM", "%-m": "M", "%B": "MMMM", "%b": "MMM", "%d": "dd",
    "%-d": "d", "%H": "HH", "%-H": "H", "%I": "hh", "%-I": "h", "%M": "mm", "%S": "ss",
    "%f": "SSSSSS", "%j": "DDD", "%p": "a", "%a": "EEE", "%A": "EEEE", "%%": "%",
}  # fmt: skip
"""Format letter of strftime → Spark's. sqlglot converts MySQL's letters to strftime's."""
NOT_MYSQL = re.compile(r"\bdate_format\(.*%[-AB]")
"""Matches letters that mean themselves in MySQL, but would be read as strftime's."""
CASTS = {"BIGINT": "bigint", "UBIGINT": "decimal(20,0)", "DATE": "date", "DOUBLE": "double",
          "FLOAT": "float", "DATETIME": "timestamp_ntz", "TIMESTAMP": "timestamp_ntz"}  # fmt: skip
MAX_DIGITS = 38
STRINGS_AND_INTEGERS = (
    exp.Substring, exp.SubstringIndex, exp.Left, exp.Right, exp.Trim, exp.Concat, exp.ConcatWs,
    exp.Replace, exp.Literal, exp.Floor, exp.Ceil, exp.IntDiv, exp.Length, exp.Year, exp.Month,
    exp.DayOfMonth, exp.Quarter, exp.Hour, exp.Minute, exp.Second, exp.DateDiff, exp.EQ, exp.GT,
    exp.LT, exp.GTE, exp.LTE, exp.NEQ, exp.And, exp.Or, exp.Not, exp.Is, exp.In,
)  # fmt: skip
