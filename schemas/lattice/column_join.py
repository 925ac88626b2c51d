"""The join of one column over the shards that have it.

Definitions that can conflict are sorted by their text first. So the reported conflict does not
depend on the order of the shards.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from decimal import Context, Decimal, InvalidOperation
from itertools import combinations

from shardmerge.schemas.ddl.expressions import rename_columns
from shardmerge.schemas.model.frozen import replace
from shardmerge.schemas.model.mysql_facts import zero_value
from shardmerge.schemas.model.mysql_text import column_type, default_value
from shardmerge.schemas.model.policies import TypePolicy
from shardmerge.schemas.model.tables import Column, Default, DefaultKind, Generated
from shardmerge.schemas.model.types import TEXT_NAMES, ColumnType

from .joined import Conflict, JoinedColumn
from .type_join import WIDE, TypeRules, joined_type, reads_alike

_NOW = re.compile(r"CURRENT_TIMESTAMP(?:\([0-6]\))?\Z")
_PLAIN_TEXT = re.compile(r"(?:_\w+)?'(?P<text>[^'\\]*)'")
_DIGITS = Context(prec=400)
"""Has more digits than any decimal or double has before and after the point."""
_CLOCKS = ("time", "datetime", "timestamp")
_WIDEST_CHARSET = "utf8mb4"


def in_target_names(column: Column, names: Mapping[str, str]) -> Column:
    """The column with its expressions in the target's column names.

    Args:
        column: A shard's column.
        names: The shard's column names in lower case → the target's.
    """
    generated, default = column.generated, column.default
    if generated is not None:
        text = rename_columns(generated.expression, names)
        return replace(column, generated=Generated(text, generated.stored))
    if default is not None and default.kind is DefaultKind.EXPRESSION:
        text = rename_columns(default.text, names)
        return replace(column, default=Default(DefaultKind.EXPRESSION, text))
    return column


def join_columns(
    column_id: str,
    name: str,
    columns: Sequence[Column],
    *,
    partial: bool,
    types: TypeRules = WIDE,
) -> JoinedColumn | Conflict:
    """Join one column's definitions.

    Args:
        column_id: The identity.
        name: The column's name in the target.
        columns: One definition per shard that has the column, at least one. Their expressions use
            the target's column names; their order does not matter.
        partial: Whether some shard lacks the column.
        types: Which types can be joined.
    """
    found = list(dict.fromkeys(columns))
    kind = _join_all_types(name, (c.type for c in found), types)
    if isinstance(kind, Conflict):
        return kind
    generated = _join_generated(name, found)
    if isinstance(generated, Conflict):
        return generated
    ordinary = [c for c in found if c.generated is None]
    default = _join_defaults(name, ordinary, kind)
    if isinstance(default, Conflict):
        return default
    on_update = {_with_digits(c.on_update, kind) for c in ordinary}
    joined = JoinedColumn(
        column_id,
        Column(
            name=name,
            type=kind,
            nullable=any(c.nullable for c in found),
            default=default,
            # Rows bring the value, so a target without ON UPDATE accepts the same rows.
            on_update=on_update.pop() if len(on_update) == 1 and not partial else "",
            generated=None if ordinary else generated,
        ),
        partial=partial,
        derived=generated is not None and bool(ordinary),
        converted=len(found) > 1 and not all(reads_alike(c.type, kind) for c in found),
    )
    if joined.needs_zero_value and zero_value(kind) is None:
        return Conflict(
            (f"column {name}", "default"), "absent on a shard", f"{column_type(kind)} NOT NULL",
            "rows without the column need a default, and the type has none",
            f"make {name} nullable, or add it on every shard", code="SM-1204",
        )  # fmt: skip
    return joined


def default_charset(found: Iterable[tuple[str, str]]) -> tuple[str, str]:
    """The target's default charset and collation, for columns added later.

    Different defaults are no conflict, since every column of the target names its own charset.

    Args:
        found: Default character set and collation of every shard, at least one.
    """
    different = set(found)
    return different.pop() if len(different) == 1 else (_WIDEST_CHARSET, "")


def same_value(a: Default | None, b: Default | None, kind: ColumnType) -> bool:
    """Whether two defaults of columns of this type are the same value."""
    if a is None or b is None:
        return a is b
    return _comparable(a, kind) == _comparable(b, kind)


def fitted_default(default: Default, kind: ColumnType) -> Default:
    """A default of a narrower type, written as MySQL writes it in this type."""
    if default.kind is DefaultKind.EXPRESSION:
        return Default(DefaultKind.EXPRESSION, _with_digits(default.text, kind))
    if default.kind is DefaultKind.NULL:
        return default
    text = default.text
    if kind.name == "decimal":
        try:
            text = f"{_DIGITS.quantize(Decimal(text), Decimal(1).scaleb(-(kind.scale or 0))):f}"
        except InvalidOperation:
            return default
    elif kind.name in _CLOCKS and kind.fsp:
        head, _, fraction = text.partition(".")
        text = f"{head}.{fraction.ljust(kind.fsp, '0')[: kind.fsp]}"
    return Default(DefaultKind.LITERAL, text)


def _join_all_types(
    name: str, kinds: Iterable[ColumnType], types: TypeRules
) -> ColumnType | Conflict:
    found = set(kinds)
    joined = joined_type(found, types)
    if isinstance(joined, ColumnType):
        return joined
    return _type_conflict(name, found, joined, types)


def _type_conflict(
    name: str, kinds: Iterable[ColumnType], reason: str, types: TypeRules
) -> Conflict:
    """The conflict of two types: the first pair, in order of their texts, that has no join.

    If every pair has a join, and only all types together have none, it is the first and the last.
    """
    ordered = sorted(kinds, key=lambda kind: (column_type(kind), repr(kind)))
    left, right = ordered[0], ordered[-1]
    for a, b in combinations(ordered, 2):
        if isinstance(found := joined_type((a, b), types), str):
            left, right, reason = a, b, found
            break
    conflict = _conflict(name, "type", column_type(left), column_type(right), reason)
    wide = joined_type(ordered, replace(types, policy=TypePolicy.WIDE))
    if isinstance(wide, str):
        return conflict
    return replace(
        conflict,
        reason=f"{reason}, so the published order (types = 'published') has no type for both",
        resolve=f"{conflict.resolve}, or let the target have {column_type(wide)}, which holds the "
        f"values of all: `shardmerge command set-policy types={TypePolicy.WIDE}`",
    )


def _join_generated(name: str, columns: Sequence[Column]) -> Generated | Conflict | None:
    """The expression with which shards compute the column; None when none computes it."""
    found = sorted({c.generated for c in columns if c.generated}, key=_generated_text)
    if len(found) > 1:
        left, right = _generated_text(found[0]), _generated_text(found[-1])
        return _conflict(name, "expression", left, right, "they compute or keep other values")
    return found[0] if found else None


def _generated_text(generated: Generated) -> str:
    return f"({generated.expression}) {'STORED' if generated.stored else 'VIRTUAL'}"


def _join_defaults(
    name: str, columns: Sequence[Column], kind: ColumnType
) -> Default | Conflict | None:
    found: dict[tuple[str, str], Default] = {}
    for column in columns:
        if column.default is not None and column.default.kind is not DefaultKind.NULL:
            default = fitted_default(column.default, kind)
            key = _comparable(default, kind)
            found[key] = min(found.get(key, default), default, key=lambda d: d.text)
    if len(found) > 1:
        texts = sorted(f"DEFAULT {default_value(d, kind)}" for d in found.values())
        return _conflict(name, "default", texts[0], texts[-1], "a row without a value would differ")
    return next(iter(found.values()), None)


def _comparable(default: Default, kind: ColumnType) -> tuple[str, str]:
    """The form in which two defaults are compared: 1.0 and 1.0000 are the same decimal."""
    text = default.text
    if default.kind is DefaultKind.LITERAL:
        if kind.name in ("decimal", "float", "double"):
            try:
                text = f"{_DIGITS.normalize(Decimal(text)):f}"
            except InvalidOperation:
                text = default.text
        elif kind.name in _CLOCKS and "." in text:
            text = text.rstrip("0").rstrip(".")
    elif kind.name in TEXT_NAMES and (found := _PLAIN_TEXT.fullmatch(text)):
        # MySQL takes a default of TEXT only as an expression, so 'x' is an expression there.
        return DefaultKind.LITERAL.value, found["text"]
    return default.kind.value, text


def _with_digits(expression: str, kind: ColumnType) -> str:
    """CURRENT_TIMESTAMP with the column's fractional digits: MySQL requires that they agree."""
    if kind.name in _CLOCKS and _NOW.match(expression):
        return f"CURRENT_TIMESTAMP({kind.fsp})" if kind.fsp else "CURRENT_TIMESTAMP"
    return expression


_CODES = {"type": "SM-1201", "expression": "SM-1202", "default": "SM-1203"}
"""Part of a column's definition → the code of a conflict about it."""


def _conflict(name: str, part: str, left: str, right: str, reason: str) -> Conflict:
    return Conflict(
        (f"column {name}", part), left, right, reason,
        f"make the {part} of {name} agree on all shards, or drop {name} where it is wrong",
        _CODES[part],
    )  # fmt: skip
