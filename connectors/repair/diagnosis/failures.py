"""What a failed task's stack trace tells of its failure. Pure.

Source: Debezium 3.6, ``BinlogStreamingChangeEventSource``; measured, tests/integration/connect.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

_HANDLES_STATEMENT = ".handleQueryEvent("
# The statement is not escaped: a line of it can end with a quote. ANTLR's message follows it.
_TOLD_STATEMENT = re.compile(
    r"couldn't be parsed\..*? with the statement '(.*?)'\n"
    r"(?:mismatched input |no viable alternative at input |extraneous input |missing [^\n]+ at "
    r"|token recognition error at: |rule \w+ )",
    re.DOTALL,
)
_WRONG_SIZE = re.compile(r"Error processing row in (.+?), internal schema size \d+, but row size")
_UNKNOWN_TABLE = re.compile(
    r"Encountered change event for table (.+?) whose schema isn't known to this connector"
)


class FailedAt(Enum):
    """What a connector was reading when it failed."""

    STATEMENT = "a statement that Debezium cannot read"
    ROW = "a row of a table that Debezium knows otherwise"
    OTHER = "something else"


@dataclass(frozen=True, slots=True)
class Failure:
    """A task's failure.

    Attributes:
        at: What it was reading.
        statement: The text of the statement, where the trace has it.
        table: Of a row: its table's name, or ``database.table``.
    """

    at: FailedAt
    statement: str = ""
    table: str = ""

    def is_of_table(self, name: str) -> bool:
        """Whether a row is of the table that is called ``database.table``."""
        return name == self.table or name.endswith(f".{self.table}")


def failure_of(trace: str) -> Failure:
    """Read a stack trace."""
    for pattern in (_WRONG_SIZE, _UNKNOWN_TABLE):
        if (row := pattern.search(trace)) is not None:
            return Failure(FailedAt.ROW, table=row[1])
    if _HANDLES_STATEMENT in trace:
        told = _TOLD_STATEMENT.search(trace)
        return Failure(FailedAt.STATEMENT, told[1] if told is not None else "")
    return Failure(FailedAt.OTHER)
