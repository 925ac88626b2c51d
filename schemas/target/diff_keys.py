"""Which secondary indexes and checks are dropped and added when a target changes. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from shardmerge.schemas.ddl.expressions import column_names
from shardmerge.schemas.lattice.join import reads_otherwise
from shardmerge.schemas.lattice.type_join import is_exact_number, reads_alike
from shardmerge.schemas.model.tables import Check, Index, IndexKind, TableSchema
from shardmerge.schemas.model.types import ColumnType

from .target_change import TargetChange, plain_index


def dropped_indexes(change: TargetChange, lost: Collection[str]) -> Iterator[tuple[Index, bool]]:
    """The indexes to drop before columns change; each with whether its name is added again.

    Args:
        change: The table before and after.
        lost: Old names, in lower case, of columns that must be in no index while they change.
    """
    kept = {i.name.lower(): plain_index(i) for i in change.to.schema.indexes}
    for index in _secondary(change.from_schema):
        same = kept.get(index.name.lower()) == plain_index(change.in_new_names(index))
        if not same or not set(lost).isdisjoint(columns_of(index)):
            yield index, change.to.schema.index(index.name) is not None


def added_indexes(change: TargetChange, lost: Collection[str]) -> Iterator[Index]:
    """The indexes to add after columns have changed; ``lost`` as for ``dropped_indexes``."""
    lost_after = {change.renamed.get(name, name).lower() for name in lost}
    kept = {
        i.name.lower(): plain_index(change.in_new_names(i)) for i in _secondary(change.from_schema)
    }
    for index in _secondary(change.to.schema):
        same = kept.get(index.name.lower()) == plain_index(index)
        if not same or not lost_after.isdisjoint(columns_of(index)):
            yield index


def dropped_checks(change: TargetChange) -> Iterator[Check]:
    """The checks to drop before columns change.

    A check that names a renamed column differs in its text, so it is dropped: MySQL refuses to
    rename a column that a check names. One that reads otherwise when a column is converted is
    dropped, too: rows from before the conversion need not pass it after that.
    """
    return _checks_of(change.from_schema, change.to.schema, _converted(change))


def added_checks(change: TargetChange) -> Iterator[Check]:
    """The checks to add after columns have changed."""
    return _checks_of(change.to.schema, change.from_schema, _converted(change))


def columns_of(index: Index) -> list[str]:
    """Lower-case names of the columns that an index reads, in order."""
    names: list[str] = []
    for part in index.parts:
        names += [part.column] if part.column else column_names(part.expression)
    return [name.lower() for name in names]


def _secondary(schema: TableSchema) -> list[Index]:
    return [i for i in schema.indexes if i.kind is not IndexKind.PRIMARY]


def _converted(change: TargetChange) -> dict[str, ColumnType]:
    """Name → type, for each column whose values do not read alike before and after."""
    if not (change.from_schema.checks and change.to.schema.checks):
        return {}
    found = {}
    for column_id in change.stays:
        before, after = change.before[column_id], change.after[column_id]
        if not reads_alike(before.type, after.type):
            exact = is_exact_number(before.type)
            found[after.name.lower()] = after.type if exact else before.type
    return found


def _checks_of(
    schema: TableSchema, other: TableSchema, converted: Mapping[str, ColumnType]
) -> Iterator[Check]:
    """The checks of a table that the other one lacks, or that read otherwise there."""
    kept = {_check_key(check) for check in other.checks}
    return (
        check
        for check in schema.checks
        if _check_key(check) not in kept or reads_otherwise(check.expression, converted)
    )


def _check_key(check: Check) -> tuple[str, str, bool]:
    return check.name.lower(), check.expression, check.enforced
