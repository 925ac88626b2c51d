"""What a MySQL server does to rows: the shards' servers, and a target that is one.

Where it converts values it does so in a way of its own: what counts is that every server does it
alike, and that what comes of it is another value.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator
from dataclasses import dataclass

from shardmerge.schemas.ddl.apply.statements import AlterResult, apply_alter
from shardmerge.schemas.ddl.changes import AlterTable
from shardmerge.schemas.model.tables import Column, DefaultKind, TableSchema
from shardmerge.spark_sink.barrier.decisions import StatementKey
from tests.toy_target import CONTEXT, FAMILIES, NULLS, Rejected, ToyTarget, accepts

Cells = dict[str, object]
"""A whole row: a value for each column."""
_ZERO: dict[str, object] = {"number": 0, "text": "", "date": "0000-00-00"}
_SET = re.compile(r"`(\w+)` = ('[^']*'|[^\s,]+)")
_EQUAL = re.compile(r"`(\w+)` = '([^']*)'")
_FILL = re.compile(r"UPDATE \S+ SET (?P<sets>.+) WHERE (?P<whose>.+) AND NOT \(.+\)")
_DELETE = re.compile(r"DELETE FROM \S+(?: WHERE (?P<whose>.+))?")
_COPY = re.compile(
    r"UPDATE \S+ SET `(?P<to>\w+)` = `(?P<come>\w+)`(?P<clears>, `\w+` = NULL)? "
    r"WHERE (?P<empty>`\w+` IS NULL AND )?`\w+` IS NOT NULL"
)


def filled(column: Column) -> object:
    """What ADD COLUMN puts into the rows, and what a row gets that leaves the column out."""
    default = column.default
    if default is None:
        return None if column.nullable else _ZERO[FAMILIES[column.type.name]]
    if default.kind is DefaultKind.NULL:
        return None
    return int(default.text) if FAMILIES[column.type.name] == "number" else default.text


def altered(
    cells: Cells, before: TableSchema, result: AlterResult, mended: Container[str] = ()
) -> Cells:
    """A row after an ALTER TABLE.

    Args:
        cells: The row.
        before: The table's schema.
        result: What the ALTER TABLE does to it.
        mended: Columns in which somebody puts another value where one does not fit, before it is
            tried.

    Raises:
        Rejected: The row does not fit.
    """
    row: Cells = {}
    for lineage, column in zip(result.lineage, result.schema.columns, strict=True):
        was = before.column(lineage.before) if lineage.before else None
        value = filled(column) if was is None else _converted(cells[was.name], was, column)
        if not accepts(column, value):
            if lineage.before not in mended:
                raise Rejected(f"column {column.name} {column.type.name} does not take {value!r}")
            value = _ZERO[FAMILIES[column.type.name]]
        row[column.name] = value
    return row


def _converted(value: object, before: Column, after: Column) -> object:
    family, other = FAMILIES[before.type.name], FAMILIES[after.type.name]
    if value is None or family == other:
        return value
    match other:
        case "number":
            return len(str(value))
        case "text":
            return f"was {value}"
        case _:
            return f"1999-01-{len(str(value)):02}"


@dataclass
class _Change:
    """What a statement does to one row; None is a removal."""

    number: int
    cells: Cells | None


class ServerTarget(ToyTarget):
    """A target whose rows are whole, and whose rows statements change.

    A statement that changes rows does so row by row, so that a crash can come in between.

    Attributes:
        unwritten: Per key the columns whose values no row event, and no statement, wrote.
    """

    def __init__(self) -> None:
        super().__init__()
        self.unwritten: dict[int, set[str]] = {}

    def parts(self, key: StatementKey, sql: str) -> Iterator[None]:
        if not sql.startswith(("UPDATE ", "DELETE ")):
            yield from super().parts(key, sql)
            return
        if key in self.executed:
            raise Rejected(f"statement {key} runs twice")
        yield from self.change_rows(sql)
        self.executed.add(key)

    def change_rows(self, sql: str) -> Iterator[None]:
        """Change one row after the other until none is left to be changed."""
        while (change := next(self._changes(sql), None)) is not None:
            if change.cells is None:
                del self.cells[change.number]
            else:
                old = self.cells[change.number]
                self.cells[change.number] = change.cells
                written = {name for name, value in change.cells.items() if old[name] != value}
                self.unwritten[change.number] -= written
            yield

    def upsert(self, key: int, values: Cells) -> None:
        super().upsert(key, values)
        assert self.schema is not None
        absent = [c for c in self.schema.columns if c.name not in values]
        self.cells[key] |= {c.name: filled(c) for c in absent}
        self.unwritten[key] = {c.name for c in absent}

    def _changes(self, sql: str) -> Iterator[_Change]:
        if found := _DELETE.fullmatch(sql):
            for number in self._rows_of(found["whose"] or ""):
                yield _Change(number, None)
        elif found := _FILL.fullmatch(sql):
            values = {name: _literal(text) for name, text in _SET.findall(found["sets"])}
            for number in self._rows_of(found["whose"]):
                if self.cells[number] != self.cells[number] | values:
                    yield self._changed(number, values)
        elif found := NULLS.fullmatch(sql):
            name = found[1]
            assert self.schema is not None
            column = self.schema.column(name)
            assert column is not None
            for number, cells in self.cells.items():
                if cells[name] is None:
                    if name not in self.unwritten[number] and number not in self.orphans:
                        raise Rejected(f"row {number} has NULL in {name}, and gets a default")
                    yield self._changed(number, {name: filled(column)})
        elif found := _COPY.fullmatch(sql):
            come, to = found["come"], found["to"]
            for number, cells in self.cells.items():
                if cells[come] is None or (found["empty"] and cells[to] is not None):
                    continue
                yield self._changed(
                    number, {to: cells[come]} | ({come: None} if found["clears"] else {})
                )
        else:
            raise Rejected(f"what is {sql}?")

    def _changed(self, number: int, values: Cells) -> _Change:
        assert self.schema is not None
        for name, value in values.items():
            column = self.schema.column(name)
            if column is None or not accepts(column, value):
                raise Rejected(f"column {name} does not take {value!r}")
        return _Change(number, self.cells[number] | values)

    def _rows_of(self, whose: str) -> list[int]:
        wanted = _EQUAL.findall(whose)
        assert wanted or not whose
        return [
            number
            for number, cells in self.cells.items()
            if all(cells[name] == value for name, value in wanted)
        ]

    def _alter(self, before: TableSchema, statement: AlterTable) -> None:
        result = apply_alter(before, statement, "t", CONTEXT)
        for number, cells in self.cells.items():
            # A server refuses until somebody mends values that no shard has (any more): no row
            # waits for such a debt.
            unwritten = self.unwritten[number]
            mended = {c.name for c in before.columns} if number in self.orphans else unwritten
            self.cells[number] = altered(cells, before, result, mended)
            self.unwritten[number] = {
                line.name for line in result.lineage if not line.before or line.before in unwritten
            }
        self.schema = result.schema


def _literal(text: str) -> object:
    if text == "NULL":
        return None
    return text.strip("'") if text.startswith("'") else int(text)
