"""From a join to the schema that the target's table must have."""

from __future__ import annotations

import zlib
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, TypeAlias, cast

from shardmerge.schemas.ddl.expressions import column_names
from shardmerge.schemas.ddl.session_zone import depends_on_zone
from shardmerge.schemas.lattice.join import as_ordinary
from shardmerge.schemas.lattice.joined import JoinedColumn, JoinedTable
from shardmerge.schemas.lattice.key_join import with_known_names
from shardmerge.schemas.model.coded_text import CodedText
from shardmerge.schemas.model.frozen import replace
from shardmerge.schemas.model.mysql_facts import MAX_NAME_CHARACTERS, NULL_DEFAULT
from shardmerge.schemas.model.shard_columns import ShardColumn
from shardmerge.schemas.model.tables import Check, Column, Index, IndexKind, IndexPart, TableSchema
from shardmerge.schemas.model.types import ColumnType
from shardmerge.schemas.records.decisions import TargetStatement
from shardmerge.schemas.target.dialects.dialect import CannotRender, Dialect, LeftOut, Place
from shardmerge.schemas.target.dialects.mysql_dialect import MYSQL_8

_ZONE = "it depends on the session's time zone, and the sink's is UTC"
_MOST_COLUMNS = 4_096
"""Columns whose fitted forms are remembered."""
_MOST_TABLES = 512
"""Tables that are remembered with the dialect's answers."""
_MAX_TABLE_CHARACTERS = MAX_NAME_CHARACTERS - len("_chk_4294967295")


@dataclass(frozen=True, slots=True)
class TargetSchema:
    """What the target's table must look like.

    Attributes:
        schema: The table; its columns are those of ``columns``.
        columns: The columns with identities, in the target's order.
        ours: Identities of columns whose default is a zero value that no shard has.
        notes: Where the target differs from the join: pairs of subject and sentence. Subjects are
            ``column:<name>``, ``index:<name>``, ``check:<name>``, in lower case; for a check
            without a name, its expression.
        refusal: Why this kind of target cannot have such a table at all; ``diff`` returns it.
        partial: Identities of columns that a shard lacks.
    """

    schema: TableSchema
    columns: tuple[ShardColumn, ...]
    ours: frozenset[str] = field(default=frozenset())
    notes: tuple[tuple[str, str], ...] = field(default=())
    refusal: CannotRender | None = None
    partial: frozenset[str] = field(default=frozenset())

    def notes_on(self, subject: str) -> tuple[str, ...]:
        """The sentences on one subject."""
        return tuple(text for name, text in self.notes if name == subject)

    @property
    def sentences(self) -> tuple[str, ...]:
        """The notes as whole sentences for people, each once."""
        return tuple(dict.fromkeys(f"{_subject_prefix(name)}{text}" for name, text in self.notes))

    def unreported_notes(
        self, told: Collection[str], statements: Sequence[TargetStatement]
    ) -> tuple[CodedText, ...]:
        """The notes that a decision must report because its statements do not contain them.

        For example, an index that is left out has no statement whose reason could mention it.

        Args:
            told: ``sentences`` of the target before the decision.
            statements: The decision's statements; their reasons contain the notes on the columns
                that they change.
        """
        reasons = {text for statement in statements for text in statement.reason.split("; ")}
        found = (
            CodedText(sentence, code=_CODES[name.partition(":")[0]])
            for name, text in self.notes
            for sentence in (f"{_subject_prefix(name)}{text}",)
            if sentence not in told and text not in reasons and sentence not in reasons
        )
        return tuple(dict.fromkeys(found))


_CODES = {"column": "SM-1701", "index": "SM-1702", "check": "SM-1703"}
"""Kind of a note's subject → the note's code."""


def target_schema(
    joined: JoinedTable,
    previous: Sequence[ShardColumn] = (),
    table: str = "",
    *,
    dialect: Dialect = MYSQL_8,
    comments: Mapping[str, str] | None = None,
    collations: frozenset[str] = frozenset(),
    there: TableSchema | None = None,
) -> TargetSchema:
    """The schema that the target's table must have for a join.

    * A NOT NULL column that a row may leave out gets its type's zero value as default. If the
      target takes no such default, the column is nullable until every shard has it.
    * The target never generates ids: AUTO_INCREMENT is dropped, rows bring their ids.
    * Foreign keys are left out: they name tables of a source, and rows of two targets do not arrive
      in a common order.
    * A check whose name the servers made up gets a name from its text. So its name does not depend
      on which shards there are. Likewise for a check that is named like one of its columns, as
      MariaDB names those of columns, where names must differ between tables.
    * A column that the target would compute otherwise than a shard does is an ordinary one, and a
      check that it would evaluate otherwise is left out: where a type differs (``unsteady``), or
      where the session's time zone matters.
    * What the target cannot have is replaced or left out, as ``dialect`` says.

    Args:
        joined: See ``lattice.join.join_all``.
        previous: The target's columns before, in the table's order. They keep their places; new
            columns follow in the order of ``joined.order``.
        table: The target table's name. It is part of made-up check names, which must be unique in
            a database.
        dialect: The target's kind and version.
        comments: Identity → comment that a shard's change set. Other columns keep their comments.
        collations: The default collations of utf8mb4 on the shards' servers; empty when they are
            not known.
        there: The target's table, whose checks keep their names, and whose keys keep their
            collations; None when there is none.
    """
    before = {c.id: c for c in previous}
    columns = {c.id: c for c in joined.columns if c.is_in_target}
    kept = [i for i in before if i in columns]
    added = [i for i in joined.order if i in columns and i not in before]
    fitting = _Fitting(joined, before, dialect, dict(comments or {}), collations)
    fitting.were_unique = _unique_names(there.indexes if there is not None else ())
    if dialect.computes or joined.unsteady:
        columns = {i: fitting.computed(c) for i, c in columns.items()}
    placed = tuple(fitting.placed(columns[i]) for i in (*kept, *added))
    schema = TableSchema(
        columns=tuple(c.column for c in placed),
        charset=joined.charset,
        collation=joined.collation,
    )
    key = tuple(IndexPart(columns[i].column.name, length=n or None) for i, n in joined.key)
    primary = Index("PRIMARY", IndexKind.PRIMARY, key)
    schema = replace(
        schema,
        indexes=fitting.indexes([primary] if key else [], schema),
        checks=fitting.checks(table, there.checks if there is not None else ()),
    )
    schema, refusal = _answered(cast("Hashable", dialect), schema, has_key=bool(key))
    fitting.refusal = fitting.refusal or refusal
    ours = frozenset(c.id for c in columns.values() if c.needs_zero_value)
    partial = frozenset(c.id for c in columns.values() if c.partial)
    return TargetSchema(schema, placed, ours, tuple(fitting.notes), fitting.refusal, partial)


@lru_cache(maxsize=_MOST_TABLES)
def _answered(
    dialect: Any, schema: TableSchema, *, has_key: bool
) -> tuple[TableSchema, CannotRender | None]:
    """One object for all equal tables, and why the dialect cannot have the table."""
    refusal: CannotRender | None = dialect.refusal(schema, has_key=has_key)
    return schema, refusal


def _subject_of(check: Check) -> str:
    return f"check:{(check.name or check.expression).lower()}"


def _subject_prefix(subject: str) -> str:
    """The beginning of a note's sentence: a column's name. Other notes contain their subject."""
    what, _, name = subject.partition(":")
    return f"{name}: " if what == "column" else ""


def changed_comments(before: Sequence[ShardColumn], after: Sequence[ShardColumn]) -> dict[str, str]:
    """Identity → comment, for the comments that a shard's change set; see ``target_schema``.

    Comments are not part of the join, so the last comment that any shard set counts.

    Args:
        before: The shard's columns before the change; empty for a new shard.
        after: Its columns after it.
    """
    known = {item.id: item.column.comment for item in before}
    return {
        item.id: item.column.comment
        for item in after
        if item.column.comment != known.get(item.id, "")
    }


class _Fitting:
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
        self._unique = _unique_names(joined.indexes)
        self.were_unique: set[str] = set()
        self._moments: list[str] | None = None
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
        elif self._depends_on_zone(generated.expression, joined.column.type):
            why = _ZONE
            if had is None:
                self.notes.append((subject, f"its values come with the rows: {why}"))
                return as_ordinary(joined)
        else:
            return joined
        self.notes.append((subject, f"the target may compute other values than the shards: {why}"))
        return replace(joined, column=whole, derived=False)

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
        for index in (*primary, *self._joined.indexes):
            fitted = self._dialect.fit_index(index, schema)
            if isinstance(fitted, LeftOut):
                what = "the primary key" if index in primary else f"index {index.name}"
                subject = f"index:{index.name.lower()}"
                self.notes.append((subject, f"{what} is left out: {fitted.reason}"))
            else:
                found.append(fitted)
        return tuple(found)

    def checks(self, table: str, there: Sequence[Check]) -> tuple[Check, ...]:
        """The checks that the target is to have; ``there`` are those that it has."""
        found, kept = [], {check.name.lower() for check in there}
        for check in self._joined.unsteady:
            self._leave_out(check, self._why_unsteady(check.expression))
        for check in self._joined.checks:
            if self._dialect.computes and self._depends_on_zone(check.expression):
                self._leave_out(check, _ZONE)
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


def _unique_names(indexes: Iterable[Index]) -> set[str]:
    """The columns, in lower case, of primary keys and unique indexes."""
    return {name.lower() for index in indexes if index.is_unique for name in index.columns}


def _named(check: Check, table: str, *, keeps: bool) -> Check:
    own = check.name.lower()
    if own and (keeps or own not in map(str.lower, column_names(check.expression))):
        return check
    # In the form of MySQL's made-up names, so that it counts as made up when it is read back.
    number = zlib.crc32(f"{own} {check.expression}".strip().encode())
    return replace(check, name=f"{table[:_MAX_TABLE_CHARACTERS] or 't'}_chk_{number}")
