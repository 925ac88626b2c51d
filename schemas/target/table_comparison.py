"""Whether two tables accept the same rows, as far as a server shows its tables. Pure.

Comments, table options and partitions do not count.
"""

from __future__ import annotations

import re

from shardmerge.schemas.lattice.join import compare_tables, join_tables
from shardmerge.schemas.lattice.joined import Conflict
from shardmerge.schemas.model.frozen import replace
from shardmerge.schemas.model.mysql_text import check_clause, column_definition, index_clause
from shardmerge.schemas.model.tables import Check, Column, TableSchema


def is_same(a: TableSchema | None, b: TableSchema | None) -> bool:
    """Whether two schemas accept the same rows; comments and options do not count."""
    if a is None or b is None:
        return a is b
    a, b = bare(a), bare(b)
    return a == b or compare_tables(a, b).is_equal


def misfit(wanted: TableSchema, there: TableSchema) -> str:
    """Why an existing table does not accept every row of the wanted one; "" if it does."""
    wanted, there = _in_utf8mb4(bare(wanted), bare(there)), bare(there)
    if compare_tables(wanted, there).is_at_most:
        return ""
    joined = join_tables([wanted, there])
    return str(joined) if isinstance(joined, Conflict) else difference(wanted, there)


def _in_utf8mb4(wanted: TableSchema, there: TableSchema) -> TableSchema:
    """The wanted table, with utf8mb4 for each column that has it in an existing table.

    A column that is part of a unique key stays as it is: under another collation two of its values
    could be equal.
    """
    keys = [index for index in (*wanted.indexes, *there.indexes) if index.is_unique]
    in_keys = {name.lower() for index in keys for name in index.columns}
    columns = []
    for column in wanted.columns:
        found = there.column(column.name)
        if (
            column.type.charset
            and found is not None
            and found.type.charset == "utf8mb4"
            and column.name.lower() not in in_keys
        ):
            kind = replace(column.type, charset="utf8mb4", collation=found.type.collation)
            columns.append(replace(column, type=kind))
        else:
            columns.append(column)
    return replace(wanted, columns=tuple(columns))


def difference(expected: TableSchema | None, real: TableSchema | None) -> str:
    """The first differences between two schemas, for people."""
    if expected is None or real is None:
        return "the table is missing" if real is None else "the table is still there"
    wanted, found = _texts(expected), _texts(real)
    parts = [
        f"{what}: expected {wanted.get(what, 'none')}, found {found.get(what, 'none')}"
        for what in {**wanted, **found}
        if wanted.get(what) != found.get(what)
    ]
    return "; ".join(parts[:3]) or "the order of columns, or the default charset"


def _texts(schema: TableSchema) -> dict[str, str]:
    """Kind and name of each part of a schema → its definition."""
    return {
        **{f"column {c.name.lower()}": column_definition(c) for c in schema.columns},
        **{f"index {i.name.lower()}": index_clause(i) for i in schema.indexes},
        **{f"check {c.name.lower()}": check_clause(c) for c in schema.checks},
        **{f"foreign key {k.name.lower()}": str(k) for k in schema.foreign_keys},
    }


def bare(schema: TableSchema) -> TableSchema:
    """The table as a server shows it, without comments, table options and partitions."""
    return replace(
        schema,
        columns=tuple(map(bare_column, schema.columns)),
        checks=tuple(map(bare_check, schema.checks)),
        comment="",
        options=(),
        partitioning="",
    )


def bare_column(column: Column) -> Column:
    """The column as a server shows it, without its comment."""
    default, generated = column.default, column.generated
    elements = tuple(map(_shown, column.type.elements))
    return replace(
        column,
        type=replace(column.type, elements=elements),
        default=default and replace(default, text=_shown(default.text)),
        generated=generated and replace(generated, expression=_shown(generated.expression)),
        comment="",
    )


def bare_check(check: Check) -> Check:
    """The check as a server shows it."""
    return replace(check, expression=_shown(check.expression))


def _shown(text: str) -> str:
    """A text as MySQL's SHOW CREATE shows it, which has no characters beyond U+FFFF.

    Source: measured, MySQL 8.0: ``DEFAULT '😀'`` is stored, but shown as ``'?'``; in a generated
    column's expression it is shown as ``'????'``.
    """
    return _BEYOND.sub("?", text)


_BEYOND = re.compile("[?\U00010000-\U0010ffff]+")
