"""From a join to the schema that the target's table must have."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, cast

from shardmerge.schemas.lattice.joined import JoinedTable
from shardmerge.schemas.model.coded_text import CodedText
from shardmerge.schemas.model.frozen import replace
from shardmerge.schemas.model.shard_columns import ShardColumn
from shardmerge.schemas.model.tables import Index, IndexKind, IndexPart, TableSchema
from shardmerge.schemas.records.decisions import TargetStatement
from shardmerge.schemas.target.dialects.dialect import CannotRender, Dialect
from shardmerge.schemas.target.dialects.mysql_dialect import MYSQL_8

from .fitting import Fitting, unique_names

_MOST_TABLES = 512
"""Tables that are remembered with the dialect's answers."""


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
    fitting = Fitting(joined, before, dialect, dict(comments or {}), collations)
    fitting.were_unique = unique_names(there.indexes if there is not None else ())
    if dialect.computes or joined.unsteady:
        columns = {i: fitting.computed(c) for i, c in columns.items()}
    there_then = {i: fitting.placed(columns[i]) for i in (*kept, *added)}
    if dialect.computes and fitting.reorders(columns, there_then):
        for i, column in columns.items():
            if (other := fitting.computed_otherwise(column)) is not column:
                columns[i], there_then[i] = other, fitting.placed(other)
    placed = tuple(there_then.values())
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
