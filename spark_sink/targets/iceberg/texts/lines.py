"""Changes of rows → lines of text that Spark reads, and the SQL that reads them. Pure.

A line is a JSON array of texts and nulls: the number of the task, the rank among changes of one
key (see ``merge``), then a cell per column of the table. Spark's own parser and casts make values
of them, in the JVM, whole columns at a time; here is only what these do not know.
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
"""A table's columns, in its order: the cells of a line follow it."""
CELLS_FROM = 2
"""Place of the first cell in a line."""
MARK_OF_LINES = "["
"""What a line begins with; what begins otherwise is no change."""


class Unwritable(Exception):
    """A value has no place in its column of the table."""

    def __init__(self, reason: str, hint: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.hint = hint


def for_lines(stream: ShardStream) -> ShardStream:
    """The stream, so that an enum's error value of index 0 is the empty text that it shows.

    For MySQL it is written as '0', which is no value of the column (``columns``).
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
        group: Number of the batch among those of the task: later ones win.
        batch: The changes.
        columns: Of the table.

    Raises:
        Unwritable: A value, or a missing one, does not fit its column.
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
            "somebody changed the target: add the column again",
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
    """Spark SQL of every column's value, from the array ``a`` that a line is."""
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
    """Dates of month or day 0 are no dates to Spark: NULL."""
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
"""By form of the cells and family of the column's type; what is not here has no place there."""
_READ = {
    "string": "{}",
    "long": "CAST({} AS bigint)",
    "binary": "unhex({})",
    "timestamp": "CAST({} AS timestamp_ntz)",
    "timestamptz": "CAST(concat({}, 'Z') AS timestamp)",
}
