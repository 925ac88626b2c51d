"""What a server says about executed statements: which warnings mean a changed value. Pure.

Statements that write rows are executed in strict mode, in which a value that cannot be stored is an
error. Even so, some values are changed with only a warning or a note ("Data truncated" for blanks
at the end of a text), and LOAD DATA LOCAL warns where INSERT refuses. The level does not tell these
apart. So the codes listed here, which are not about values, are ignored, and a row with any other
code is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple


class Statement(NamedTuple):
    """A statement and the values of its placeholders."""

    sql: str
    arguments: Sequence[object] = ()


class Answer(NamedTuple):
    """A statement's rows, how many rows it changed, and how many warnings it has."""

    rows: list[tuple[Any, ...]]
    changed: int
    warnings: int


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
"""Code → what it is about: how a statement is written or executed, never what is stored.

Source: MySQL 8.0 Error Message Reference, MariaDB Error Code Reference.
"""


def changed_value_note(said: Sequence[ServerNote], count: int) -> ServerNote | None:
    """The first note that may mean that a value is not stored as it was written.

    Args:
        said: The rows of SHOW WARNINGS: at most ``max_error_count``.
        count: How many notes the statement has.

    Returns:
        None when there is no such note. If the server shows only some notes, and all of these are
        harmless, a note that says so: the others may be about values.
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
