"""Writes batches of changes to a MySQL table: LOAD DATA for many rows, statements for few."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import cast

from shardmerge.schemas.model.errors import TargetError
from shardmerge.schemas.model.names import TargetTable, quote_identifier
from shardmerge.spark_sink.rows.folding.keyless import KeylessBatch
from shardmerge.spark_sink.rows.folding.row_batches import LINES_FROM_ROWS, Batch
from shardmerge.spark_sink.rows.folding.row_blocks import Block, LinesOf
from shardmerge.spark_sink.rows.values.cells import Cells
from shardmerge.spark_sink.rows.values.columns import Form
from shardmerge.spark_sink.rows.values.json_numbers import read_exactly
from shardmerge.spark_sink.targets.mysql.session import MySqlSession

LOAD_FROM_ROWS = LINES_FROM_ROWS
"""Below this a REPLACE statement is as fast as LOAD DATA, and cheaper to set up."""
_STATEMENT_CHARACTERS = 1 << 20
_STATEMENT_ROWS = 1_000
"""The range optimiser gives up on longer IN lists (range_optimizer_max_mem_size)."""


@dataclass(frozen=True, slots=True)
class TableShape:
    """The facts of a table on which the way of writing depends.

    Attributes:
        primary_key: Columns of the table's primary key, in order; empty without one.
        other_unique: Whether the table has another unique key.
    """

    columns: tuple[str, ...]
    primary_key: tuple[str, ...]
    other_unique: bool


def read_shape(session: MySqlSession, table: TargetTable) -> TableShape:
    """Read the table's columns and keys; a table that does not exist has no columns."""
    columns = session.query(
        "SELECT COLUMN_NAME FROM information_schema.COLUMNS"
        " WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s ORDER BY ORDINAL_POSITION",
        (table.database, table.table),
    )
    keys = session.query(
        "SELECT INDEX_NAME, COLUMN_NAME FROM information_schema.STATISTICS"
        " WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s AND NON_UNIQUE = 0"
        " ORDER BY INDEX_NAME, SEQ_IN_INDEX",
        (table.database, table.table),
    )
    return TableShape(
        tuple(name for (name,) in columns),
        tuple(column for index, column in keys if index == "PRIMARY"),
        any(index != "PRIMARY" for index, _ in keys),
    )


def write_batch(session: MySqlSession, table: TargetTable, shape: TableShape, batch: Batch) -> int:
    """Write a batch inside the caller's transaction.

    REPLACE deletes every row that collides in any unique key. So it is used only if the table's
    primary key is the rows' own key, and the table has no other unique key. Otherwise the batch's
    keys are deleted first and its rows inserted, so that a collision with a row of another key is
    an error.

    Returns:
        By how many rows the table grew at most. REPLACE counts a row that exists with the same
        values like a new row (measured: MySQL 5.7.22, 8.0.15 and 9.7, MariaDB 10.11).

    Raises:
        TargetError: The target refuses a row, or warns about one.
    """
    key = {k.lower() for k in batch.key}
    replace = not shape.other_unique and {k.lower() for k in shape.primary_key} == key
    grown = 0
    if batch.deletes is not None:
        grown -= _delete(session, table, batch.key, batch.deletes)
    if not replace:
        for block in batch.upserts:
            grown -= _delete(session, table, batch.key, block)
    for block in batch.upserts:
        affected = _put(session, table, block, replace=replace)
        # REPLACE counts a row that replaces another one twice.
        grown += 2 * block.rows - affected if replace else block.rows
    return grown


def write_keyless(session: MySqlSession, table: TargetTable, batch: KeylessBatch) -> None:
    """Write whole rows inside the caller's transaction; each removal searches for its row.

    Raises:
        TargetError: A row to remove is not in the target, or the target refuses one.
    """
    if batch.removed is not None:
        block, is_mariadb = batch.removed, session.is_mariadb
        columns = [
            _conditions(quote_identifier(name), form, kind, cells, is_mariadb=is_mariadb)
            for name, form, kind, cells in zip(
                block.names, block.forms, batch.types, block.cells, strict=True
            )
        ]
        for conditions, count in zip(zip(*columns, strict=True), batch.removed_counts, strict=True):
            sql = f"DELETE FROM {table.sql} WHERE {' AND '.join(conditions)} LIMIT {count}"
            if (found := session.execute(sql)) != count:
                raise TargetError(
                    f"{count} of a row are to be removed, the target has {found}",
                    statement=sql,
                    hint="have the table read again as a whole: `shardmerge command reread`",
                    code="SM-3108",
                )
    if batch.added is not None:
        _put(session, table, batch.added, replace=False)


def _put(session: MySqlSession, table: TargetTable, block: Block, *, replace: bool) -> int:
    """Write the rows of a block; returns how many rows changed, as the server counts them."""
    if block.lines or (
        session.can_load
        and (block.rows >= LOAD_FROM_ROWS or _longest(block) > _packet_characters(session))
    ):
        return session.load(
            *load_data(table, block, replace=replace, is_mariadb=session.is_mariadb)
        )
    return _write(session, table, block, replace=replace)


def _longest(block: Block) -> int:
    """A bound of a row's characters: the sum of each column's longest cell."""
    return sum(max(map(len, filter(None, cells)), default=0) for cells in block.cells)


def _packet_characters(session: MySqlSession) -> int:
    """How many characters of values fit into a statement, however large UTF-8 makes them.

    LOAD DATA has no such bound: its data is sent in pieces.
    """
    return session.max_packet // 5


def _conditions(
    name: str, form: Form, kind: str, cells: Cells, *, is_mariadb: bool
) -> Iterator[str]:
    """For each cell the SQL condition that a column has exactly this value."""
    literals = _literals(form, cells, is_mariadb=is_mariadb)
    for cell, literal in zip(cells, literals, strict=True):
        if cell is None:
            yield f"{name} IS NULL"
        elif kind == "json" and is_mariadb:
            # MariaDB's JSON is text, with or without blanks. The comparison is binary, so that no
            # collation makes 'a' equal 'A'.
            yield (
                f"CAST(CONVERT(JSON_COMPACT({name}) USING utf8mb4) AS BINARY)"
                f" = CAST(JSON_COMPACT({literal}) AS BINARY)"
            )
        elif kind == "json":
            yield f"{name} = CAST({literal} AS JSON)"
        elif form is Form.TEXT:
            # Every byte counts, whatever the column's collation treats as equal.
            yield f"CAST(CONVERT({name} USING utf8mb4) AS BINARY) = CAST({literal} AS BINARY)"
        elif form is Form.HEX:
            yield f"HEX({name}) = '{cell.upper()}'"
        elif kind == "float":
            # A FLOAT is stored in binary; its decimal text is another number.
            yield f"({name} = {literal} OR ABS({name} - {literal}) <= ABS({literal}) * 1e-6)"
        elif form is Form.BITS:
            yield f"{name} + 0 = {literal}"
        else:
            yield f"{name} = {literal}"


def _delete(session: MySqlSession, table: TargetTable, key: Sequence[str], block: Block) -> int:
    """Delete the keys of a block; returns how many rows were deleted."""
    numbers = [block.names.index(k) for k in key]
    columns = [_literals(block.forms[n], block.cells[n]) for n in numbers]
    left = ", ".join(quote_identifier(k) for k in key)
    values: Iterator[str] = iter(columns[0])
    if len(key) > 1:
        left = f"({left})"
        values = (f"({', '.join(row)})" for row in zip(*columns, strict=True))
    return sum(
        session.execute_strictly(f"DELETE FROM {table.sql} WHERE {left} IN ({part})")
        for part in _parts(values, session)
    )


def _write(session: MySqlSession, table: TargetTable, block: Block, *, replace: bool) -> int:
    is_mariadb = session.is_mariadb
    columns = [
        _literals(f, c, is_mariadb=is_mariadb)
        for f, c in zip(block.forms, block.cells, strict=True)
    ]
    names = ", ".join(quote_identifier(n) for n in block.names)
    verb = "REPLACE" if replace else "INSERT"
    return sum(
        session.execute_strictly(f"{verb} INTO {table.sql} ({names}) VALUES {part}")
        for part in _parts((f"({', '.join(row)})" for row in zip(*columns, strict=True)), session)
    )


def lines_for(session: MySqlSession) -> LinesOf:
    """The function that makes lines for LOAD DATA on this server."""
    return load_lines_as_they_are if session.is_mariadb else load_lines


def load_data(
    table: TargetTable, block: Block, *, replace: bool, is_mariadb: bool = False
) -> tuple[str, bytes]:
    """The LOAD DATA statement for the rows of a block (see ``MySqlSession.load``), and its data."""
    targets: list[str] = []
    sets: list[str] = []
    for number, (name, form) in enumerate(zip(block.names, block.forms, strict=True)):
        quoted = quote_identifier(name)
        if form is Form.HEX:
            sets.append(f"{quoted} = UNHEX(@v{number})")
        elif form is Form.BITS:
            sets.append(f"{quoted} = CAST(@v{number} AS UNSIGNED)")
        targets.append(f"@v{number}" if form in (Form.HEX, Form.BITS) else quoted)
    sql = (
        f"LOAD DATA LOCAL INFILE '{{path}}' {'REPLACE ' if replace else ''}INTO TABLE {table.sql}"
        " CHARACTER SET utf8mb4 FIELDS TERMINATED BY '\\t' ESCAPED BY '\\\\'"
        f" LINES TERMINATED BY '\\n' ({', '.join(targets)})"
        + (f" SET {', '.join(sets)}" if sets else "")
    )
    lines_of = load_lines_as_they_are if is_mariadb else load_lines
    lines = block.lines or lines_of(block.forms, block.cells, block.has_nulls)
    return sql, ("\n".join(lines) + "\n").encode()


def load_lines(
    forms: Sequence[Form], all_cells: Sequence[Cells], nullable: Sequence[bool]
) -> list[str]:
    """Rows, at least one, as MySQL's LOAD DATA reads them: a ``LinesOf``."""
    if Form.JSON in forms:
        all_cells = [
            _exact_json(c) if form is Form.JSON else c
            for form, c in zip(forms, all_cells, strict=True)
        ]
    return load_lines_as_they_are(forms, all_cells, nullable)


def load_lines_as_they_are(
    forms: Sequence[Form], all_cells: Sequence[Cells], nullable: Sequence[bool]
) -> list[str]:
    """The same for MariaDB, which stores JSON as unchanged text."""
    columns: list[Sequence[str]] = []
    for form, cells, has_nulls in zip(forms, all_cells, nullable, strict=True):
        if form in _TEXTS:
            # Texts that need escaping are rare. Four searches in all texts together are quicker
            # than one search in each.
            text = "".join(filter(None, cells))
            if "\\" in text or "\t" in text or "\n" in text or "\0" in text:
                columns.append([_NULL if c is None else c.translate(_LOAD_ESCAPES) for c in cells])
                continue
        if has_nulls:
            columns.append([_NULL if c is None else c for c in cells])
        else:
            columns.append(cast("list[str]", cells))
    return list(map("\t".join, zip(*columns, strict=True)))


_NULL = r"\N"


def _exact_json(cells: Cells) -> Cells:
    return [None if c is None else read_exactly(c) for c in cells]


def _literals(form: Form, cells: Cells, *, is_mariadb: bool = False) -> Sequence[str]:
    """Cells → SQL literals."""
    if form is Form.JSON and not is_mariadb:
        cells = _exact_json(cells)
    if form in _TEMPORAL:
        return ["NULL" if c is None else f"{form.value} '{c}'" for c in cells]
    if form in _TEXTS:
        return ["NULL" if c is None else f"'{c.translate(_SQL_ESCAPES)}'" for c in cells]
    if form is Form.HEX:
        return ["NULL" if c is None else f"X'{c}'" for c in cells]
    return ["NULL" if c is None else c for c in cells]


def _parts(values: Iterator[str], session: MySqlSession) -> Iterator[str]:
    """Join values into lists that are short enough for one statement, if each value is."""
    most = min(_STATEMENT_CHARACTERS, _packet_characters(session))
    part: list[str] = []
    size = 0
    for value in values:
        if part and (size + len(value) > most or len(part) >= _STATEMENT_ROWS):
            yield ", ".join(part)
            part, size = [], 0
        part.append(value)
        size += len(value)
    if part:
        yield ", ".join(part)


_TEXTS = (Form.TEXT, Form.JSON)
_TEMPORAL = (Form.DATE, Form.TIME, Form.DATETIME)
_LOAD_ESCAPES = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\0": "\\0"})
_SQL_ESCAPES = str.maketrans({"\\": "\\\\", "'": "\\'", "\0": "\\0"})
