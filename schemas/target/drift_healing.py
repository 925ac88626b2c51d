"""The statements that bring a target's table back to what was decided. Pure.

Their order makes each of them legal. First, indexes and checks that differ are dropped. Then
columns change. Then the decided indexes and checks are added. The dialect writes the SQL, as for
decisions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from shardmerge.schemas.model.actions import Action
from shardmerge.schemas.model.names import TargetTable, quote_identifier
from shardmerge.schemas.model.tables import Check, Column, Index, IndexKind
from shardmerge.schemas.records.drift import Difference, DriftKind

from .dialects.dialect import CannotRender, Dialect, Rendering
from .table_state import CHARSET, PARTITIONING, TABLE, TableState


@dataclass(frozen=True, slots=True)
class Healing:
    """One statement that heals a difference, or a part of it.

    Attributes:
        subject: The subject of the difference.
        sql: The statement; "" when no statement heals the difference.
        loses: A text for people: which data it destroys, or does not bring back; "" for none.
        reason: Why there is no statement; "" when there is one.
        actions: The statement as actions; empty when no class of action describes it.
    """

    subject: str
    sql: str
    loses: str = ""
    reason: str = ""
    actions: tuple[Action, ...] = ()


@dataclass(frozen=True, slots=True)
class _Part:
    each: Difference
    wanted: Column | Index | Check | None
    there: Column | Index | Check | None

    @property
    def kind(self) -> str:
        """The first part of the subject, for example ``index`` of ``index:by_name``."""
        return self.each.subject.partition(":")[0]


def healing(
    found: Sequence[Difference],
    expected: TableState,
    there: TableState,
    target: TargetTable,
    dialect: Dialect,
) -> tuple[Healing, ...]:
    """The statements that heal differences, in execution order.

    Args:
        found: The differences to heal, out of ``differences(expected, there)``.
        expected: The decided table.
        there: The table that the server shows.
        target: The table's name.
        dialect: The target's kind and version.
    """
    parts = [_Part(d, expected.value(d.subject), there.value(d.subject)) for d in found]
    schema = expected.schema
    if any(part.each.subject == TABLE and not part.each.found for part in parts):
        assert schema is not None
        loses = "all rows: every shard must be read again"
        return tuple(_healings(TABLE, dialect.create_table(target, schema), loses))
    steps = [
        Healing(each.subject, "", reason=f"{each.found}; remove that by hand")
        for each in found
        if each.kind is DriftKind.UNREAD
    ]
    for order in (_drops_apart, _drops, _columns, _primary_key, _column_drops, _additions):
        for part in parts:
            steps += order(part, expected, target, dialect)
    return tuple(steps)


def _drops_apart(
    part: _Part, expected: TableState, target: TargetTable, dialect: Dialect
) -> Iterator[Healing]:
    """Parts for which there is no class of action: triggers, foreign keys, partitions."""
    subject, kind = part.each.subject, part.kind
    if kind not in ("trigger", "foreign key", PARTITIONING):
        return
    name = subject.partition(":")[2]
    if part.each.expected:
        reason = f"make it again by hand: {part.each.expected}"
        yield Healing(subject, "", reason=reason)
    elif kind == "trigger":
        full = f"{quote_identifier(target.database)}.{quote_identifier(name)}"
        yield Healing(subject, f"DROP TRIGGER {full}")
    elif kind == "foreign key":
        sql = f"ALTER TABLE {target.sql} DROP FOREIGN KEY {quote_identifier(name)}"
        yield Healing(subject, sql)
    else:
        yield Healing(subject, f"ALTER TABLE {target.sql} REMOVE PARTITIONING")


def _drops(
    part: _Part, expected: TableState, target: TargetTable, dialect: Dialect
) -> Iterator[Healing]:
    """Drop checks and secondary indexes that differ, and computed columns that nobody decided."""
    subject = part.each.subject
    match part.there:
        case Check():
            yield from _healings(subject, dialect.drop_check(target, part.there))
        case Index() if part.there.kind is not IndexKind.PRIMARY:
            yield from _healings(subject, dialect.drop_index(target, part.there))
        case Column() if part.wanted is None and part.there.generated is not None:
            yield from _healings(subject, dialect.drop_column(target, part.there))
        case _:
            return


def _columns(
    part: _Part, expected: TableState, target: TargetTable, dialect: Dialect
) -> Iterator[Healing]:
    subject, wanted, there = part.each.subject, part.wanted, part.there
    if isinstance(wanted, Column) and there is None:
        loses = "the values of existing rows: the shards must be read again"
        if wanted.generated is None:
            yield from _healings(subject, dialect.add_column(target, wanted), loses)
    elif isinstance(wanted, Column) and isinstance(there, Column):
        key = expected.schema.primary_key if expected.schema else None
        in_key = key is not None and wanted.name.lower() in map(str.lower, key.columns)
        yield from _healings(subject, dialect.change_column(target, there, wanted, in_key=in_key))


def _primary_key(
    part: _Part, expected: TableState, target: TargetTable, dialect: Dialect
) -> Iterator[Healing]:
    if part.each.subject == "index:primary":
        before = part.there if isinstance(part.there, Index) else None
        after = part.wanted if isinstance(part.wanted, Index) else None
        rendering = dialect.change_primary_key(target, before, after)
        yield from _healings(part.each.subject, rendering)


def _column_drops(
    part: _Part, expected: TableState, target: TargetTable, dialect: Dialect
) -> Iterator[Healing]:
    there = part.there
    if isinstance(there, Column) and part.wanted is None and there.generated is None:
        loses = "the values that were written into it"
        yield from _healings(part.each.subject, dialect.drop_column(target, there), loses)


def _additions(
    part: _Part, expected: TableState, target: TargetTable, dialect: Dialect
) -> Iterator[Healing]:
    subject, wanted, there = part.each.subject, part.wanted, part.there
    match wanted:
        case Column() if there is None and wanted.generated is not None:
            yield from _healings(subject, dialect.add_column(target, wanted))
        case Check():
            yield from _healings(subject, dialect.add_check(target, wanted))
        case Index() if wanted.kind is not IndexKind.PRIMARY:
            yield from _healings(subject, dialect.add_index(target, wanted))
        case _:
            pass
    if part.each.subject == CHARSET and expected.schema is not None:
        schema = expected.schema
        yield from _healings(
            subject, dialect.set_default_charset(target, schema.charset, schema.collation)
        )


def _healings(subject: str, rendering: Rendering, loses: str = "") -> Iterator[Healing]:
    if isinstance(rendering, CannotRender):
        yield Healing(subject, "", reason=rendering.reason)
        return
    if not rendering:
        yield Healing(subject, "", reason="the server has no statement for it")
    for each in rendering:
        yield Healing(subject, each.sql, loses, actions=each.actions)
