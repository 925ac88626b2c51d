"""What a server's binlog tells of the rows of a table, and from which place on. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias


@dataclass(frozen=True, slots=True)
class BinlogEnd:
    """Where the binlog of a server ended.

    Attributes:
        server: Tells the server from every other one.
        file, pos: The place behind the last event.
    """

    server: str
    file: str
    pos: int


@dataclass(frozen=True, slots=True)
class ChangedRow:
    """The values of a row before or after a change, in the order of the table's columns."""

    values: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class LoggedText:
    """A statement that the server logged as text: DDL, BEGIN, or rows changed without ROW format.

    Attributes:
        database: The default database; "" without.
    """

    database: str
    sql: str


Change: TypeAlias = ChangedRow | LoggedText
