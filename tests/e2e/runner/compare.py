"""Judge a target against a scenario's ``final``: columns, indexes, rows. Pure: takes what was read.

Integer display widths, the names of character sets and the spelling of defaults differ between
servers without meaning anything; they are brought to one form first.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from typing import Any

from .model import Final


@dataclass(frozen=True, slots=True)
class FoundColumn:
    """A column of the target, as ``information_schema`` tells it."""

    name: str
    type: str
    nullable: bool
    default: str | None
    charset: str | None
    collation: str | None
    generated: str


@dataclass(frozen=True, slots=True)
class FoundIndex:
    """An index of the target: columns in order."""

    name: str
    unique: bool
    columns: tuple[str, ...]


def column_faults(
    final: Final, found: Sequence[FoundColumn], of_shards: frozenset[str]
) -> list[str]:
    """What is wrong with the target's columns.

    Args:
        final: Expected; a list that is not ``complete`` names some columns only.
        found: The target's.
        of_shards: Lower-case names of all columns of the shards, as they are now. No column may
            be in the target that no shard has.
    """
    if final.columns is None:
        return []
    faults = []
    by_name = {column.name.lower(): column for column in found}
    wanted = {str(column["name"]).lower() for column in final.columns}
    allowed = wanted if final.complete else wanted | of_shards
    for name in sorted(set(by_name) - allowed):
        faults.append(f"column {name} should not be there")
    for column in final.columns:
        name = str(column["name"]).lower()
        if name not in by_name:
            faults.append(f"column {name} is missing")
        else:
            faults += _column_faults(column, by_name[name])
    return faults


def _column_faults(wanted: Mapping[str, Any], found: FoundColumn) -> list[str]:
    pairs: list[tuple[str, object, object]] = []
    if "type" in wanted and "type_differs" not in wanted:
        pairs.append(("type", plain_type(str(wanted["type"])), plain_type(found.type)))
    if "null" in wanted and "null_differs" not in wanted:
        pairs.append(("nullable", bool(wanted["null"]), found.nullable))
    if "default" in wanted and "default_differs" not in wanted:
        pairs.append(("default", plain_default(wanted["default"]), plain_default(found.default)))
    if "charset" in wanted:
        pairs.append(("charset", plain_charset(wanted["charset"]), plain_charset(found.charset)))
    if "collation" in wanted:
        pairs.append(
            ("collation", plain_charset(wanted["collation"]), plain_charset(found.collation))
        )
    if "generated" in wanted:
        pairs.append(
            ("generated", plain_expression(wanted["generated"]), plain_expression(found.generated))
        )
    return [f"column {found.name}: {what} is {b!r}, not {a!r}" for what, a, b in pairs if a != b]


def index_faults(final: Final, found: Sequence[FoundIndex]) -> list[str]:
    """What is wrong with the target's indexes; nothing when the scenario tells none."""
    if final.indexes is None:
        return []
    faults = []
    by_name = {index.name.lower(): index for index in found}
    wanted = {name.lower(): entry for name, entry in final.indexes.items()}
    for name in sorted(set(by_name) - set(wanted)):
        faults.append(f"index {name} should not be there")
    for name, entry in wanted.items():
        index = by_name.get(name)
        if index is None:
            faults.append(f"index {name} is missing")
            continue
        columns = tuple(str(c).lower() for c in entry["columns"])
        if columns != tuple(c.lower() for c in index.columns):
            faults.append(f"index {name} is on {index.columns}, not {columns}")
        if "unique" in entry and bool(entry["unique"]) != index.unique:
            faults.append(f"index {name}: unique is {index.unique}")
    return faults


def without_spelling(columns: Sequence[FoundColumn]) -> list[FoundColumn]:
    """Columns as kinds of servers have them alike: no display widths, collations, quotes."""
    return [
        replace(
            column,
            type=plain_type(column.type),
            default=plain_default(column.default),
            charset=plain_charset(column.charset),
            collation=None,
            generated=plain_expression(column.generated),
        )
        for column in columns
    ]


def schema_faults(
    shard: str,
    columns: Sequence[FoundColumn],
    indexes: Sequence[FoundIndex],
    target_columns: Sequence[FoundColumn],
    target_indexes: Sequence[FoundIndex],
) -> list[str]:
    """What of a target's schema is not that of a shard; the order of columns is free."""
    faults = [
        f"column {entry} is not that of {shard}"
        for entry in sorted(set(target_columns) ^ set(columns), key=repr)
    ]
    faults += [
        f"index {entry} is not that of {shard}"
        for entry in sorted(set(target_indexes) ^ set(indexes), key=repr)
    ]
    return faults


def row_faults(final: Final, found: Sequence[Mapping[str, Any]], limit: int = 3) -> list[str]:
    """What is wrong with the target's rows, as a bag; nothing when the scenario tells none.

    Args:
        final: Expected rows, their values in the order of its columns.
        found: Rows by lower-case column name.
        limit: How many rows are told of each kind.
    """
    faults = []
    if final.row_count is not None and final.row_count != len(found):
        faults.append(f"{len(found)} rows, not {final.row_count}")
    if final.rows is None:
        return faults
    if final.columns is None:
        names = sorted(found[0]) if found else []
    else:
        names = [str(column["name"]).lower() for column in final.columns]
    wanted = [tuple(plain_value(value) for value in row) for row in final.rows]
    have = [tuple(plain_value(row.get(name)) for name in names) for row in found]
    for row in wanted[:]:
        if (found_row := next((h for h in have if _same(row, h)), None)) is not None:
            have.remove(found_row)
            wanted.remove(row)
    faults += [f"row {row} is missing" for row in wanted[:limit]]
    faults += [f"row {row} should not be there" for row in have[:limit]]
    return faults


def _same(wanted: tuple[object, ...], found: tuple[object, ...]) -> bool:
    return all(_same_value(a, b) for a, b in zip(wanted, found, strict=True))


def _same_value(wanted: object, found: object) -> bool:
    if isinstance(wanted, str) and isinstance(found, Decimal):
        # A decimal may be written as text, with its zeros.
        try:
            return Decimal(wanted) == found
        except InvalidOperation:
            return False
    return wanted == found


def plain_type(text: str) -> str:
    """A column type without integer display width; ``decimal`` and lengths stay."""
    text = " ".join(text.lower().split())
    text = re.sub(r"\b(tinyint|smallint|mediumint|int|integer|bigint|year)\(\d+\)", r"\1", text)
    return re.sub(r"\binteger\b", "int", text)


def plain_default(value: object) -> str | None:
    """A default's text without quotes; a volatile one by one name."""
    if value is None:
        return None
    text = str(value).strip()
    if re.fullmatch(r"(current_timestamp|now)(\(\d*\))?", text, re.IGNORECASE):
        return "current_timestamp"
    if re.fullmatch(r"'.*'", text, re.DOTALL):
        return text[1:-1]
    return None if text.upper() == "NULL" else text


def plain_charset(name: str | None) -> str | None:
    """``utf8`` is an older name of ``utf8mb3``, in collations too."""
    return None if name is None else re.sub(r"^utf8(?=_|$)", "utf8mb3", name.lower())


def plain_expression(text: str) -> str:
    """A generated column's expression without quotes, blanks and outer parentheses."""
    text = re.sub(r"[`\s]", "", str(text)).lower()
    while text.startswith("(") and text.endswith(")"):
        text = text[1:-1]
    return text


def plain_value(value: object) -> object:
    """A value in the one form in which a YAML file and the driver's row are compared."""
    match value:
        case bool():
            return Decimal(int(value))
        case int() | Decimal():
            return Decimal(value)
        case float():
            # A FLOAT column carries about six digits; the driver shows more.
            return Decimal(f"{value:.6g}")
        case bytes():
            try:
                return value.decode("utf-8")
            except UnicodeDecodeError:
                return value.hex()
        case dt.datetime():
            return value.strftime("%Y-%m-%d %H:%M:%S") + (
                f".{value.microsecond:06d}".rstrip("0") if value.microsecond else ""
            )
        case dt.date():
            return value.isoformat()
        case dt.timedelta():
            seconds = int(value.total_seconds())
            sign, seconds = ("-", -seconds) if seconds < 0 else ("", seconds)
            return f"{sign}{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
        case str():
            return value
        case None:
            return None
    return str(value)
