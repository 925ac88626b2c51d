"""The matrix of a target: which shard has which of its columns, and how. Pure.

Shards with equal rows share one row, so that 10,000 shards stay readable. Columns that every shard
has as the target does are hidden unless the reader asks for them.

Theory of operation:

1. Shards with the same list of columns share one list object (``StatusView``). So shards are first
   grouped into classes by this object, and the cells of each class are computed once.
2. Classes with equal state and cells become one row. Their shards may have come to these columns in
   different ways, but an operator need not tell them apart.
3. The texts of cells are computed only for rows that are shown.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from shardmerge.schemas.ddl.describe import definition
from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.model.shard_columns import ShardColumn

from .view import ColumnView, ShardView, TargetView

MAX_ROWS = 50
"""Rows on one page of the matrix."""


class Cell(StrEnum):
    """How a shard has a column of the target."""

    SAME = "same"
    """It has the column with the target's name and type."""
    MISSING = "missing"
    """It never had the column."""
    DROPPED = "dropped"
    """It had the column once."""
    RENAMED = "renamed"
    """It has the column under another name."""
    TYPE = "type differs"
    """It has the column with another type."""
    LEFT_OUT = "left out"
    """It has the column, but the values are not merged."""
    WAITS = "waits"
    """It is held because of its change of the column."""


_ORDER = {
    "held": 0, "paused": 1, "waits": 2, "flows": 3, "left": 4,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class MatrixColumn:
    """A column of the matrix.

    Attributes:
        id: The identity of the column; "" for a column that the target does not have.
        definition: The definition in the joined schema; "" for a column that the target does not
            have.
        counts: Kind of cell → how many shards have it, of all shards that the search found.
    """

    name: str
    id: str
    definition: str
    counts: Mapping[Cell, int]

    @property
    def is_alike(self) -> bool:
        """Whether every shard has the column as the target does."""
        return all(not count for cell, count in self.counts.items() if cell is not Cell.SAME)


@dataclass(frozen=True, slots=True)
class MatrixCell:
    """One cell.

    Attributes:
        text: What differs: the shard's name of the column, its type, or both; "" for nothing.
    """

    kind: Cell
    text: str = ""


@dataclass(frozen=True, slots=True)
class MatrixRow:
    """A group of equal shards.

    Attributes:
        state: ``held``, ``paused``, ``waits`` (their rows wait in Kafka) or ``flows``.
        cells: One for each column that is shown.
        shards: The shards of the group, sorted; never empty.
    """

    state: str
    shards: tuple[ShardId, ...]
    cells: tuple[MatrixCell, ...]


@dataclass(frozen=True, slots=True)
class Matrix:
    """One page of the matrix.

    Attributes:
        columns: The columns that are shown, in the target's order, then those that the target
            lacks.
        alike: Names of the columns that are hidden, because all shards have them as the target
            does.
        rows: The rows of this page: by state, held shards first, then the smallest groups.
        row_count: How many rows all pages have.
        page: Number of this page, from 1.
        pages: How many pages there are.
        found: How many shards the search found.
        total: How many live shards the target has.
    """

    columns: tuple[MatrixColumn, ...]
    alike: tuple[str, ...]
    rows: tuple[MatrixRow, ...]
    row_count: int
    page: int
    pages: int
    found: int
    total: int


@dataclass(frozen=True, slots=True)
class _Class:
    """What shards have in common whose column lists are the same objects."""

    state: str
    columns: tuple[ShardColumn, ...]
    latest: tuple[ShardColumn, ...]
    dropped: frozenset[str]


_Kinds = dict[tuple[str, int, int, frozenset[str]], tuple[_Class, list[ShardId]]]
_Rows = dict[tuple[str, tuple[Cell, ...], tuple[str, ...]], tuple[_Class, list[ShardId]]]


def matrix(
    target: TargetView, search: str = "", *, every_column: bool = False, page: int = 1
) -> Matrix:
    """One page of the matrix of a target.

    Args:
        target: The target.
        search: Finds only shards whose name contains this text, in upper or lower case.
        every_column: Whether to show also columns that all shards have as the target does.
        page: Number of the page, from 1. A number beyond the last page gives the last page.
    """
    live = [shard for shard in target.shards if shard.state != "left"]
    wanted = search.casefold()
    found = [shard for shard in live if wanted in str(shard.shard).casefold()]
    kinds = _kinds(found, _parked(target))
    comparing = _Comparing(target.columns)
    names = comparing.left_out(kind.latest for kind, _ in kinds.values())
    rows: _Rows = {}
    for kind, shards in kinds.values():
        cells = comparing.cells(kind, names)
        # Names and types count, too: a shard with INT and one with DATE are not one row.
        key = (kind.state, cells, comparing.details(kind, cells, names))
        rows.setdefault(key, (kind, []))[1].extend(shards)
    columns = _columns(target.columns, names, rows)
    shown = [n for n, column in enumerate(columns) if every_column or not column.is_alike]
    ordered = sorted(
        rows.items(), key=lambda row: (_ORDER[row[1][0].state], len(row[1][1]), min(row[1][1]))
    )
    pages = max(1, -(-len(ordered) // MAX_ROWS))
    page = min(max(1, page), pages)
    lines = []
    for (_, cells, _), (kind, shards) in ordered[(page - 1) * MAX_ROWS : page * MAX_ROWS]:
        told = comparing.with_texts(kind, cells, names)
        lines.append(MatrixRow(kind.state, tuple(sorted(shards)), tuple(told[n] for n in shown)))
    return Matrix(
        columns=tuple(columns[n] for n in shown),
        alike=tuple(c.name for n, c in enumerate(columns) if n not in set(shown)),
        rows=tuple(lines),
        row_count=len(ordered),
        page=page,
        pages=pages,
        found=len(found),
        total=len(live),
    )


def _kinds(shards: Iterable[ShardView], parked: frozenset[ShardId]) -> _Kinds:
    found: _Kinds = {}
    for shard in shards:
        state = _state(shard, parked)
        key = (state, id(shard.columns), id(shard.latest), shard.dropped)
        if key not in found:
            found[key] = (_Class(state, shard.columns, shard.latest, shard.dropped), [])
        found[key][1].append(shard.shard)
    return found


def _columns(
    columns: Sequence[ColumnView], names: Sequence[str], rows: _Rows
) -> list[MatrixColumn]:
    """The target's columns, then those that it lacks, each with the counts of its cells."""
    counts: list[Counter[Cell]] = [Counter() for _ in range(len(columns) + len(names))]
    for (_, cells, _), (_, shards) in rows.items():
        for count, cell in zip(counts, cells, strict=True):
            count[cell] += len(shards)
    told = [(c.name, c.id, c.definition) for c in columns] + [(name, "", "") for name in names]
    return [MatrixColumn(*each, count) for each, count in zip(told, counts, strict=True)]


def _parked(target: TargetView) -> frozenset[ShardId]:
    shards = target.progress.shards if target.progress else ()
    return frozenset(shard.shard for shard in shards if shard.waiting)


def _state(shard: ShardView, parked: frozenset[ShardId]) -> str:
    if shard.state != "live":
        return shard.state
    return "waits" if shard.shard in parked else "flows"


class _Comparing:
    """Compares shards' columns with the target's. It compares each object once."""

    def __init__(self, columns: Sequence[ColumnView]) -> None:
        self._columns = columns
        self._names = {column.name.casefold() for column in columns}
        self._known: dict[tuple[int, int], Cell] = {}
        self._by_id: dict[int, dict[str, ShardColumn]] = {}

    def left_out(self, lists: Iterable[tuple[ShardColumn, ...]]) -> tuple[str, ...]:
        """Names of columns that are left out on shards and missing in the target, sorted."""
        found: dict[str, str] = {}
        seen: set[int] = set()
        for columns in lists:
            if id(columns) in seen:
                continue
            seen.add(id(columns))
            for item in columns:
                if not item.id and (low := item.column.name.casefold()) not in self._names:
                    found.setdefault(low, item.column.name)
        return tuple(found[name] for name in sorted(found))

    def cells(self, kind: _Class, names: Sequence[str]) -> tuple[Cell, ...]:
        """One for each column of the target, then one for each name that it lacks."""
        has, counts = self._ids(kind.latest), self._ids(kind.columns)
        # If the latest schema is not known, the one that counts is shown.
        if not kind.latest:
            has = counts
        waits = kind.state == "held" and bool(kind.latest)
        left = {item.column.name.casefold() for item in kind.latest if not item.id}
        found = []
        for place, column in enumerate(self._columns):
            item = has.get(column.id)
            if waits and item is not counts.get(column.id):
                found.append(Cell.WAITS)
            elif item is None:
                if column.name.casefold() in left:
                    found.append(Cell.LEFT_OUT)
                else:
                    found.append(Cell.DROPPED if column.id in kind.dropped else Cell.MISSING)
            else:
                found.append(self._cell(place, column, item))
        found += [Cell.LEFT_OUT if n.casefold() in left else Cell.MISSING for n in names]
        return tuple(found)

    def details(self, kind: _Class, cells: Sequence[Cell], names: Sequence[str]) -> tuple[str, ...]:
        """The texts by which rows with equal kinds of cells differ."""
        if all(cell in (Cell.SAME, Cell.MISSING, Cell.DROPPED, Cell.LEFT_OUT) for cell in cells):
            return ()
        return tuple(cell.text for cell in self.with_texts(kind, cells, names))

    def with_texts(
        self, kind: _Class, cells: Sequence[Cell], names: Sequence[str]
    ) -> tuple[MatrixCell, ...]:
        """The cells with their texts."""
        has = self._ids(kind.latest or kind.columns)
        found = []
        for column, cell in zip(self._columns, cells, strict=False):
            item = has.get(column.id)
            found.append(MatrixCell(cell, _text(cell, column, item)))
        found += [MatrixCell(cell) for cell in cells[len(found) :]]
        assert len(found) == len(self._columns) + len(names)
        return tuple(found)

    def _ids(self, columns: tuple[ShardColumn, ...]) -> dict[str, ShardColumn]:
        known = self._by_id.get(id(columns))
        if known is None:
            known = {item.id: item for item in columns if item.id}
            self._by_id[id(columns)] = known
        return known

    def _cell(self, place: int, column: ColumnView, item: ShardColumn) -> Cell:
        key = (place, id(item))
        known = self._known.get(key)
        if known is None:
            if item.column.type != column.column.type:
                known = Cell.TYPE
            elif item.column.name.casefold() != column.name.casefold():
                known = Cell.RENAMED
            else:
                known = Cell.SAME
            self._known[key] = known
        return known


def _text(cell: Cell, column: ColumnView, item: ShardColumn | None) -> str:
    if cell is Cell.WAITS:
        if item is None:
            return "dropped"
        new = definition(item.column)
        name = item.column.name
        return new if name.casefold() == column.name.casefold() else f"{name} {new}"
    if item is None or cell is Cell.SAME:
        return ""
    if cell is Cell.RENAMED:
        return item.column.name
    renamed = item.column.name.casefold() != column.name.casefold()
    new = definition(item.column)
    return f"{item.column.name} {new}" if renamed else new
