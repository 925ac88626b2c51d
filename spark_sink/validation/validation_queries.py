"""The SELECTs of validation, for a shard and for the target alike. Pure.

A row's digest is the first 64 bits of the SHA-256 of its text. The text has the values, then which
of them are NULL, then the lengths of those whose ends cannot be seen. So rows have equal texts only
if all of their values are equal. The digest of a range is the exclusive OR of its rows' digests. It
does not depend on their order, and the digests of several shards can be combined.

CRC32 would be quicker, but it is linear: if two rows of equal length swap a value, the exclusive OR
of their checksums does not change.

Equal rows of a table without a primary key would cancel each other, so there the digests are added.
"""

from __future__ import annotations

from collections.abc import Sequence

from shardmerge.schemas.model.tables import Column
from shardmerge.schemas.pipeline.row_conditions import column_names
from shardmerge.spark_sink.loading.chunk_queries import read_column
from shardmerge.spark_sink.loading.chunk_ranges import KeyRange, behind, condition
from shardmerge.spark_sink.loading.key_order import Boundary, order_by

from .compared_table import Side
from .lake_texts import lake_digest
from .row_keys import key_texts, keys_condition
from .value_texts import ValueText


def row_digest(hashed: Sequence[ValueText]) -> str:
    """SQL of a row's digest, an unsigned integer of 64 bits.

    It is NULL for a row whose text is longer than ``max_allowed_packet``. It is not an MD5: a
    MySQL from 9.6 on has none, unless a component is installed (measured on 9.7).
    """
    values = [text.in_row for text in hashed]
    nulls = ", ".join(f"ISNULL({text.value})" for text in hashed)
    lengths = [text.length for text in hashed if text.length and not text.is_long]
    parts = ", ".join(["'#'", *values, f"CONCAT({nulls})", *lengths])
    return f"CAST(CONV(LEFT(SHA2(CONCAT_WS({parts}), 256), 16), 16, 10) AS UNSIGNED)"


def digest_of(side: Side) -> str:
    """SQL of the digest of a row of a side, as a number without a sign."""
    if side.lake:
        return f"CAST(conv({lake_digest(side.hashed)}, 16, 10) AS decimal(20,0))"
    return row_digest(side.hashed)


def range_digest(side: Side, of: KeyRange) -> str:
    """Asks for the number of rows of a range, and their digest.

    If a row has no digest, the digest of its range is random. So the range's rows are compared.
    Spark gives the digest of an Iceberg table's range as a signed number of 64 bits. It takes the
    rows' digests from a query of their own, because it does not aggregate what calls Java.
    """
    if side.lake:
        base = -10 if side.key else 10
        each = f"SELECT conv({lake_digest(side.hashed)}, 16, {base}) AS d FROM {side.table}"
        total = "bit_xor(CAST(d AS bigint))" if side.key else "SUM(CAST(d AS decimal(20,0)))"
        return f"SELECT COUNT(*), IFNULL({total}, 0) FROM ({each}{_where(side, of)})"
    digest = f"IFNULL({row_digest(side.hashed)}, CAST(RAND() * 1e18 AS UNSIGNED))"
    total = f"BIT_XOR({digest})" if side.key else f"CAST(IFNULL(SUM({digest}), 0) AS CHAR)"
    return f"SELECT COUNT(*), {total} FROM {side.table}{_where(side, of)}"


def row_count(side: Side) -> str:
    """Asks how many rows a side has."""
    return f"SELECT COUNT(*) FROM {digest_source(side)}"


def next_boundary(side: Side, after: Boundary | None, rows: int) -> str:
    """Asks for the key of the last of ``rows`` rows behind a boundary; no answer for fewer rows."""
    key = side.range_key
    where = "" if after is None else f" WHERE {behind(key, after)}"
    limit = f"LIMIT 1 OFFSET {rows - 1}" if side.lake else f"LIMIT {rows - 1}, 1"
    return f"SELECT {key_texts(key)} FROM {side.table}{where} ORDER BY {order_by(key)} {limit}"


def row_digests(side: Side, of: KeyRange) -> str:
    """Asks for the key and the digest of each row of a range.

    Behind them come the values of ``Side.loose``; then the columns of ``condition_columns``.
    """
    loose = ["NULL" if text is None else text.sql for text in side.loose]
    extra = "".join(f", {name}" for name in (*loose, *_condition_values(side)))
    keys = key_texts(side.key)
    return f"SELECT {keys}, {digest_of(side)}{extra} FROM {side.table}{_where(side, of)}"


def digest_source(side: Side) -> str:
    """SQL of the rows of a side that are compared, behind ``FROM``: those of all keys."""
    return f"{side.table}{_where(side, KeyRange())}"


def digest_counts(side: Side) -> str:
    """Asks how many rows have each digest, for a table without a primary key."""
    each = f"SELECT {digest_of(side)} AS d FROM {digest_source(side)}"
    return f"SELECT d, COUNT(*) FROM ({each}) AS rows_of_it GROUP BY d"


def each_digest(side: Side) -> str:
    """Asks for the digest of each row, for a table without a primary key.

    Behind it come the columns of ``condition_columns``.
    """
    selected = ", ".join([digest_of(side), *_condition_values(side)])
    return f"SELECT {selected} FROM {digest_source(side)}"


def rows_by_key(side: Side, keys: Sequence[Sequence[str]]) -> str:
    """Asks for the rows with these keys: key, then the values that are judged on this side.

    Behind them come the columns of ``condition_columns``.
    """
    texts = [text.sql for text in side.texts if text is not None]
    selected = ", ".join([key_texts(side.key), *texts, *_condition_values(side)])
    where = f"({keys_condition(side.key, keys)})"
    if side.condition:
        where += f" AND ({side.condition})"
    return f"SELECT {selected} FROM {side.table} WHERE {where}"


def condition_columns(side: Side) -> list[Column]:
    """The columns that a shard's condition names, if SQL cannot express all of it; else empty."""
    named = column_names(side.where) if side.where else ()
    return [column for column in side.columns if column.name.lower() in named]


def _condition_values(side: Side) -> list[str]:
    return [read_column(column) for column in condition_columns(side)]


def _where(side: Side, of: KeyRange) -> str:
    parts = [part for part in (condition(side.range_key, of),) if part] if side.key else []
    if side.condition:
        parts.append(f"({side.condition})")
    return f" WHERE {' AND '.join(parts)}" if parts else ""
