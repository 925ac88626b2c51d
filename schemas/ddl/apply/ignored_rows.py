"""Actions of MariaDB's ALTER IGNORE that delete rows.

The server copies the table row by row, and leaves out the rows that a key, a CHECK or a partition
does not take: duplicates, also those that a conversion makes. The binlog has the statement, and no
row events.

Source: measured on MariaDB 10.11 and 11.8; MySQL had the words until 5.7.4.
"""

from __future__ import annotations

from collections.abc import Sequence

from shardmerge.schemas.ddl.changes import (
    Action,
    AddCheck,
    AddColumn,
    AddIndex,
    ChangeColumn,
    ConvertCharset,
    NoEffect,
)

_DIVISIONS = ("PARTITION BY ", "REORGANIZE PARTITION")


def ignoring(actions: Sequence[Action], texts: Sequence[str]) -> tuple[str, ...]:
    """The canonical texts of the actions of an ALTER IGNORE.

    Args:
        actions: The actions as written.
        texts: Their texts without IGNORE, in the same order.

    Returns:
        The texts; those of actions that may leave out rows begin with IGNORE.
    """
    pairs = zip(actions, texts, strict=True)
    return tuple(f"IGNORE {text}" if _may_delete(action) else text for action, text in pairs)


def _may_delete(action: Action) -> bool:
    """Whether this action of an ALTER IGNORE may leave out rows."""
    match action:
        case AddIndex(index=index):
            return index.is_unique
        case AddColumn(indexes=indexes, checks=checks):
            return bool(indexes or checks)
        case AddCheck(check=check):
            return bool(check.expression)
        case NoEffect(text=text):
            return text.startswith(_DIVISIONS)
        case ChangeColumn() | ConvertCharset():
            return True  # a conversion can make values equal that a key holds
        case _:
            return False
