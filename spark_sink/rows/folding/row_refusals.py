"""Why rows cannot be applied, whatever their values are. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .segment_plan import Refusal

UNNAMED = Refusal(
    "a record in the row topic of several shards does not say which shard it is of",
    "stop or correct the program that wrote the record: every shard of the topic waits at it",
    code="SM-1504",
)
SPREAD = Refusal(
    "the table has no primary key, so its rows are spread over the partitions of its topic without "
    "an order",
    "add a primary key on the shard, or give the topic one partition and a snapshot",
    code="SM-1505",
)
WITHOUT_BEFORE = Refusal(
    "an update of a table without a primary key has no image of the row before",
    "set binlog_row_image=FULL",
    code="SM-1506",
)
UNKNOWN = Refusal(
    "a snapshot of the table was taken again after rows of it had come from the binlog; without a "
    "primary key, or origin columns, nobody knows which of the target's rows are this shard's",
    "delete the shard's rows in the target by hand, then start the sink with on_truncate = 'keep' "
    "in the shard's route: it goes on with what the new snapshot brings",
    code="SM-1507",
)

ROWS_NOT_TOLD_APART = Refusal(
    "its rows in the target have to go, since its table is read again, and the target has rows of "
    "shards that left; without a primary key, or origin columns, nobody knows which row is whose",
    "in the target, delete by hand the rows of the shards that are read again, then start the sink "
    "with on_truncate = 'keep' in their routes: it goes on with what is read",
    code="SM-1507",
)


def differing(image: Mapping[str, Any], expected: frozenset[str]) -> Refusal:
    """The refusal of an image whose columns are not exactly those of its segment."""
    parts = [
        f"{what} {', '.join(sorted(names)[:5])}"
        for what, names in (
            ("unknown:", image.keys() - expected),
            ("missing:", expected - image.keys()),
        )
        if names
    ]
    return Refusal(
        f"the row's columns are not those of the shard's tracked schema ({'; '.join(parts)})",
        "the tracked schema is wrong here: set the shard's schema, or snapshot the shard anew",
        code="SM-1508",
    )
