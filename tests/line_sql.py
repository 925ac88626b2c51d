"""SQL on the servers of a whole line, for the tests that play one."""

from __future__ import annotations

from shardmerge.local.line import Line


def execute(line: Line, source: str, *statements: str) -> None:
    """Execute statements on a source."""
    with line.connect(source) as connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


def ids(line: Line, target: str) -> list[int]:
    """The values of ``id`` in a table of the target, sorted."""
    with line.connect_target() as connection, connection.cursor() as cursor:
        cursor.execute(f"SELECT id FROM {target} ORDER BY id")
        return [row[0] for row in cursor.fetchall()]
