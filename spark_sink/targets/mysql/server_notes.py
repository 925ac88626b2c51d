"""What a server says beside a statement that it executed: which of it means a changed value. Pure.

The statements that write rows are executed in strict mode, where what cannot be stored is an error.
Some of what is stored otherwise is still only a warning or a note ("Data truncated" for blanks at
a text's end), and LOAD DATA LOCAL warns where INSERT refuses. The level tells nothing: so the
codes here, which say nothing about a value, are passed over, and any other one refuses the row.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class ServerNote(NamedTuple):
    """A row of SHOW WARNINGS."""

    level: str
    number: int
    text: str


HARMLESS = {
    1287: "syntax that is deprecated",
    1592: "a statement that is unsafe for the binlog's statement format",
    1681: "something that will be removed",
    1739: "an index that a condition cannot use",
    3170: "the memory of the range optimizer, which reads the table instead",
    3719: "utf8 as a name of utf8mb3",
    3778: "a collation that is deprecated",
}
"""Codes → what they are about: how a statement is executed or written, never what is stored.

Source: MySQL 8.0 Error Message Reference, MariaDB Error Code Reference.
"""


def decisive(said: Sequence[ServerNote], count: int) -> ServerNote | None:
    """The first note that tells of a value which is not stored as it was written.

    Args:
        said: What SHOW WARNINGS tells: at most ``max_error_count`` of them.
        count: How many there are.

    Returns:
        None when there is no such note. Where the server keeps back some, the last one with a
        text that says so: nobody can tell what those are about.
    """
    for note in said:
        if note.number not in HARMLESS:
            return note
    if len(said) < count:
        number = said[-1].number if said else 0
        return ServerNote(
            "Warning", number, f"{count} warnings, of which the server tells {len(said)}"
        )
    return None
