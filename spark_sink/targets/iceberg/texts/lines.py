"""Turns changes of rows into lines of text that Spark reads, and makes the SQL for that. Pure.

A line is a JSON array of texts and nulls: the number of the task, the rank among changes of one
key (see ``merge``), then a cell per column of the table. Spark's parser and casts turn the cells
into values, in the JVM, a whole column at a time. This module does only what Spark cannot.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TypeAlias

from msgspec.json import Encoder as JsonEncoder

from shardmerge.schemas.model.shard_columns import ShardColumn
from shardmerge.spark_sink.planning.ranges import Segment, ShardStream
from shardmerge.spark_sink.rows.folding.row_batches import Batch
from shardmerge.spark_sink.rows.folding.row_blocks import Block
from shardmerge.spark_sink.rows.values.cells import Cells
from shardmerge.spark_sink.rows.values.columns import Form

from .layout import Field

Columns: TypeAlias = tuple[Field, ...]
"""A table's columns, in the table's order, which is also the order of the cells in a line."""
CELLS_FROM = 2
"""Index of the first cell in a line."""
MARK_OF_LINES = "["
"""The first character of a line; a text that begins otherwise is a head (``fold``)."""


class Unwritable(Exception):
    """A value cannot be stored in its column of the table. ``code``: see ``schemas.codes``."""

    def __init__(self, reason: str, hint: str, code: str = "SM-1521") -> None:
        super().__init__(reason)
        self.reason = reason
        self.hint = hint
        self.code = code


def for_lines(stream: ShardStream) -> ShardStream:
    """The stream, changed so that an ENUM's error value (index 0) is written as the empty text.

    A MySQL target gets '0' for it, which MySQL reads as index 0 (``columns``); in an Iceberg
    column, which is text, '0' would be a wrong value.
    """
    segments = tuple(_with_empty_enums(segment) for segment in stream.segments)
    return replace(stream, segments=segments)


def _with_empty_enums(segment: Segment) -> Segment:
    return replace(segment, columns=tuple(map(_with_empty_enum, segment.columns)))


def _with_empty_enum(item: ShardColumn) -> ShardColumn:
    kind = item.column.type
    if kind.name != "enum" or "" in kind.elements:
        return item
    kind = replace(kind, elements=(*kind.elements, ""))
    return replace(item, column=replace(item.column, type=kind))


def lines_of(number: int, group: int, batch: Batch, columns: Columns) -> Iterator[str]:
    """The lines of a batch.

    Args:
        number: Of the task.
        group: Index of the batch among the task's batches: later ones win.
        batch: The changes.
        columns: Of the table.

    Raises:
        Unwritable: A value does not fit its column, or is missing in a NOT NULL column.
    """
    if batch.deletes is not None:
        yield from _lines(number, 2 * group, batch.deletes, columns, whole=False)
    for block in batch.upserts:
        yield from _lines(number, 2 * group + 1, block, columns, whole=True)


def _lines(number: int, rank: int, block: Block, columns: Columns, *, whole: bool) -> Iterator[str]:
    places = {name.lower(): n for n, name in enumerate(block.names)}
    known = {column.name.lower() for column in columns}
    if lacking := sorted(places.keys() - known):
        raise Unwritable(
            f"the table lacks column {lacking[0]}, which was made for this row",
            "add the column to the target again: it was there when the statement was executed",
        )
    nothing: Cells = [None] * block.rows
    cells: list[Cells] = []
    for column in columns:
        place = places.get(column.name.lower())
        found = nothing
        if place is not None:
            found = _conversion(block.forms[place], column.type)(block.cells[place])
        if whole and column.required and (place is None or None in found):
            raise Unwritable(
                f"column {column.name} is NOT NULL in the target and has no value here",
                f"make it accept NULL: ALTER TABLE … ALTER COLUMN {column.name} DROP NOT NULL",
            )
        cells.append(found)
    head = (str(number), str(rank))
    for row in zip(*cells, strict=True):
        yield _encode((*head, *row)).decode()


_encode = JsonEncoder().encode


def values_sql(columns: Columns) -> list[str]:
    """Spark SQL for the value of every column; ``a`` is the array of a line."""
    return [
        _READ.get(column.type.partition("(")[0], "CAST({} AS {kind})").format(
            f"a[{number}]", kind=column.type
        )
        for number, column in enumerate(columns, CELLS_FROM)
    ]


def _conversion(form: Form, kind: str) -> Callable[[Cells], Cells]:
    convert = _CONVERSIONS.get((form, kind.partition("(")[0]))
    if convert is None:
        raise Unwritable(
            f"a value of form {form.value} has no place in a column of type {kind}",
            "somebody changed the type of the target's column",
        )
    return convert


def _as_it_is(cells: Cells) -> Cells:
    return cells


def _dates(cells: Cells) -> Cells:
    """Replace dates whose month or day is 0 by NULL: Spark has no such dates."""
    return [None if c is not None and "-00" in c[4:10] else c for c in cells]


def _micros(cells: Cells) -> Cells:
    """TIME texts → microseconds."""
    return [None if c is None else str(_microseconds(c)) for c in cells]


_TIME = re.compile(r"(-?)(\d+):(\d\d):(\d\d)(?:\.(\d{1,6}))?")


def _microseconds(text: str) -> int:
    found = _TIME.fullmatch(text)
    if found is None:
        raise Unwritable(f"{text!r} is no time", "check the connector's value modes")
    sign, hours, minutes, seconds, fraction = found.groups()
    total = (int(hours) * 60 + int(minutes)) * 60 + int(seconds)
    micros = total * 1_000_000 + int((fraction or "").ljust(6, "0"))
    return -micros if sign else micros


_CONVERSIONS: dict[tuple[Form, str], Callable[[Cells], Cells]] = {
    (Form.TEXT, "string"): _as_it_is,
    (Form.JSON, "string"): _as_it_is,
    (Form.NUMBER, "string"): _as_it_is,
    (Form.NUMBER, "int"): _as_it_is,
    (Form.NUMBER, "long"): _as_it_is,
    (Form.NUMBER, "float"): _as_it_is,
    (Form.NUMBER, "double"): _as_it_is,
    (Form.NUMBER, "decimal"): _as_it_is,
    (Form.BITS, "long"): _as_it_is,
    (Form.BITS, "decimal"): _as_it_is,
    (Form.HEX, "binary"): _as_it_is,
    (Form.TIME, "long"): _micros,
    (Form.DATE, "date"): _dates,
    (Form.DATETIME, "timestamp"): _dates,
    (Form.DATETIME, "timestamptz"): _dates,
}
"""Form of the cells and family of the column's type → conversion; other pairs are unwritable."""
_READ = {
    "string": "{}",
    "long": "CAST({} AS bigint)",
    "binary": "unhex({})",
    "timestamp": "CAST({} AS timestamp_ntz)",
    "timestamptz": "CAST(concat({}, 'Z') AS timestamp)",
}
