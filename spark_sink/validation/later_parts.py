"""What a table compares that an earlier form of it did not, when schemas change meanwhile. Pure.

Rows that were compared before are not compared there. So a comparison that goes on from where it
was would call equal what it has not read.
"""

from __future__ import annotations

from .compared_table import ComparedTable, Side


def later_part(before: ComparedTable, now: ComparedTable) -> str:
    """The first thing that is compared now and was not before, for people; "" if there is none.

    Both have the same key. A column or a shard that is not compared any more does not count, and
    neither does another type.
    """
    earlier = {side.shard: side for side in before.shards}
    for side in now.shards:
        known = earlier.get(side.shard)
        if known is None:
            return str(side.shard)
        if (known.condition, known.where) != (side.condition, side.where):
            return f"other rows of {side.shard}"
        if new := sorted(_judged(now, side) - _judged(before, known)):
            return f"column {new[0]} of {side.shard}"
    judged = (
        (before.judges_missing, now.judges_missing, "rows that the target lacks"),
        (before.judges_extra, now.judges_extra, "rows that only the target has"),
        (before.judges_values, now.judges_values, "the values of rows"),
    )
    for was, is_now, what in judged:
        if is_now and not was:
            return what
    return ""


def _judged(table: ComparedTable, side: Side) -> set[str]:
    pairs = zip(table.columns, side.texts, strict=True)
    return {name for name, text in pairs if text is not None}
