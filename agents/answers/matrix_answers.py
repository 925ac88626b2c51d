"""The answer of ``/api/target/NAME/matrix`` as values. Pure; see ``plain``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from shardmerge.agents.status.matrix import Matrix


@dataclass(frozen=True, slots=True)
class MatrixColumnAnswer:
    """One column of the matrix.

    Attributes:
        name: The name in the target; for a column that the target does not have, that on shards.
        id: The column's identity; "" for a column that the target does not have.
        definition: The definition in the joined schema; "" for a column that the target does not
            have.
        counts: Kind of cell → how many shards have it, of all shards that the search found.
    """

    name: str
    id: str
    definition: str
    counts: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class CellAnswer:
    """One cell.

    Attributes:
        kind: ``same``, ``missing``, ``dropped``, ``renamed``, ``type differs``, ``left out`` or
            ``waits``.
        text: What differs; "" for nothing.
    """

    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class GroupAnswer:
    """A group of equal shards.

    Attributes:
        state: ``held``, ``paused``, ``waits`` or ``flows``.
        shards: The shards of the group, sorted.
        cells: One for each of ``columns``.
    """

    state: str
    shards: tuple[str, ...]
    cells: tuple[CellAnswer, ...]


@dataclass(frozen=True, slots=True)
class MatrixAnswer:
    """Shards and columns of a target.

    Attributes:
        columns: The columns in this answer.
        alike: Names of the columns that are left out of this answer, because all shards have them
            as the target does.
        groups: The groups of this page: held shards first, then paused, waiting and flowing ones;
            in each state the smallest groups first.
        group_count: How many groups all pages have.
        page: Number of this page, from 1.
        pages: How many pages there are.
        found: How many shards the search found.
        total: How many live shards the target has.
    """

    columns: tuple[MatrixColumnAnswer, ...]
    alike: tuple[str, ...]
    groups: tuple[GroupAnswer, ...]
    group_count: int
    page: int
    pages: int
    found: int
    total: int


def matrix_answer(found: Matrix) -> MatrixAnswer:
    """The answer of ``/api/target/NAME/matrix``."""
    return MatrixAnswer(
        tuple(
            MatrixColumnAnswer(
                column.name,
                column.id,
                column.definition,
                {cell.value: count for cell, count in sorted(column.counts.items())},
            )
            for column in found.columns
        ),
        found.alike,
        tuple(
            GroupAnswer(
                row.state,
                tuple(map(str, row.shards)),
                tuple(CellAnswer(cell.kind.value, cell.text) for cell in row.cells),
            )
            for row in found.rows
        ),
        found.row_count,
        found.page,
        found.pages,
        found.found,
        found.total,
    )
