"""One join as a dialect fits it to the target: what becomes of each column, index and check. Pure.

``target_table`` asks for the parts in their order and makes the table of them.
"""

from __future__ import annotations

import zlib
from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeAlias, cast

from shardmerge.schemas.ddl.expressions import column_names
from shardmerge.schemas.ddl.session_zone import depends_on_zone
from shardmerge.schemas.ddl.text_order import compares_texts
from shardmerge.schemas.lattice.join import as_ordinary
from shardmerge.schemas.lattice.joined import JoinedColumn, JoinedTable
from shardmerge.schemas.lattice.key_join import with_known_names
from shardmerge.schemas.model.frozen import replace
from shardmerge.schemas.model.mysql_facts import MAX_NAME_CHARACTERS, NULL_DEFAULT
from shardmerge.schemas.model.shard_columns import ShardColumn
from shardmerge.schemas.model.tables import Check, Column, Index, IndexKind, TableSchema
from shardmerge.schemas.model.types import ColumnType
from shardmerge.schemas.target.dialects.dialect import CannotRender, Dialect, LeftOut, Place

_ZONE = "it depends on the session's time zone, and the sink's is UTC"
_ORDER = "it compares texts in another collation than on a shard"
_MOST_COLUMNS = 4_096
"""Columns whose fitted forms are remembered."""
_MAX_TABLE_CHARACTERS = MAX_NAME_CHARACTERS - len("_chk_4294967295")


class Fitting:
    """One run of ``target_schema``: asks the dialect, and collects its notes and refusals."""

    def __init__(
        self,
        joined: JoinedTable,
        before: Mapping[str, ShardColumn],
        dialect: Dialect,
        comments: Mapping[str, str],
        collations: frozenset[str],
    ) -> None:
        self._joined, self._before, self._dialect = joined, before, dialect
        self._comments, self._collations, self._is_new = comments, collations, not before
        self._primary = {column_id for column_id, _ in joined.key}
        self._unique = unique_names(joined.indexes)
        self.were_unique: set[str] = set()
        self._moments: list[str] | None = None
        self._reordered: set[str] = set()
        self.notes: list[tuple[str, str]] = []
        self.refusal: CannotRender | None = None

    def computed(self, joined: JoinedColumn) -> JoinedColumn:
        """The column as the target can compute it: an ordinary one if it would get other values.

        If the target has it as a VIRTUAL column, it stays one: there are no values to keep.
        """
        generated = joined.column.generated or joined.formula
        if generated is None:
            return joined
        before = self._before.get(joined.id)
        had = before.column.generated if before is not None else None
        whole = replace(joined.column, generated=generated)
        if not self._dialect.computes:
            return replace(joined, column=whole, derived=False)
        subject = f"column:{joined.column.name.lower()}"
        if joined.formula is not None:
            why = self._why_unsteady(generated.expression, joined)
            if had is None or had.stored:
                self.notes.append((subject, f"its values come with the rows: {why}"))
                return joined
        elif why := self._why_otherwise(generated.expression, joined.column.type):
            if had is None:
                self.notes.append((subject, f"its values come with the rows: {why}"))
                return as_ordinary(joined)
        else:
            return joined
        self.notes.append((subject, f"the target may compute other values than the shards: {why}"))
        return replace(joined, column=whole, derived=False)

    def reorders(
        self, columns: Mapping[str, JoinedColumn], placed: Mapping[str, ShardColumn]
    ) -> bool:
        """Whether the target has texts in another collation than shards; notes in which columns."""
        self._reordered = {
            found.column.name.lower()
            for i, found in placed.items()
            if self._dialect.reorders(columns[i].column.type, found.column.type, self._collations)
        }
        return bool(self._reordered)

    def computed_otherwise(self, joined: JoinedColumn) -> JoinedColumn:
        """The column as an ordinary one if it would compare texts in another collation.

        If the target computes it already, it stays as it is.
        """
        generated, subject = joined.column.generated, f"column:{joined.column.name.lower()}"
        if generated is None or not compares_texts(generated.expression, self._reordered):
            return joined
        if joined.id in self._before and self._before[joined.id].column.generated is not None:
            text = f"the target may compute other values than the shards: {_ORDER}"
            self.notes.append((subject, text))
            return joined
        self.notes.append((subject, f"its values come with the rows: {_ORDER}"))
        return as_ordinary(joined)

    def _why_unsteady(self, expression: str, joined: JoinedColumn | None = None) -> str:
        names = {name.lower() for name in column_names(expression)}
        if joined is not None:
            names.add(joined.column.name.lower())
        found = [
            c.column.name
            for c in self._joined.columns
            if c.converted and c.column.name.lower() in names
        ]
        return f"on a shard {', '.join(found)} has another type, of which it gets other values"

    def _why_otherwise(self, expression: str, kind: ColumnType | None = None) -> str:
        """Why the target computes something else than a shard; "" when it does not."""
        if self._depends_on_zone(expression, kind):
            return _ZONE
        return self._dialect.stored_otherwise(expression)

    def _depends_on_zone(self, expression: str, kind: ColumnType | None = None) -> bool:
        if self._moments is None:
            columns = (c.column for c in self._joined.columns)
            self._moments = [c.name for c in columns if c.type.name == "timestamp"]
        is_moment = kind is not None and kind.name == "timestamp"
        return depends_on_zone(expression, self._moments, is_moment=is_moment)

    def placed(self, joined: JoinedColumn) -> ShardColumn:
        """The column as the target has it; the same object as before when nothing changed."""
        before = self._before.get(joined.id)
        column = self._column(joined, before.column if before else None)
        if before is not None and column == before.column:
            return before
        return ShardColumn(joined.id, column)

    def _column(self, joined: JoinedColumn, previous: Column | None) -> Column:
        column = joined.column
        kept = previous.comment if previous else ""
        comment = self._comments.get(joined.id, kept)
        if comment != column.comment:
            column = replace(column, comment=comment)
        unique = "unique" if column.name.lower() in self._unique else ""
        found, notes, refusal = _fitted(
            cast("Hashable", self._dialect),
            column,
            "primary" if joined.id in self._primary else unique,
            previous,
            optional=joined.partial or joined.derived,
            zero=joined.needs_zero_value,
            is_new_table=self._is_new,
            collations=self._collations,
            was_key=previous is not None and previous.name.lower() in self.were_unique,
        )
        self.refusal = self.refusal or refusal
        self.notes += notes
        return found

    def indexes(self, primary: list[Index], schema: TableSchema) -> tuple[Index, ...]:
        """The primary key and the indexes that the target has."""
        found = []
        for part in self._joined.unsteady:
            if isinstance(part, Index):
                named = " ".join(each.expression for each in part.parts)
                self._leave_out_index(part, self._why_unsteady(named))
        for index in (*primary, *self._joined.indexes):
            fitted = self._dialect.fit_index(index, schema)
            if index.is_unique and self._reordered.intersection(
                name.lower() for part in index.parts for name in column_names(part.expression)
            ):
                fitted = LeftOut(_ORDER)
            if isinstance(fitted, LeftOut):
                self._leave_out_index(index, fitted.reason)
            else:
                found.append(fitted)
        return tuple(found)

    def _leave_out_index(self, index: Index, why: str) -> None:
        is_primary = index.kind is IndexKind.PRIMARY
        what = "the primary key" if is_primary else f"index {index.name}"
        self.notes.append((f"index:{index.name.lower()}", f"{what} is left out: {why}"))

    def checks(self, table: str, there: Sequence[Check]) -> tuple[Check, ...]:
        """The checks that the target is to have; ``there`` are those that it has."""
        found, kept = [], {check.name.lower() for check in there}
        for part in self._joined.unsteady:
            if isinstance(part, Check):
                self._leave_out(part, self._why_unsteady(part.expression))
        for check in self._joined.checks:
            if self._dialect.computes and self._depends_on_zone(check.expression):
                self._leave_out(check, _ZONE)
                continue
            if compares_texts(check.expression, self._reordered):
                self._leave_out(check, _ORDER)
                continue
            keeps = check.name.lower() in kept or not self._dialect.shares_check_names
            named = _named(check, table, keeps=keeps)
            fitted = self._dialect.fit_check(named)
            if isinstance(fitted, LeftOut):
                self._leave_out(check, fitted.reason)
            else:
                found.append(fitted)
        return with_known_names(found, there)

    def _leave_out(self, check: Check, why: str) -> None:
        text = f"check ({check.expression}) is left out: {why}"
        self.notes.append((_subject_of(check), text))


_Fitted: TypeAlias = tuple[Column, tuple[tuple[str, str], ...], CannotRender | None]
"""A column as the target has it, the notes on it, and why the target cannot have it."""


@lru_cache(maxsize=_MOST_COLUMNS)
def _fitted(
    dialect: Any,
    column: Column,
    key: str,
    previous: Column | None,
    *,
    optional: bool,
    zero: bool,
    is_new_table: bool,
    collations: frozenset[str],
    was_key: bool,
) -> _Fitted:
    """The column as the target has it. Answers are remembered.

    The shards of a target have few different columns, and most stay as they are when one changes.

    Args:
        dialect: The target's kind and version.
        column: As it is joined.
        key: See ``Place``.
        previous: Likewise.
        optional: Likewise.
        zero: Whether rows leave the column out, and need a default that no shard has.
        is_new_table: See ``Place``.
        collations: Likewise.
        was_key: Likewise.
    """
    if zero:
        # The default shows the dialect that rows leave the column out.
        column = replace(column, default=dialect.zero_value(column.type))
    elif column.nullable and column.default is None and column.generated is None:
        column = replace(column, default=NULL_DEFAULT)
    place = Place(key, optional, previous, is_new_table, collations, was_key)
    fitted = dialect.fit_column(column, place)
    if isinstance(fitted, CannotRender):
        return column, (), fitted
    found, notes = fitted.column, fitted.notes
    if zero and found.is_required:
        found = replace(found, nullable=True, default=NULL_DEFAULT)
        notes += ("the target takes no default for it, rows without it get NULL",)
    return found, tuple((f"column:{column.name.lower()}", text) for text in notes), None


def unique_names(indexes: Iterable[Index]) -> set[str]:
    """The columns, in lower case, of primary keys and unique indexes."""
    return {name.lower() for index in indexes if index.is_unique for name in index.columns}


def _named(check: Check, table: str, *, keeps: bool) -> Check:
    own = check.name.lower()
    if own and (keeps or own not in map(str.lower, column_names(check.expression))):
        return check
    # In the form of MySQL's made-up names, so that it counts as made up when it is read back.
    number = zlib.crc32(f"{own} {check.expression}".strip().encode())
    return replace(check, name=f"{table[:_MAX_TABLE_CHARACTERS] or 't'}_chk_{number}")


def _subject_of(check: Check) -> str:
    return f"check:{(check.name or check.expression).lower()}"
