"""The values that arrive changed, because Debezium does not read them exactly: one table. Pure.

The page docs/reference/values.md is made from it, and so are what ``shardmerge check`` says of a
source's columns, and the warnings of decisions that make such columns. Each entry was measured
(Debezium 3.6.1 with the converter of ``connectors/java``, MySQL 8.0.15):
tests/integration/spark/test_every_value.py plays every type's boundary values through every way
and compares what differs with this table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum

from shardmerge.schemas.model.types import ColumnType

UNREADABLE_CHARSETS = frozenset({"armscii8", "dec8", "hp8", "keybcs2"})
"""Debezium reads them as cp1252 or cp852. Some characters that it gets are in them too."""
WITHOUT_LOSS = frozenset(
    {
        *("", "binary", "utf8mb4", "utf8mb3", "ucs2", "utf16", "utf16le", "utf32"),
        *("cp850", "cp852", "cp866", "koi8r", "koi8u", "latin2", "latin5", "latin7"),
        *("macce", "macroman", "swe7"),
    }
)
"""Charsets of which every character is read from the binlog."""
_VENDOR_CHARSETS = frozenset({"big5", "eucjpms", "gb18030", "gbk"})


class Outcome(StrEnum):
    """What becomes of such a value."""

    HELD = "held"
    """Its shard stops at the row, and says why."""
    CHANGED = "changed"
    """Another value is written: nothing behind Debezium can tell the two apart."""


@dataclass(frozen=True, slots=True)
class ValueLimit:
    """A kind of value that does not arrive as it is.

    Attributes:
        id: For the test that looks for them.
        columns: Of which columns, for people.
        values: Which values.
        ways: ``snapshot`` (and whatever is read again), ``binlog``, or both.
        becomes: What happens to them.
        concerns: Whether a column of that type can have such values; second argument: whether it
            can be NULL.
        zero_dates: Only a server whose ``sql_mode`` takes zero dates has such values.
        told_by_ddl: Whether a decision that makes such a column warns.
        flavour: The kind of source that has such values; "" for all.
    """

    id: str
    columns: str
    values: str
    ways: tuple[str, ...]
    becomes: str
    outcome: Outcome
    concerns: Callable[[ColumnType, bool], bool]
    zero_dates: bool = False
    told_by_ddl: bool = True
    flavour: str = ""

    @property
    def sentence(self) -> str:
        """The whole of it, for ``check``, a decision and the reference page."""
        how = "" if self.ways == _BOTH else _WAYS[self.ways[0]]
        held = "; its shard is held there" if self.outcome is Outcome.HELD else ""
        return f"{self.columns}: {how}{self.values} {self.becomes}{held}"


SNAPSHOT, BINLOG = "snapshot", "binlog"
_WAYS = {SNAPSHOT: "read by a snapshot, first or again, ", BINLOG: "from the binlog, "}
_BOTH = (SNAPSHOT, BINLOG)


def _is_text(kind: ColumnType) -> bool:
    return kind.is_string


LIMITS: tuple[ValueLimit, ...] = (
    ValueLimit(
        "zero_date",
        "DATE, DATETIME and TIMESTAMP that may be NULL",
        "a zero date (0000-00-00)",
        _BOTH,
        "is NULL",
        Outcome.CHANGED,
        lambda kind, nullable: nullable and kind.name in ("date", "datetime", "timestamp"),
        zero_dates=True,
        told_by_ddl=False,
    ),
    ValueLimit(
        "half_zero_date",
        "DATE and DATETIME",
        "a date whose month or day is zero (2026-00-10)",
        _BOTH,
        "is NULL, in a NOT NULL column 0000-00-00",
        Outcome.CHANGED,
        lambda kind, _: kind.name in ("date", "datetime"),
        zero_dates=True,
        told_by_ddl=False,
    ),
    ValueLimit(
        "year_zero",
        "DATE and DATETIME",
        "a date in the year 0000",
        (BINLOG,),
        "is NULL, in a NOT NULL column 0000-00-00",
        Outcome.CHANGED,
        lambda kind, _: kind.name in ("date", "datetime"),
        zero_dates=True,
        told_by_ddl=False,
    ),
    ValueLimit(
        "year_zero_read",
        "DATETIME",
        "a date in the year 0000",
        (SNAPSHOT,),
        "is in the year 0001",
        Outcome.CHANGED,
        lambda kind, _: kind.name == "datetime",
        zero_dates=True,
        told_by_ddl=False,
    ),
    ValueLimit(
        "lost_days",
        "DATETIME",
        "1582-10-05 to 1582-10-14",
        (SNAPSHOT,),
        "is ten days later",
        Outcome.CHANGED,
        lambda kind, _: kind.name == "datetime",
        told_by_ddl=False,
    ),
    ValueLimit(
        "float_digits",
        "FLOAT",
        "a value with more than six digits",
        (SNAPSHOT,),
        "has six",
        Outcome.CHANGED,
        lambda kind, _: kind.name == "float",
    ),
    ValueLimit(
        "json_decimal",
        "JSON",
        "a decimal (which a statement put there: JSON text has none)",
        _BOTH,
        "is the nearest double",
        Outcome.CHANGED,
        lambda kind, _: kind.name == "json",
        told_by_ddl=False,
    ),
    ValueLimit(
        "json_last_bit",
        "JSON",
        "one double in 200 of those with 17 digits",
        _BOTH,
        "is its neighbour: a MySQL target reads no text of it rightly",
        Outcome.CHANGED,
        lambda kind, _: kind.name == "json",
        told_by_ddl=False,
    ),
    ValueLimit(
        "unreadable_charset",
        "text of armscii8, dec8, hp8 and keybcs2",
        "any value",
        _BOTH,
        "may be read by another character set",
        Outcome.HELD,
        lambda kind, _: _is_text(kind) and kind.charset in UNREADABLE_CHARSETS,
    ),
    ValueLimit(
        "unread_character",
        "text of latin1, sjis and others that are not Unicode",
        "a byte for which Java or MySQL has no character (latin1: 0x81, 0x8d, 0x8f, 0x90, 0x9d)",
        (BINLOG,),
        "is not read",
        Outcome.HELD,
        lambda kind, _: _is_text(kind) and kind.charset not in WITHOUT_LOSS | UNREADABLE_CHARSETS,
        told_by_ddl=False,
    ),
    ValueLimit(
        "cp932_of_mariadb",
        "text of cp932 on a MariaDB source",
        "any value that is not ASCII",
        _BOTH,
        "is read as GB2312",
        Outcome.HELD,
        lambda kind, _: _is_text(kind) and kind.charset == "cp932",
        told_by_ddl=False,
        flavour="mariadb",
    ),
    ValueLimit(
        "unmapped_byte",
        "text that is not Unicode",
        "a byte for which MySQL itself has no character (cp1250: 0x81)",
        (SNAPSHOT,),
        "is '?'",
        Outcome.CHANGED,
        lambda kind, _: _is_text(kind) and kind.charset not in WITHOUT_LOSS - {"swe7"},
        told_by_ddl=False,
    ),
    ValueLimit(
        "vendor_character",
        "text of big5, eucjpms, gb18030 and gbk",
        "a vendor's character (big5 0xa15a, eucjpms 0xf9a1, gb18030 0xa6d9)",
        (BINLOG,),
        "is another one",
        Outcome.CHANGED,
        lambda kind, _: _is_text(kind) and kind.charset in _VENDOR_CHARSETS,
    ),
)


def limits_of(kind: ColumnType, nullable: bool) -> Iterable[ValueLimit]:
    """The limits that concern a column."""
    return (limit for limit in LIMITS if limit.concerns(kind, nullable))
