"""The canonical form of checks and foreign keys: generated names.

Source: MySQL Reference Manual, "CHECK Constraints", "FOREIGN KEY Constraints"; measured.
"""

from __future__ import annotations

from shardmerge.schemas.ddl.changes import WrittenForeignKey
from shardmerge.schemas.model.frozen import replace
from shardmerge.schemas.model.server_context import ServerContext
from shardmerge.schemas.model.tables import Check, Column, ForeignKey, TableSchema


def normal_checks(
    checks: tuple[Check, ...],
    columns: tuple[Column, ...],
    table_name: str,
    context: ServerContext,
) -> tuple[Check, ...]:
    """Name unnamed checks as the server does. On a server that ignores checks there are none."""
    if not checks:
        return checks
    if not context.stores_checks:
        return ()
    if context.is_mariadb:
        return _in_column_order(_mariadb_names(checks), columns)
    if all(check.name for check in checks):
        return checks
    prefix = f"{table_name}_chk_"
    number = highest_number([check.name for check in checks], prefix)
    out: list[Check] = []
    for check in checks:
        if not check.name:
            number += 1
            out.append(replace(check, name=f"{prefix}{number}"))
        else:
            out.append(check)
    return tuple(out)


def _in_column_order(checks: tuple[Check, ...], columns: tuple[Column, ...]) -> tuple[Check, ...]:
    """Columns' own checks first: MariaDB names them after the column and shows them with it."""
    places = {column.name.lower(): place for place, column in enumerate(columns)}
    last = len(columns)
    return tuple(sorted(checks, key=lambda check: places.get(check.name.lower(), last)))


def _mariadb_names(checks: tuple[Check, ...]) -> tuple[Check, ...]:
    taken = {check.name.lower() for check in checks}
    out: list[Check] = []
    number = 0
    for check in checks:
        if not check.name:
            number += 1
            while f"constraint_{number}" in taken:
                number += 1
            out.append(replace(check, name=f"CONSTRAINT_{number}"))
        else:
            out.append(check)
    return tuple(out)


def normal_foreign_keys(
    schema: TableSchema, table_name: str, context: ServerContext
) -> tuple[ForeignKey, ...]:
    """Name unnamed foreign keys."""
    if not any(isinstance(key, WrittenForeignKey) for key in schema.foreign_keys):
        return schema.foreign_keys
    prefix = f"{table_name}_ibfk_"
    number = highest_number([key.name for key in schema.foreign_keys], prefix)
    written = [key for key in schema.foreign_keys if isinstance(key, WrittenForeignKey)]
    number = max(number, *(key.taken for key in written))
    out: list[ForeignKey] = []
    for key in schema.foreign_keys:
        if not isinstance(key, WrittenForeignKey):
            out.append(key)
            continue
        name = key.name
        if not name and context.at_least(80000, 0) and not context.at_least(80016, None):
            # MySQL 8.0 up to 8.0.15 and MariaDB use the index's name for an unnamed key.
            name = key.index_name
        if not name:
            number += 1
            name = f"{prefix}{number}"
        out.append(
            ForeignKey(
                name, key.columns, key.parent_database, key.parent_table, key.parent_columns,
                key.on_delete, key.on_update,
            )
        )  # fmt: skip
    # The server lists foreign keys by name; without a new one they are sorted already.
    return tuple(sorted(out, key=lambda key: key.name.lower()))


def highest_number(names: list[str], prefix: str) -> int:
    """The highest number of a generated name among these; 0 when there is none."""
    numbers = [
        int(name[len(prefix) :])
        for name in names
        if name.lower().startswith(prefix.lower()) and name[len(prefix) :].isdigit()
    ]
    return max(numbers, default=0)
