"""Which rows of a target were changed, as the binlog of its server tells it. Pure.

The sink writes to the target, and perhaps somebody else does, too. The binlog names the rows of
both. So a row whose key is not behind a place of the binlog has not changed since then, whoever
writes.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any

from shardmerge.connectors.binlog.binlog_changes import Change, ChangedRow
from shardmerge.schemas.model.names import TargetTable
from shardmerge.schemas.model.types import ColumnType

from .doubts import Key
from .proofs import MOST_KEYS
from .record_keys import NamesNoKey
from .row_keys import RowKeyColumn
from .value_texts import UTF8

_BITS = {"tinyint": 8, "smallint": 16, "mediumint": 24, "int": 32, "bigint": 64}
_NO_CHANGE = re.compile(
    r"\s*(?:BEGIN|COMMIT|ROLLBACK|SAVEPOINT|XA(?!\s+COMMIT)|GRANT|REVOKE|ANALYZE|FLUSH)(?![\w$])",
    re.IGNORECASE,
)
"""The rows of a transaction stand behind its BEGIN. But those of a prepared transaction may stand
before the place from which the binlog is read, and count from XA COMMIT on."""
_DDL = re.compile(
    r"\s*(?:CREATE|ALTER|DROP|RENAME|TRUNCATE|OPTIMIZE|REPAIR)(?![\w$])", re.IGNORECASE
)
_OF_DATABASE = re.compile(r"\s*(?:CREATE|ALTER|DROP)\s[^`]*\b(?:DATABASE|SCHEMA)\b", re.IGNORECASE)


def changed_in_target(
    target: TargetTable, keys: TargetKeys, changes: Iterable[Change], most: int = MOST_KEYS
) -> set[Key]:
    """The keys of the rows that the binlog names.

    Args:
        target: The target.
        keys: Reads them.
        changes: What the binlog has.
        most: How many keys may have changed.

    Raises:
        NamesNoKey: A change does not name its rows, or too many rows have changed.
    """
    found: set[Key] = set()
    for change in changes:
        if isinstance(change, ChangedRow):
            found.add(keys.of(change.values))
        elif concerns(target, change.database, change.sql):
            raise NamesNoKey(f"the target's server has executed {change.sql[:100]!r} meanwhile")
        if len(found) > most:
            raise NamesNoKey(f"more than {most:,} rows of the target have changed meanwhile")
    return found


class TargetKeys:
    """Reads keys of a target from the values that its server's binlog has.

    Args:
        key: The target's key.
        columns: The names of the target's columns, in the order of the values.

    Raises:
        NamesNoKey: The key cannot be read from the binlog.
    """

    def __init__(self, key: Sequence[RowKeyColumn], columns: Sequence[str]) -> None:
        places = {name.lower(): number for number, name in enumerate(columns)}
        self._width = len(columns)
        self._places: list[tuple[int, ColumnType]] = []
        for column in key:
            if column.name.lower() not in places:
                raise NamesNoKey(f"the target has no column {column.name} now")
            if not _is_read(column.target_type):
                kind = column.target_type
                raise NamesNoKey(
                    f"keys of type {kind.name} {kind.charset}".rstrip()
                    + " are not read from the target's binlog"
                )
            self._places.append((places[column.name.lower()], column.target_type))

    def of(self, values: Sequence[Any]) -> Key:
        """The key of a row.

        Raises:
            NamesNoKey: The row has other columns, or a value that the binlog's reader does not
                know, such as a zero date.
        """
        if len(values) != self._width:
            raise NamesNoKey("the target had other columns meanwhile")
        return tuple(_key_text(kind, values[place]) for place, kind in self._places)


def concerns(target: TargetTable, database: str, sql: str) -> bool:
    """Whether a logged statement may have changed rows of the target.

    DDL counts if it names the target's table, and names the target's database or has it as the
    default one; or if it is about a whole database. Other statements are logged as text only where
    rows are not logged. Through a view or a trigger they can change any table, so they count.

    Args:
        target: The target.
        database: The default database.
        sql: The statement.
    """
    if _NO_CHANGE.match(sql):
        return False
    if not _DDL.match(sql):
        return True
    if database.lower() != target.database.lower() and not _names(sql, target.database):
        return False
    return _names(sql, target.table) or _OF_DATABASE.match(sql) is not None


def _names(sql: str, name: str) -> bool:
    spellings = {name, name.replace("`", "``"), name.replace('"', '""')}
    return any(
        re.search(rf"(?<![\w$]){re.escape(each)}(?![\w$])", sql, re.IGNORECASE)
        for each in spellings
    )


def _is_read(kind: ColumnType) -> bool:
    if kind.is_string:
        return kind.charset in (*UTF8, "")
    return kind.is_integer or kind.name in ("decimal", "date", "datetime", "timestamp")


def _key_text(kind: ColumnType, value: Any) -> str:
    """The text of a key's value, as ``RowKeyColumn.selected`` gives it."""
    if kind.is_string and isinstance(value, str):
        return value.encode().hex().upper()
    if kind.is_integer and isinstance(value, int):
        # The binlog does not tell whether a number has a sign.
        return str(value % (1 << _BITS[kind.name]) if kind.unsigned else value)
    if kind.name == "decimal" and isinstance(value, Decimal):
        return f"{value:.{kind.scale or 0}f}"
    if kind.name == "date" and isinstance(value, dt.date):
        return value.isoformat()
    if isinstance(value, dt.datetime):
        fraction = f".{value.microsecond:06d}"[: kind.fsp + 1] if kind.fsp else ""
        return f"{value:%Y-%m-%d %H:%M:%S}{fraction}".rjust(19 + len(fraction), "0")
    raise NamesNoKey(f"the target's binlog has a key of type {kind.name} that is not read")
