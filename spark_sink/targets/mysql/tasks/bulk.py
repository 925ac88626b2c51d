"""Writes batches of changes to a MySQL table: LOAD DATA for many rows, statements for few."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from shardmerge.schemas.model.errors import TargetError
from shardmerge.schemas.model.names import TargetTable, quote_identifier
from shardmerge.schemas.model.types import SPATIAL_NAMES
from shardmerge.spark_sink.rows.folding.keyless import KeylessBatch
from shardmerge.spark_sink.rows.folding.line_maker import LineMaker
from shardmerge.spark_sink.rows.folding.row_batches import LINES_FROM_ROWS, Batch
from shardmerge.spark_sink.rows.folding.row_blocks import Block
from shardmerge.spark_sink.rows.values.column_values import ColumnValues
from shardmerge.spark_sink.rows.values.forms import Form
from shardmerge.spark_sink.targets.mysql.lines.encoders import key_literals, literals
from shardmerge.spark_sink.targets.mysql.lines.load_lines import LoadLines
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
        takes_loads: See ``can_be_loaded``.
    """

    columns: tuple[str, ...]
    primary_key: tuple[str, ...]
    other_unique: bool
    takes_loads: bool = True


def can_be_loaded(columns: Iterable[tuple[str, bool]], *, is_mariadb: bool) -> bool:
    """Whether the server takes LOAD DATA of a table: MySQL may refuse a spatial NOT NULL column.

    MySQL 8.0.15 refuses every row ("doesn't have a default value"), although the statement gives
    the column a value. Both 8.0.15 and 9.7 do so if the column is generated. MySQL 5.7.22 and
    MariaDB 10.11 take the rows (all measured). MySQL's versions are not told apart here.

    Args:
        columns: Type's name and whether the column is nullable, for each of the table.
        is_mariadb: Whether the server is MariaDB.
    """
    if is_mariadb:
        return True
    return not any(name in _SPATIAL and not nullable for name, nullable in columns)


_SPATIAL = frozenset({*SPATIAL_NAMES, "geomcollection"})
"""``geomcollection`` is what MySQL 8 calls a GEOMETRYCOLLECTION."""


def read_shape(session: MySqlSession, table: TargetTable) -> TableShape:
    """Read the table's columns and keys; a table that does not exist has no columns."""
    columns = session.query(
        "SELECT COLUMN_NAME, DATA_TYPE, IS_NULLABLE FROM information_schema.COLUMNS"
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
        tuple(name for name, _, _ in columns),
        tuple(column for index, column in keys if index == "PRIMARY"),
        any(index != "PRIMARY" for index, _ in keys),
        can_be_loaded(
            ((kind.lower(), nullable == "YES") for _, kind, nullable in columns),
            is_mariadb=session.is_mariadb,
        ),
    )


def replaces(shape: TableShape, key: Sequence[str]) -> bool:
    """Whether REPLACE of a row deletes no row but the one with the same key."""
    primary = {name.lower() for name in shape.primary_key}
    return not shape.other_unique and primary == {name.lower() for name in key}


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
    return sum(
        write.grown(_executed(session, table, write))
        for write in writes_of(session, table, shape, batch)
    )


@dataclass(frozen=True, slots=True)
class Write:
    """A statement that deletes keys or puts rows.

    Attributes:
        sql: The statement; "" for a load.
        loaded: The rows of a load.
        rows: How many rows it puts; 0 when it deletes.
        replaces: Whether each row may take the place of another one.
    """

    sql: str
    loaded: Block | None = None
    rows: int = 0
    replaces: bool = False

    def grown(self, affected: int) -> int:
        """By how many rows the table grew at most.

        Args:
            affected: How many rows changed, as the server counts them.
        """
        if not self.rows:
            return -affected
        # REPLACE counts a row that replaces another one twice.
        return 2 * self.rows - affected if self.replaces else self.rows


def writes_of(
    session: MySqlSession, table: TargetTable, shape: TableShape, batch: Batch
) -> Iterator[Write]:
    """The statements of ``write_batch``, in order."""
    replace = replaces(shape, batch.key)
    if batch.deletes is not None:
        yield from _deletes(session, table, batch.key, batch.deletes)
    if not replace:
        for block in batch.upserts:
            yield from _deletes(session, table, batch.key, block)
    for block in batch.upserts:
        yield from _puts(session, table, block, replace=replace, takes_loads=shape.takes_loads)


def _executed(session: MySqlSession, table: TargetTable, write: Write) -> int:
    """How many rows a statement changed, as the server counts them."""
    if write.loaded is None:
        return session.execute_strictly(write.sql)
    replace, is_mariadb = write.replaces, session.is_mariadb
    return session.load(*load_data(table, write.loaded, replace=replace, is_mariadb=is_mariadb))


def write_keyless(
    session: MySqlSession, table: TargetTable, batch: KeylessBatch, *, takes_loads: bool = True
) -> None:
    """Write whole rows inside the caller's transaction; each removal searches for its row.

    Args:
        session: Writes.
        table: Gets the rows.
        batch: The rows.
        takes_loads: Of the table's shape.

    Raises:
        TargetError: A row to remove is not in the target, or the target refuses one.
    """
    if batch.removed is not None:
        block, is_mariadb = batch.removed, session.is_mariadb
        columns = [
            _conditions(quote_identifier(name), form, kind, values, is_mariadb=is_mariadb)
            for name, form, kind, values in zip(
                block.names, block.forms, batch.types, block.values, strict=True
            )
        ]
        for conditions, count in zip(zip(*columns, strict=True), batch.removed_counts, strict=True):
            sql = f"DELETE FROM {table.sql} WHERE {' AND '.join(conditions)} LIMIT {count}"
            if (found := session.execute(sql)) != count:
                raise TargetError(
                    f"a row is to be removed {count} times, and the target has it {found} times",
                    statement=sql,
                    hint="have the table read again as a whole: `shardmerge command reread`",
                    code="SM-3108",
                )
    if batch.added is not None:
        for write in _puts(session, table, batch.added, replace=False, takes_loads=takes_loads):
            _executed(session, table, write)


def _puts(
    session: MySqlSession, table: TargetTable, block: Block, *, replace: bool, takes_loads: bool
) -> Iterator[Write]:
    """Put the rows of a block."""
    load = Write("", block, block.rows, replace)
    may_load = takes_loads and session.can_load
    if block.lines or (may_load and (block.rows >= LOAD_FROM_ROWS or _is_long(session, block))):
        yield load
        return
    inserts: Iterable[Write] = _inserts(session, table, block, replace=replace)
    if not takes_loads and session.can_load and _is_long(session, block):
        # No statement brings a row larger than a packet. A load may, see ``can_be_loaded``.
        inserts = list(inserts)
        if any(_sent_bytes(write.sql) > session.max_packet for write in inserts):
            inserts = (load,)
    yield from inserts


def _is_long(session: MySqlSession, block: Block) -> bool:
    """Whether a row may be too long for a statement."""
    return _longest(block) > _packet_characters(session)


def _sent_bytes(sql: str) -> int:
    """The size of a statement's packet, which begins with the number of the command."""
    return 1 + len(sql.encode(errors="surrogatepass"))


def _inserts(
    session: MySqlSession, table: TargetTable, block: Block, *, replace: bool
) -> Iterator[Write]:
    """The statements that put the rows of a block."""
    is_mariadb = session.is_mariadb
    columns = [
        literals(form, values, is_mariadb=is_mariadb)
        for form, values in zip(block.forms, block.values, strict=True)
    ]
    names = ", ".join(quote_identifier(n) for n in block.names)
    verb = "REPLACE" if replace else "INSERT"
    rows = (f"({', '.join(row)})" for row in zip(*columns, strict=True))
    for part, count in _parts(rows, session):
        sql = f"{verb} INTO {table.sql} ({names}) VALUES {part}"
        yield Write(sql, None, count, replace)


def _longest(block: Block) -> int:
    """A bound of a row's characters: the sum of each column's longest value as text."""
    return sum(map(_longest_of, block.forms, block.values))


def _longest_of(form: Form, values: ColumnValues) -> int:
    if form not in _LONG:
        return _SHORT
    longest = max(map(len, filter(None, values)), default=0)
    return 2 * longest if form is Form.BYTES else longest


_LONG = frozenset({Form.TEXT, Form.ENUM, Form.JSON, Form.DECIMAL, Form.BYTES})
_SHORT = 32
"""No value of another form has a longer text."""


def _packet_characters(session: MySqlSession) -> int:
    """How many characters of values fit into a statement, however large UTF-8 makes them.

    LOAD DATA has no such bound: its data is sent in pieces.
    """
    return session.max_packet // 5


def _conditions(
    name: str, form: Form, kind: str, values: ColumnValues, *, is_mariadb: bool
) -> Iterator[str]:
    """For each value the SQL condition that a column has exactly this value."""
    for value, literal in zip(values, literals(form, values, is_mariadb=is_mariadb), strict=True):
        if value is None:
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
        elif form in (Form.TEXT, Form.ENUM):
            # Every byte counts, whatever the column's collation treats as equal.
            yield f"CAST(CONVERT({name} USING utf8mb4) AS BINARY) = CAST({literal} AS BINARY)"
        elif form is Form.BYTES:
            yield f"HEX({name}) = '{value.hex().upper()}'"
        elif kind == "float":
            # A FLOAT is stored in binary; its decimal text is another number.
            yield f"({name} = {literal} OR ABS({name} - {literal}) <= ABS({literal}) * 1e-6)"
        elif form is Form.BITS:
            yield f"{name} + 0 = {literal}"
        else:
            yield f"{name} = {literal}"


def _deletes(
    session: MySqlSession, table: TargetTable, key: Sequence[str], block: Block
) -> Iterator[Write]:
    """Delete the keys of a block."""
    numbers = [block.names.index(k) for k in key]
    columns = [key_literals(block.forms[n], block.values[n]) for n in numbers]
    left = ", ".join(quote_identifier(k) for k in key)
    values: Iterator[str] = iter(columns[0])
    if len(key) > 1:
        left = f"({left})"
        values = (f"({', '.join(row)})" for row in zip(*columns, strict=True))
    for part, _ in _parts(values, session):
        yield Write(f"DELETE FROM {table.sql} WHERE {left} IN ({part})")


def line_maker(session: MySqlSession, *, is_compiled: bool = True) -> LineMaker:
    """What makes lines for LOAD DATA on this server; by compiled code, where it is there."""
    return LoadLines(is_mariadb=session.is_mariadb, is_compiled=is_compiled)


def load_data(
    table: TargetTable, block: Block, *, replace: bool, is_mariadb: bool = False
) -> tuple[str, bytes]:
    """The LOAD DATA statement for the rows of a block (see ``MySqlSession.load``), and its data."""
    maker = LoadLines(is_mariadb=is_mariadb)
    lines = block.lines or maker.of_values(block.forms, block.values, block.has_nulls)
    sql = load_statement(table, block.names, block.forms, replace=replace)
    return sql, b"\n".join((*lines, b""))


def load_statement(
    table: TargetTable, names: Sequence[str], forms: Sequence[Form], *, replace: bool
) -> str:
    """The LOAD DATA statement for lines with these columns (see ``MySqlSession.load``)."""
    targets: list[str] = []
    sets: list[str] = []
    for number, (name, form) in enumerate(zip(names, forms, strict=True)):
        quoted = quote_identifier(name)
        if form is Form.BYTES:
            sets.append(f"{quoted} = UNHEX(@v{number})")
        elif form is Form.BITS:
            sets.append(f"{quoted} = CAST(@v{number} AS UNSIGNED)")
        targets.append(f"@v{number}" if form in (Form.BYTES, Form.BITS) else quoted)
    return (
        f"LOAD DATA LOCAL INFILE '{{path}}' {'REPLACE ' if replace else ''}INTO TABLE {table.sql}"
        " CHARACTER SET utf8mb4 FIELDS TERMINATED BY '\\t' ESCAPED BY '\\\\'"
        f" LINES TERMINATED BY '\\n' ({', '.join(targets)})"
        + (f" SET {', '.join(sets)}" if sets else "")
    )


def _parts(values: Iterator[str], session: MySqlSession) -> Iterator[tuple[str, int]]:
    """Join values into lists that are short enough for one statement, if each value is.

    Each list comes with the number of its values.
    """
    most = min(_STATEMENT_CHARACTERS, _packet_characters(session))
    part: list[str] = []
    size = 0
    for value in values:
        if part and (size + len(value) > most or len(part) >= _STATEMENT_ROWS):
            yield ", ".join(part), len(part)
            part, size = [], 0
        part.append(value)
        size += len(value)
    if part:
        yield ", ".join(part), len(part)
