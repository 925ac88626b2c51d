"""Which changes TiDB refuses: one table of rules, each with its source. Pure.

When a rule applies to a change, the change is held with the rule's reason before any statement is
sent. These rules do not cover changes that TiDB accepts but makes differently than MySQL.

Source: TiDB 8.4, ``pkg/types/field_type.go`` (``CheckModifyTypeCompatible``), ``pkg/ddl/
modify_column.go``, ``pkg/ddl/executor.go``; tests/tidb/test_rules.py tries every rule on a server,
in both directions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from shardmerge.schemas.model.mysql_facts import VALUE_BYTES
from shardmerge.schemas.model.types import (
    BINARY_NAMES,
    INTEGER_NAMES,
    STRING_NAMES,
    TEMPORAL_NAMES,
    ColumnType,
)

_MOMENTS = frozenset({"date", "datetime", "timestamp"})
_LISTS = frozenset({"enum", "set"})
_FRACTIONS = frozenset({"decimal", "float", "double"})
_STRINGS = frozenset({*STRING_NAMES, *BINARY_NAMES})
_FAMILIES = (INTEGER_NAMES, ("float", "double"), STRING_NAMES, BINARY_NAMES)
_UNCAST = frozenset({*TEMPORAL_NAMES, *_LISTS, "bit", "json"})
OURS = "ours: a shard's rows are not read again for a MODIFY that every server carries out alike"
"""The source of a rule that is ours, not TiDB's."""
_TO_WIDER = frozenset({("utf8mb3", "utf8mb4"), ("latin1", "utf8mb4")})
_SAME_ORDER = (
    frozenset({"utf8mb4_general_ci", "utf8mb3_general_ci"}),
    frozenset({"utf8mb4_bin", "utf8mb3_bin", "latin1_bin"}),
    frozenset({"utf8mb4_unicode_ci", "utf8mb3_unicode_ci"}),
)


@dataclass(frozen=True, slots=True)
class Change:
    """A column's type before and after; ``in_key``: whether the primary key names it."""

    before: ColumnType
    after: ColumnType
    in_key: bool = False


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule about changes that are refused.

    Attributes:
        holds: Whether the rule applies to a change.
        reason: The end of the sentence "TiDB does not change c from x to y: …".
        source: The function or error of TiDB, or ``OURS``.
    """

    holds: Callable[[Change], bool]
    reason: str
    source: str


UNCHANGED_KEY = Rule(
    lambda c: c.in_key,
    "TiDB drops no primary key by which a table's rows are stored (clustered), as most are",
    "CheckIsDropPrimaryKey, error 8200",
)
UNCHANGED_COMPUTED = Rule(
    lambda c: True,
    "TiDB does not turn a computed column into an ordinary one, or back",
    "checkModifyGeneratedColumn, error 3106",
)
DEFAULTS = Rule(
    lambda c: True,
    "TiDB takes no such default",
    "getDefaultValue, error 1101 for TEXT, BLOB and JSON; its parser, error 1064 for expressions",
)
STORED = Rule(
    lambda c: True,
    "TiDB adds no STORED column to a table, it computes the value when read",
    "CreateNewColumn, error 3106",
)
"""These four rules do not depend on types. The first two refuse a change; for the other two the
column is replaced and gets a note."""


def refusal(change: Change) -> str:
    """Why TiDB refuses a change of type: the reason of the first rule that applies; "" if none."""
    return next((rule.reason for rule in RULES if rule.holds(change)), "")


def collation_of(kind: ColumnType) -> str:
    """The collation that a column has in TiDB; ``binary`` for a type without one.

    The sink's sessions set ``default_collation_for_utf8mb4``, so that utf8mb4's default is always
    utf8mb4_bin.
    """
    if not kind.charset or kind.charset == "binary":
        return "binary"
    if kind.collation:
        return kind.collation
    return "gbk_chinese_ci" if kind.charset == "gbk" else f"{kind.charset}_bin"


def needs_no_index(before: ColumnType, after: ColumnType) -> bool:
    """Whether a change is refused as long as a secondary index names the column.

    When TiDB rewrites the values, it rewrites the index too (measured), so the change is accepted.

    Source: ``checkModifyCharsetAndCollation``, error 8200.
    """
    same = _is_same_order(collation_of(before), collation_of(after))
    return not same and not rewrites(before, after)


def rewrites(before: ColumnType, after: ColumnType) -> bool:
    """Whether TiDB rewrites the value in every row.

    Source: ``CheckModifyTypeCompatible`` and ``needReorgToChange``.
    """
    if before.name == after.name:
        if before.name in _LISTS:
            return after.elements[: len(before.elements)] != before.elements
        if before.name == "decimal":
            return (before.length, before.scale, before.unsigned) != (
                after.length, after.scale, after.unsigned,
            )  # fmt: skip
        return _needs_reorganisation(before, after)
    both_strings = before.name in _STRINGS and after.name in _STRINGS
    if both_strings or (before.is_integer and after.is_integer):
        return _needs_reorganisation(before, after)
    return True


def _needs_reorganisation(before: ColumnType, after: ColumnType) -> bool:
    if before.is_integer:
        shorter = INTEGER_NAMES.index(after.name) < INTEGER_NAMES.index(before.name)
        return shorter or before.unsigned != after.unsigned
    if {_storage(before), _storage(after)} == {"char", "varchar"}:
        return True
    old, new = _length(before), _length(after)
    if new < old or (before.name == after.name == "binary" and new != old):
        return True
    return after.fsp < before.fsp or before.unsigned != after.unsigned


def _storage(kind: ColumnType) -> str:
    """``char`` or ``varchar``, also for binary strings; "" for all other types."""
    return {"binary": "char", "varbinary": "varchar"}.get(
        kind.name, kind.name if kind.name in ("char", "varchar") else ""
    )


def _length(kind: ColumnType) -> int:
    return VALUE_BYTES.get(kind.name, kind.length or 0)


def _is_same_order(one: str, other: str) -> bool:
    return one == other or any({one, other} <= same for same in _SAME_ORDER)


def _charset(kind: ColumnType) -> str:
    return kind.charset or "binary"


def _charset_stays(change: Change) -> bool:
    """Whether TiDB refuses the change of the character set or of its collation."""
    before, after = change.before, change.after
    old, new = _charset(before), _charset(after)
    if old == new:
        changes = collation_of(before) != collation_of(after)
        is_free = old in ("utf8mb3", "utf8mb4") or not changes
    else:
        is_free = (old, new) in _TO_WIDER
    if is_free:
        return False
    return "gbk" in (old, new) or not rewrites(before, after)


RULES: tuple[Rule, ...] = (
    Rule(
        lambda c: (
            c.after.name == "bit"
            and c.before.name in {*_MOMENTS, *_STRINGS, "time", "year", "json"}
        ),
        "it converts no dates, times, strings or JSON to BIT",
        "checkTypeChangeSupported, first case",
    ),
    Rule(
        lambda c: (
            c.after.name in _LISTS
            and c.before.name in {*_MOMENTS, *_FRACTIONS, "time", "year", "json", "bit"}
        ),
        "it converts no dates, times, fractions, JSON or BIT to ENUM or SET",
        "checkTypeChangeSupported, second case",
    ),
    Rule(
        lambda c: c.before.name in {*_LISTS, *_FRACTIONS, "bit"} and c.after.name in _MOMENTS,
        "it converts no ENUM, SET, BIT or fractions to dates",
        "checkTypeChangeSupported, third case",
    ),
    Rule(
        lambda c: c.before.name in {*_LISTS, "bit"} and c.after.name == "time",
        "it converts no ENUM, SET or BIT to TIME",
        "checkTypeChangeSupported, fifth case",
    ),
    Rule(
        lambda c: c.in_key and rewrites(c.before, c.after),
        "the primary key's values would have to be written anew",
        "checkModifyTypes: this column has primary key flag",
    ),
    Rule(
        lambda c: c.in_key and needs_no_index(c.before, c.after),
        "the primary key would have another order",
        "checkModifyCharsetAndCollation: when index is defined on it",
    ),
    Rule(
        lambda c: (
            c.before.name != c.after.name
            and not any(c.before.name in f and c.after.name in f for f in _FAMILIES)
            and (c.before.name in _UNCAST or c.after.name in _UNCAST)
        ),
        "whether it converts every value as MySQL does was not measured",
        OURS,
    ),
    Rule(
        _charset_stays,
        "a character set only changes from utf8 or latin1 to utf8mb4, and a collation only within"
        " utf8 and utf8mb4",
        "checkModifyCharsetAndCollation",
    ),
)
"""The rules, in the order in which they are tried."""
