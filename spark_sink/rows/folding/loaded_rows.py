"""The rows of a chunk of a first load, as a batch for the sink's bulk path. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from shardmerge.schemas.model.types import ColumnType
from shardmerge.schemas.pipeline.row_conditions import (
    ConditionColumn,
    column_names,
    condition_on,
)
from shardmerge.spark_sink.rows.values.column_values import ColumnValues
from shardmerge.spark_sink.rows.values.constant_values import ConstantValue
from shardmerge.spark_sink.rows.values.readers import Reader
from shardmerge.spark_sink.rows.values.times import moment_text

from .line_maker import LineMaker
from .row_batches import Batch
from .row_blocks import Block


@dataclass(frozen=True, slots=True)
class LoadedColumn:
    """A column that a chunk reads.

    Attributes:
        name: The shard's name of it.
        target: The target's column; "" for one that only the route's condition needs.
        reader: Of the server's values.
    """

    name: str
    kind: ColumnType
    target: str
    reader: Reader


@dataclass(frozen=True, slots=True)
class LoadedRows:
    """How the rows of a chunk are written.

    Attributes:
        columns: In the order in which they are read.
        key: The target's columns of the primary key.
        where: The route's condition; "" for all rows.
        constants: Further target columns with the value that every row has there: origin columns.
    """

    columns: tuple[LoadedColumn, ...]
    key: tuple[str, ...]
    where: str = ""
    constants: tuple[tuple[str, ConstantValue], ...] = ()

    def batch(self, rows: Sequence[Sequence[Any]], maker: LineMaker | None = None) -> Batch | None:
        """What is written of a chunk's rows; None for nothing.

        Args:
            rows: As the server sent them, in the order of the key.
            maker: Of lines for a load; None for values.

        Raises:
            UnfitValue: A value is not one of its column's type.
            UnsupportedDDL: The condition cannot be evaluated on these columns.
        """
        if not rows:
            return None
        read = [
            column.reader.read_column(values)
            for column, values in zip(self.columns, zip(*rows, strict=True), strict=True)
        ]
        values = self._matching([found for found, _ in read])
        count = len(values[0])
        if not count:
            return None
        written = [n for n, column in enumerate(self.columns) if column.target]
        names = (
            *(self.columns[n].target for n in written),
            *(name for name, _ in self.constants),
        )
        forms = (
            *(self.columns[n].reader.form for n in written),
            *(constant.form for _, constant in self.constants),
        )
        cells: list[ColumnValues] = [values[n] for n in written]
        cells += [[constant.value] * count for _, constant in self.constants]
        nulls = [None in some for some in cells]
        if maker is None:
            return Batch(self.key, None, (Block(names, forms, tuple(cells), tuple(nulls), count),))
        lines = maker.of_values(forms, cells, nulls)
        # If the target has another unique key, rows are deleted by primary key before the load:
        # that needs the values of the key's columns.
        keys = [some if name in self.key else [] for name, some in zip(names, cells, strict=True)]
        block = Block(names, forms, tuple(keys), (False,) * len(names), count, lines)
        return Batch(self.key, None, (block,))

    def _matching(self, values: list[ColumnValues]) -> list[ColumnValues]:
        """The values of the rows for which the condition is true."""
        if not self.where:
            return values
        places = {column.name.lower(): n for n, column in enumerate(self.columns)}
        named = {}
        for name in column_names(self.where):
            column = self.columns[places[name]]
            text_of = partial(moment_text, column.reader.form)
            named[name] = ConditionColumn(places[name], column.kind, text_of)
        matches = condition_on(self.where, named)
        kept = [row for row in zip(*values, strict=True) if matches(row)]
        return [list(some) for some in zip(*kept, strict=True)] if kept else [[] for _ in values]
