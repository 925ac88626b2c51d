"""What is compared of a target and its shards, and what is left out. Pure.

All shards together are compared with the target, one range of keys after another. So a row that no
shard has is found without knowing which shard it came from, and a target needs no origin columns.

A column is compared in the rows of the shards that have it. In the rows of other shards the target
has the value of a default, or what the shard had before it dropped the column. There no shard has a
value to compare it with, so the column is not judged there, and the report says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from shardmerge.schemas.model.names import ShardId, TargetTable, quote_identifier
from shardmerge.schemas.model.origin import OriginPart, origin_part
from shardmerge.schemas.model.policies import RenamePolicy, RowOperation, RowsPolicy
from shardmerge.schemas.model.shard_columns import ShardColumn
from shardmerge.schemas.model.tables import Column
from shardmerge.schemas.model.types import ColumnType
from shardmerge.spark_sink.loading.chunk_queries import table_name
from shardmerge.spark_sink.loading.row_filters import row_filter, whole_filter

from .compared_facts import ShardFacts, TargetFacts, column_of, origin_value
from .lake_texts import LakeKeyColumn, is_lake_key, lake_text
from .row_keys import RowKeyColumn, orders_alike, orders_by_bytes
from .value_texts import ValueText, default_value, shard_value, value_text


@dataclass(frozen=True, slots=True)
class Side:
    """One table of the comparison: a shard's, or the target's.

    Attributes:
        shard: None for the target.
        table: Its quoted, qualified name.
        key: The columns by which its rows are found; empty when rows are counted.
        hashed: The values of a row's digest, in the order of ``ComparedTable.hashed``.
        texts: A value for each of ``ComparedTable.columns``; None where it is not judged.
        loose: Those of ``texts`` that are no part of the digest. They are read for each row.
        condition: SQL condition of the rows that are compared; "" for all.
        where: The route's condition, if SQL cannot express all of it; otherwise "".
        columns: The table's columns; for the target only those that are compared.
        values: For a shard: SQL of the value behind each of ``texts``; "" where it is not judged.
        lake: Whether it is an Iceberg table, which Spark reads.
    """

    shard: ShardId | None
    table: str
    key: tuple[RowKeyColumn, ...]
    hashed: tuple[ValueText, ...]
    texts: tuple[ValueText | None, ...]
    condition: str = ""
    where: str = ""
    columns: tuple[Column, ...] = ()
    values: tuple[str, ...] = ()
    loose: tuple[ValueText | None, ...] = ()
    lake: bool = False

    @property
    def range_key(self) -> tuple[RowKeyColumn, ...]:
        """The key's columns by which ranges are cut: all but origin columns."""
        return tuple(column for column in self.key if column.in_ranges)


@dataclass(frozen=True, slots=True)
class ComparedTable:
    """What is compared of a target.

    Attributes:
        columns: Names of the target's columns that are compared.
        hashed: Names of the columns that are part of a row's digest.
        side: The target's table.
        shards: The shards that are compared.
        only_rows: Why digests of whole ranges cannot be compared; "" when they can.
        judges_missing: Whether a row that only a shard has is a difference.
        judges_extra: Whether a row that only the target has is a difference.
        judges_values: Whether a row with other values is a difference.
        left_out: What is not compared, as sentences.
        other_keys: See ``TargetFacts``.
    """

    target: TargetTable
    columns: tuple[str, ...]
    hashed: tuple[str, ...]
    side: Side
    shards: tuple[Side, ...]
    only_rows: str = ""
    judges_missing: bool = True
    judges_extra: bool = True
    judges_values: bool = True
    left_out: tuple[str, ...] = ()
    other_keys: bool = False

    @property
    def key(self) -> tuple[str, ...]:
        """Names of the target's columns of the key; empty when rows are counted."""
        return tuple(column.name for column in self.side.key)


def compared_table(
    facts: TargetFacts, shards: Sequence[ShardFacts], only: Sequence[ShardId] = ()
) -> ComparedTable:
    """What is compared of a target.

    Args:
        facts: Of the target.
        shards: The target's live shards.
        only: The shards to compare; empty for all of them.
    """
    return _Comparison(facts, shards, only).table()


class _Comparison:
    def __init__(
        self, facts: TargetFacts, shards: Sequence[ShardFacts], only: Sequence[ShardId]
    ) -> None:
        self.facts = facts
        self.notes = [f"{s.shard} is not compared: {s.obstacle}" for s in shards if s.obstacle]
        self.all = shards
        self.shards = [s for s in shards if not s.obstacle and (not only or s.shard in only)]
        self.only_rows = ""
        self.lake = bool(facts.catalog)

    def table(self) -> ComparedTable:
        facts = self.facts
        key = self._key()
        columns = [c for c in facts.columns if self._is_compared(c)]
        hashed = [c for c in columns if self._is_hashed(c)]
        if not key and len(hashed) < len(columns):
            names = _list([c.column.name for c in columns if c not in hashed])
            self.notes.append(f"not compared, because rows are counted: {names}")
            columns = hashed
        loose = [c for c in columns if c not in hashed]
        extra, condition = self._extra()
        target = Side(
            None,
            facts.sql,
            tuple(self._key_column(c, None) for c in key),
            tuple(t for c in hashed if (t := self._target_text(c)) is not None),
            tuple(map(self._target_text, columns)),
            condition,
            columns=tuple(c.column for c in columns),
            loose=tuple(map(self._target_text, loose)),
            lake=self.lake,
        )
        sides = tuple(self._side(s, key, columns, hashed) for s in self.shards)
        ignored = {each for s in self.shards for each in s.rule.ignore}
        for name in sorted(ignored):
            self.notes.append(f"a route ignores {name}: what {name} can change is not judged")
        return ComparedTable(
            facts.target,
            tuple(c.column.name for c in columns),
            tuple(c.column.name for c in hashed),
            target,
            sides,
            self.only_rows,
            judges_missing=RowOperation.INSERT not in ignored,
            judges_extra=extra,
            judges_values=RowOperation.UPDATE not in ignored,
            left_out=tuple(dict.fromkeys(self.notes)),
            other_keys=facts.other_keys,
        )

    # --- columns ---------------------------------------------------------------------------

    def _key(self) -> list[ShardColumn]:
        """The target's columns of the key; empty when a shard lacks one of them."""
        by_name = {c.column.name.lower(): c for c in self.facts.columns}
        found = [by_name[name.lower()] for name in self.facts.key if name.lower() in by_name]
        if len(found) < len(self.facts.key):
            found = []
        for column in found:
            if origin_part(column.id) is OriginPart.POSITION:
                return []
            if origin_part(column.id) is None and any(
                column_of(s, column.id) is None for s in self.shards
            ):
                return []
        if all(origin_part(column.id) is not None for column in found):
            return []
        if self.lake and not all(is_lake_key(column.column.type) for column in found):
            return []
        return found

    def _is_compared(self, column: ShardColumn) -> bool:
        part, name = origin_part(column.id), column.column.name
        if part is not None:
            return part is not OriginPart.POSITION
        have = [s for s in self.shards if column_of(s, column.id) is not None]
        if not have:
            return False
        if self._target_text(column) is None or any(
            self._shard_text(s, column) is None for s in have
        ):
            kind = column.column.type.name
            self.notes.append(
                f"column {name} is not compared: values of type {kind} cannot be compared"
            )
            return False
        lacking = [str(s.shard) for s in self.shards if s not in have]
        if lacking and any(s.rule.policies.renames is RenamePolicy.COPY for s in self.shards):
            self.notes.append(
                f"column {name} is not compared: not all shards have it, so it may be a copy"
            )
            return False
        if lacking:
            self.notes.append(
                f"column {name} is not compared in rows of shards without it: {_list(lacking)}"
            )
        return True

    def _is_hashed(self, column: ShardColumn) -> bool:
        if self.lake and column.column.type.name == "json":
            self.only_rows = self.only_rows or (
                f"Spark writes the JSON texts of column {column.column.name} in another way"
            )
            return False
        if all(self._hashed_text(s, column) is not None for s in self.shards):
            return True
        self.only_rows = self.only_rows or (
            f"the value of column {column.column.name} for shards without it is not known"
        )
        return False

    def _target_text(self, column: ShardColumn) -> ValueText | None:
        kind = column.column.type
        quoted = quote_identifier(column.column.name)
        if self.lake:
            return lake_text(quoted, kind)
        return value_text(quoted, kind, kind, points=self.facts.points)

    def _shard_text(self, facts: ShardFacts, column: ShardColumn) -> ValueText | None:
        wanted = column.column.type
        own = column_of(facts, column.id)
        value = self._shard_value(facts, column)
        return self._text(value, wanted if own is None else own.type, wanted) if value else None

    def _text(self, value: str, kind: ColumnType, wanted: ColumnType) -> ValueText | None:
        return value_text(value, kind, wanted, points=self.facts.points, lake=self.lake)

    def _shard_value(self, facts: ShardFacts, column: ShardColumn) -> str:
        """SQL of the value that the target must have in a shard's rows; "" if it is not known."""
        constant = origin_value(facts, column)
        if constant is not None:
            return constant
        own = column_of(facts, column.id)
        return "" if own is None else shard_value(own, quote_identifier(own.name), lake=self.lake)

    def _hashed_text(self, facts: ShardFacts, column: ShardColumn) -> ValueText | None:
        found = self._shard_text(facts, column)
        if found is not None:
            return found
        kind = column.column.type
        value = default_value(column.column.default, kind)
        return None if value is None else self._text(value, kind, kind)

    # --- sides -----------------------------------------------------------------------------

    def _side(
        self,
        facts: ShardFacts,
        key: Sequence[ShardColumn],
        columns: Sequence[ShardColumn],
        hashed: Sequence[ShardColumn],
    ) -> Side:
        own = [c.column for c in facts.columns if origin_part(c.id) is None]
        for column in facts.columns:
            if not column.id:
                self.notes.append(f"{facts.shard}: column {column.column.name} is left out")
        kinds = {column.name.lower(): column.type for column in own}
        where = facts.rule.where
        whole = whole_filter(where, kinds)
        if whole is None:
            self.only_rows = self.only_rows or f"SQL cannot express all of the condition {where!r}"
        return Side(
            facts.shard,
            table_name(facts.shard),
            tuple(self._key_column(c, facts) for c in key),
            tuple(t for c in hashed if (t := self._hashed_text(facts, c)) is not None),
            tuple(self._shard_text(facts, c) for c in columns),
            row_filter(where, kinds) if whole is None else whole,
            where if whole is None else "",
            tuple(own),
            tuple(self._shard_value(facts, c) for c in columns),
            tuple(self._shard_text(facts, c) for c in columns if c not in hashed),
        )

    def _key_column(self, column: ShardColumn, facts: ShardFacts | None) -> RowKeyColumn:
        wanted = column.column.type
        is_origin = origin_part(column.id) is not None
        sides = [column_of(s, column.id) for s in self.shards]
        kinds = [wanted, *(side.type for side in sides if side is not None)]
        by_bytes = not (orders_by_bytes(kinds) if self.lake else orders_alike(kinds))
        name, kind, constant = column.column.name, wanted, ""
        if facts is None and self.lake:
            return LakeKeyColumn(name, kind, in_ranges=not is_origin)
        if facts is not None:
            constant = origin_value(facts, column) or ""
            if (own := column_of(facts, column.id)) is not None:
                name, kind = own.name, own.type
        return RowKeyColumn(
            name, kind, wanted=wanted, by_bytes=by_bytes, constant=constant, in_ranges=not is_origin
        )

    # --- rows that no shard has ----------------------------------------------------------------

    def _extra(self) -> tuple[bool, str]:
        """Whether rows that only the target has are judged; the condition of the compared rows."""
        facts, missing = self.facts, len(self.shards) < len(self.all)
        condition = ""
        if missing or facts.kept:
            named = [self._origin_condition(s) for s in self.shards]
            if named and all(named):
                condition = " OR ".join(f"({one})" for one in named)
            else:
                why = facts.kept or "not all shards are compared"
                self.notes.append(
                    f"rows that only the target has are not judged: {why}, and origin columns do"
                    " not tell their rows apart"
                )
                self.only_rows = self.only_rows or "the target has rows of other shards"
                return False, ""
        kept = [s for s in self.shards if s.rule.on_truncate is RowsPolicy.KEEP]
        ignored = any(
            op in s.rule.ignore
            for s in self.shards
            for op in (RowOperation.DELETE, RowOperation.TRUNCATE)
        )
        if kept or ignored:
            self.notes.append(
                "rows that only the target has are not judged: a route keeps rows that its shards"
                " lost"
            )
            return False, condition
        return True, condition

    def _origin_condition(self, facts: ShardFacts) -> str:
        origin = facts.rule.policies.origin
        return origin.condition(facts.shard) if origin.tells_shards_apart else ""


def _list(names: Sequence[str]) -> str:
    if len(names) <= 5:
        return ", ".join(names)
    return f"{', '.join(names[:5])} and {len(names) - 5} more"
