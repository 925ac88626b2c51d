"""Turns changes of rows into lines of text that Spark reads. Pure.

A line is a JSON array of texts and nulls: the number of the task, the rank among changes of one
key (see ``merge``), then a cell per column of the table. Spark's parser and casts turn the cells
into values, in the JVM, a whole column at a time (``encoders``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from msgspec.json import Encoder as JsonEncoder

from shardmerge.spark_sink.rows.folding.row_batches import Batch
from shardmerge.spark_sink.rows.folding.row_blocks import Block
from shardmerge.spark_sink.rows.values.column_values import Cells

from .encoders import Unwritable, encoding_of
from .layout import Field

Columns: TypeAlias = tuple[Field, ...]
"""The columns of a table that are written, in the table's order: also that of a line's cells."""
CELLS_FROM = 2
"""Index of the first cell in a line."""
MARK_OF_LINES = "["
"""The first character of a line; a text that begins otherwise is a head (``fold``)."""


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
    cells: list[Sequence[str | None]] = []
    for column in columns:
        place = places.get(column.name.lower())
        found: Sequence[str | None] = nothing
        if place is not None:
            found = encoding_of(block.forms[place], column.type)(block.values[place])
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
