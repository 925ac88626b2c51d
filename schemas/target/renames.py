"""The order of renames, and which columns must be dropped before a rename. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from shardmerge.schemas.model.frozen import replace
from shardmerge.schemas.model.tables import Column

from .target_change import TargetChange

_TEMPORARY = "_shardmerge_"
"""Prefix of a column's name between two renames that swap names."""
_MAX_TEMPORARY = 64 - len("4096")
"""Most characters of such a name before its number: a name has at most 64 characters, and a table
at most 4,096 columns."""


@dataclass(frozen=True, slots=True)
class Rename:
    """A column gets the name ``to``, which is free at that time; None: the column is dropped."""

    column_id: str
    to: str | None


def renames(
    change: TargetChange, current: Mapping[str, Column], gone: Sequence[str]
) -> Iterator[Rename]:
    """Every rename, and every drop that must precede a rename, in an order in which all are legal.

    Args:
        change: The table before and after.
        current: Identity → current definition.
        gone: Identities of the columns that are to be dropped.
    """
    names = dict(current)
    pending = {
        i: change.after[i].name
        for i, column in names.items()
        if i in change.after and i not in gone and change.after[i].name != column.name
    }
    wanted = {name.lower() for name in pending.values()}
    wanted |= {change.after[i].name.lower() for i in change.comes}
    for column_id in gone:
        if names[column_id].name.lower() not in wanted:
            continue
        if len(names) > 1:
            del names[column_id]
            yield Rename(column_id, None)
        else:
            # A table keeps at least one column.
            yield _renamed(names, column_id, _free_name(change, names, column_id))
    while pending:
        taken = {column.name.lower(): i for i, column in names.items()}
        free = (i for i in pending if taken.get(pending[i].lower(), i) == i)
        ready = next(free, None)
        if ready is not None:
            yield _renamed(names, ready, pending.pop(ready))
        else:
            swapped = next(iter(pending))
            yield _renamed(names, swapped, _free_name(change, names, swapped))


def _renamed(names: dict[str, Column], column_id: str, to: str) -> Rename:
    names[column_id] = replace(names[column_id], name=to)
    return Rename(column_id, to)


def _free_name(change: TargetChange, names: Mapping[str, Column], column_id: str) -> str:
    """A temporary name that no column has or will have."""
    columns = (*names.values(), *change.after.values())
    taken = {column.name.lower() for column in columns}
    base = (_TEMPORARY + names[column_id].name)[:_MAX_TEMPORARY]
    tries = (base + (str(number) if number else "") for number in range(len(taken) + 1))
    return next(found for found in tries if found.lower() not in taken)
