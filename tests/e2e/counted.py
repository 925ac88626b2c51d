"""How many rows a target has: asked often, a whole comparison would keep the processors busy."""

from __future__ import annotations

from shardmerge.local.line import Line
from shardmerge.schemas.model.names import TargetTable


def count(line: Line, target: TargetTable) -> int:
    """Rows of a target; none before it is there."""
    with line.connect_target() as connection, connection.cursor() as cursor:
        table = "(table_schema, table_name) = (%s, %s)"
        name = (target.database, target.table)
        if not cursor.execute(f"SELECT 1 FROM information_schema.tables WHERE {table}", name):
            return 0
        cursor.execute(f"SELECT COUNT(*) FROM {target.sql}")
        ((rows,),) = cursor.fetchall()
    return int(rows)
