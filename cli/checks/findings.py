"""What the checks look at, and their findings."""

from __future__ import annotations

from dataclasses import dataclass

from shardmerge.schemas.codes.registry import coded
from shardmerge.schemas.model.names import TargetTable
from shardmerge.schemas.model.types import ColumnType


@dataclass(frozen=True, slots=True)
class Finding:
    """Something about a server. ``fault``: the pipeline must not run with it.

    Attributes:
        code: See ``schemas.codes``.
    """

    where: str
    text: str
    fault: bool = True
    code: str = ""

    def __str__(self) -> str:
        return f"{self.where}: {self.text}"

    @property
    def line(self) -> str:
        """The finding as the command prints it: its code comes first."""
        return coded(self.code, str(self))


@dataclass(frozen=True, slots=True)
class SourceColumn:
    """What decides which values a column of a source's table can have."""

    name: str
    type: ColumnType
    nullable: bool


@dataclass(frozen=True, slots=True)
class SourceTable:
    """A table of a source.

    Attributes:
        has_key: Whether it has a primary key.
    """

    database: str
    table: str
    has_key: bool
    columns: tuple[SourceColumn, ...] = ()


@dataclass(frozen=True, slots=True)
class TargetFacts:
    """The table that exists under a target's name.

    Attributes:
        engine: "" when there is no such table yet.
        triggers: Their names.
        foreign_keys: Those of the table, and those of others that refer to it.
        of_others: Whether it exists and the sink's journal has no statement about it.
    """

    table: TargetTable
    engine: str = ""
    triggers: tuple[str, ...] = ()
    foreign_keys: tuple[str, ...] = ()
    of_others: bool = False
