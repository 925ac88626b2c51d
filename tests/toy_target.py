"""A toy target table that refuses what a strict server would refuse, and survives crashes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from shardmerge.schemas.ddl.apply.statements import apply_alter, apply_create
from shardmerge.schemas.ddl.changes import AlterTable, CreateTable
from shardmerge.schemas.ddl.grammar import ServerContext, parse
from shardmerge.schemas.model.tables import Column, TableSchema
from shardmerge.spark_sink.barrier.decisions import StatementKey
from tests.toy_kafka import Place
from tests.toy_truncations import Move

CONTEXT = ServerContext()
NULLS = re.compile(r"UPDATE \S+ SET `(\w+)` = DEFAULT WHERE `\1` IS NULL")
"""Gives a column's default to rows without a value (``row_statements.defaulting``)."""
ALL_ROWS = re.compile(r"DELETE FROM \S+")
SMALL, BIG = 7, 1 << 40
FAMILIES = {
    "int": "number",
    "bigint": "number",
    "varchar": "text",
    "enum": "text",
    "date": "date",
}


class Rejected(AssertionError):
    """The target refused a row or a statement: a rule of the barrier was broken."""


def accepts(column: Column, value: object) -> bool:
    """Whether a column takes a value."""
    if value is None:
        return column.nullable
    name = column.type.name
    if name == "enum":
        return value in column.type.elements
    if isinstance(value, int):
        return name == "bigint" or (name == "int" and abs(value) < 1 << 31)
    return isinstance(value, str) and name == ("date" if value[4:5] == "-" else "varchar")


class ToyTarget:
    """The table, the journal and the offsets: what is left after a crash.

    Attributes:
        cells: Key → column → value, as row events wrote them; a column that no event wrote is
            not there (its default is of no interest here).
        taken: Row partition → offset → number of the row events applied, in order.
        passed_over: Numbers of row events of shards that were dropped while they were held.
        orphans: Keys of shards that dropped a column, or were dropped: what their rows hold in
            the target is not counted by any schema any more, and a contraction may meet it.
    """

    def __init__(self) -> None:
        self.schema: TableSchema | None = None
        self.cells: dict[int, dict[str, object]] = {}
        self.executed: set[StatementKey] = set()
        self.offsets: dict[Place, int] = {}
        self.taken: dict[Place, dict[int, int]] = {}
        self.passed_over: set[int] = set()
        self.orphans: set[int] = set()
        self.converted: set[str] = set()

    def execute(self, key: StatementKey, sql: str) -> None:
        if key in self.executed:
            raise Rejected(f"statement {key} runs twice")
        if found := NULLS.fullmatch(sql):
            self.fill_nulls(found[1])
            self.executed.add(key)
            return
        statement = parse(sql, CONTEXT)
        if isinstance(statement, CreateTable):
            if self.schema is not None:
                raise Rejected("the target is made twice")
            self.schema = apply_create(statement, CONTEXT)
        else:
            assert isinstance(statement, AlterTable)
            if self.schema is None:
                raise Rejected("the target is altered before it is made")
            self._alter(self.schema, statement)
        self.executed.add(key)

    def parts(self, key: StatementKey, sql: str) -> Iterator[None]:
        """Execute a statement; a crash can come at each step and leave it half done."""
        self.execute(key, sql)
        yield

    def fill_nulls(self, name: str) -> None:
        """Give a column's default to the rows without a value; no event may have written a NULL."""
        for key, cells in self.cells.items():
            if name in cells and cells[name] is None and key not in self.orphans:
                raise Rejected(f"row {key} has NULL in {name}, and gets a default")

    def change_rows(self, sql: str) -> Iterator[None]:
        """Change rows by a statement that is none of a decision, step by step."""
        if not ALL_ROWS.fullmatch(sql):
            raise Rejected(f"this target changes no rows by a statement: {sql}")
        while self.cells:
            self.cells.popitem()
            yield

    def upsert(self, key: int, values: dict[str, object]) -> None:
        if self.schema is None:
            raise Rejected("a row comes before its table")
        for name, value in values.items():
            column = self.schema.column(name)
            if column is None:
                raise Rejected(f"the target has no column {name}")
            if not accepts(column, value):
                raise Rejected(f"column {name} {column.type.name} does not take {value!r}")
        for column in self.schema.columns:
            if column.is_required and column.name not in values:
                raise Rejected(f"column {column.name} has no value")
        self.cells[key] = dict(values)

    def delete(self, key: int) -> None:
        self.cells.pop(key, None)

    @property
    def all_taken(self) -> set[int]:
        """Numbers of all row events applied."""
        return {number for numbers in self.taken.values() for number in numbers.values()}

    def advance(self, place: Place, start: int, end: int, numbers: dict[int, int]) -> None:
        """Compare-and-set of an offset, in the transaction of its rows."""
        if self.offsets.get(place, 0) != start:
            raise Rejected(f"{place} stands at {self.offsets.get(place, 0)}, not at {start}")
        self.offsets[place] = end
        self.taken.setdefault(place, {}).update(numbers)

    def move(self, moves: Iterable[Move]) -> None:
        """Go on at other places, in one transaction."""
        for move in moves:
            self.advance(move.place, move.start, move.end, move.passed)
            taken = self.taken[move.place]
            self.taken[move.place] = {o: n for o, n in taken.items() if o < move.end}

    def _alter(self, before: TableSchema, statement: AlterTable) -> None:
        result = apply_alter(before, statement, "t", CONTEXT)
        for key, cells in self.cells.items():
            old = dict(cells)
            cells.clear()
            for lineage, column in zip(result.lineage, result.schema.columns, strict=True):
                if lineage.before not in old:
                    continue
                value, was = old[lineage.before], before.column(lineage.before)
                assert was is not None
                if FAMILIES[was.type.name] != FAMILIES[column.type.name]:
                    self.converted.add(column.name)
                elif not accepts(column, value):
                    if key in self.orphans:
                        continue
                    raise Rejected(f"{statement}: column {column.name} holds {value!r}")
                else:
                    cells[column.name] = value
        self.schema = result.schema
