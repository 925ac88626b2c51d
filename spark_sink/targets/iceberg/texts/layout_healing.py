"""How an Iceberg table gets its decided columns back: its new layout, and steps for people. Pure.

The sink commits the layout itself, as it does for statements. So it can do more than ALTER TABLE: a
dropped column comes back with its old id. Data files that were written before the drop still have
the values under this id, so the values come back, too.

Source: Iceberg specification, "Column Projection": a reader finds a column in a file by its id.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from shardmerge.schemas.model.names import TargetTable, quote_identifier
from shardmerge.schemas.records.drift import Difference, DriftKind
from shardmerge.schemas.target.dialects.spark_types import can_widen
from shardmerge.schemas.target.drift_healing import Healing
from shardmerge.schemas.target.table_state import IDENTIFIER, ROLLBACK, ROWS, TABLE

from .decided import definition
from .history import History
from .layout import Field, Layout, spark_name

FORGET = "forget this table: the sink makes it anew when it is started again"
"""The step that heals a dropped table."""
_LOST = "the values that were written into it"


@dataclass(frozen=True, slots=True)
class Compared:
    """What a plan is made from: the decided columns, the table's columns, and its commits."""

    decided: Layout
    real: Layout
    history: History


def layout_healing(
    found: Sequence[Difference], compared: Compared, target: TargetTable
) -> tuple[tuple[Healing, ...], Layout]:
    """The steps that heal differences, and the layout after them.

    Args:
        found: The differences to heal.
        compared: The table with these differences.
        target: The table's name.
    """
    steps: list[Healing] = []
    layout = compared.real
    for each in found:
        kind, _, name = each.subject.partition(":")
        if kind == "column":
            plan = _Column(each.subject, name, compared, target)
            steps += plan.steps(layout)
            layout = plan.after(layout)
        elif kind == IDENTIFIER:
            steps.append(Healing(each.subject, _identifiers(compared, target)))
            layout = replace(layout, identifiers=compared.decided.identifiers)
        else:
            steps.append(_other(each, target))
    return tuple(steps), layout


def plain_steps(found: Sequence[Difference], target: TargetTable) -> tuple[Healing, ...]:
    """The steps that heal the differences of a table without a layout: it is missing or unread."""
    return tuple(_other(each, target) for each in found)


def _other(each: Difference, target: TargetTable) -> Healing:
    """A difference that is not about columns."""
    if each.kind is DriftKind.UNREAD:
        return Healing(each.subject, "", reason=f"{each.found}; remove that by hand")
    if each.subject == TABLE:
        loses = "all rows, unless you restore the table first: its shards are read again"
        return Healing(each.subject, FORGET, loses)
    assert each.subject in (ROWS, ROLLBACK)
    reason = (
        f"compare the rows: shardmerge validate {target} --pipeline FILE; when they are right, "
        f"adopt what was done: shardmerge drift adopt {target} --only {each.subject} "
        "--pipeline FILE"
    )
    return Healing(each.subject, "", reason=reason)


def _identifiers(compared: Compared, target: TargetTable) -> str:
    decided, real = compared.decided, compared.real
    wanted = [f.name for f in decided.fields if f.id in decided.identifiers]
    there = [f.name for f in real.fields if f.id in real.identifiers]
    verb, names = ("SET", wanted) if wanted else ("DROP", there)
    columns = ", ".join(map(quote_identifier, names))
    return f"ALTER TABLE {target.sql} {verb} IDENTIFIER FIELDS {columns}"


@dataclass(frozen=True, slots=True)
class _Column:
    """One column that differs."""

    subject: str
    name: str
    compared: Compared
    target: TargetTable

    @property
    def wanted(self) -> Field | None:
        return self.compared.decided.field(self.name)

    @property
    def there(self) -> Field | None:
        return self.compared.real.field(self.name)

    @property
    def renamed(self) -> tuple[Field, str] | None:
        """A column that somebody renamed, and its decided name; None when nobody did.

        Both names are subjects of differences: the old one is missing, the new one is too many.
        """
        decided, real = self.compared.decided, self.compared.real
        by_id = {each.id: each for each in real.fields}
        for wanted in decided.fields:
            there = by_id.get(wanted.id)
            if there is None or real.field(wanted.name) or decided.field(there.name):
                continue
            if self.name in (wanted.name.lower(), there.name.lower()):
                return there, wanted.name
        return None

    def steps(self, layout: Layout) -> Iterator[Healing]:
        """The steps for people."""
        wanted, there = self.wanted, self.there
        if (renamed := self.renamed) is not None:
            before, to = renamed
            names = f"{quote_identifier(before.name)} TO {quote_identifier(to)}"
            yield self._altered(f"RENAME COLUMN {names}")
            return
        if there is not None and (wanted is None or wanted.id != there.id):
            if there.id in layout.identifiers:
                reason = f"{there.name} is an identifier field of the table: heal that first"
                yield Healing(self.subject, "", reason=reason)
                return
            yield self._altered(f"DROP COLUMN {quote_identifier(there.name)}", _LOST)
            there = None
        if wanted is None:
            return
        if there is None and (taken := self._taken(wanted)):
            yield Healing(
                self.subject, "", reason=f"rename the column {taken} back: it was adopted"
            )
            return
        if there is None:
            sql = f"restore the column {definition(self._restored(wanted))}, field {wanted.id}"
            yield Healing(self.subject, sql, self._lost(wanted))
            return
        name = quote_identifier(wanted.name)
        if there.type != wanted.type:
            if can_widen(there.type, wanted.type):
                yield self._altered(f"ALTER COLUMN {name} TYPE {spark_name(wanted.type)}")
            else:
                types = f"from {spark_name(there.type)} to {spark_name(wanted.type)}"
                reason = f"Iceberg does not change {wanted.name} {types}"
                yield Healing(self.subject, "", reason=reason)
        if there.required and not wanted.required:
            yield self._altered(f"ALTER COLUMN {name} DROP NOT NULL")
        elif wanted.required and not there.required:
            reason = f"Iceberg does not make the nullable column {wanted.name} NOT NULL"
            yield Healing(self.subject, "", reason=reason)

    def after(self, layout: Layout) -> Layout:
        """The layout after the steps."""
        wanted, there = self.wanted, self.there
        fields = list(layout.fields)
        if (renamed := self.renamed) is not None:
            before, to = renamed
            return _with(layout, [replace(f, name=to) if f.id == before.id else f for f in fields])
        if there is not None and (wanted is None or wanted.id != there.id):
            if there.id in layout.identifiers:
                return layout
            fields = [f for f in fields if f.id != there.id]
            there = None
        if wanted is None:
            return _with(layout, fields)
        if there is None and self._taken(wanted):
            return _with(layout, fields)
        if there is None:
            place = self._place(wanted, fields)
            return _with(layout, [*fields[:place], self._restored(wanted), *fields[place:]])
        kind = wanted.type if can_widen(there.type, wanted.type) else there.type
        healed = replace(there, type=kind, required=there.required and wanted.required)
        return _with(layout, [healed if f.id == there.id else f for f in fields])

    def _taken(self, wanted: Field) -> str:
        """The name under which the table still has the column; "" when it has not."""
        real = self.compared.real.fields
        return next((each.name for each in real if each.id == wanted.id), "")

    def _place(self, wanted: Field, fields: Sequence[Field]) -> int:
        """Where the column stood: behind the nearest column before it that is there."""
        decided = [each.id for each in self.compared.decided.fields]
        before = set(decided[: decided.index(wanted.id)])
        return max((n for n, each in enumerate(fields, 1) if each.id in before), default=0)

    def _restored(self, wanted: Field) -> Field:
        """A column that comes back. It can be NOT NULL only if every row has a value for it."""
        return replace(wanted, required=wanted.required and self._has_all(wanted))

    def _has_all(self, wanted: Field) -> bool:
        history = self.compared.history
        return history.current is None or wanted.id in (history.written or ())

    def _lost(self, wanted: Field) -> str:
        if self._has_all(wanted):
            return ""
        return "the values of rows that were written or compacted since: read the shards again"

    def _altered(self, clause: str, loses: str = "") -> Healing:
        return Healing(self.subject, f"ALTER TABLE {self.target.sql} {clause}", loses)


def _with(layout: Layout, fields: Sequence[Field]) -> Layout:
    return replace(layout, fields=tuple(fields))
