"""What is stored of a cut-over, so that the next call goes on where one ended. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from shardmerge.schemas.model.position import SourcePosition


@dataclass(frozen=True, slots=True)
class MadeReadOnly:
    """A source that the command has made read-only, or is about to.

    Attributes:
        source: Its name.
        before: Variables and the values that they had before, in the order of setting them back.
    """

    source: str
    before: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class NotedEnd:
    """Where the binlog of a source ended when nobody was to write to it any more."""

    source: str
    position: SourcePosition


@dataclass(frozen=True, slots=True)
class Tidied:
    """A statement that was executed on the target, or was about to be.

    Attributes:
        sql: The statement.
        back: The statement that takes its effect back; "" when there is none.
    """

    sql: str
    back: str


@dataclass(frozen=True, slots=True)
class CutoverRecord:
    """How far the cut-over of a target is. It is stored in the target's control database.

    Attributes:
        by: Who began it; "" when none is begun.
        begun: When.
        compared: When the comparison under traffic ended without a difference; "" before.
        read_only: The sources that the command has made read-only.
        noted: The ends of the sources' binlogs; empty before they are noted.
        passed: Whether the target has applied everything up to the noted ends.
        proven: Whether the comparison after that ended without a difference.
        rows: Rows of the shards that it compared.
        tidied: Statements on the target, in the order of their execution.
        opened: When the command said that applications may write to the target; "" before.
        undoing: Whether the way back was begun.
    """

    by: str = ""
    begun: str = ""
    compared: str = ""
    read_only: tuple[MadeReadOnly, ...] = ()
    noted: tuple[NotedEnd, ...] = ()
    passed: bool = False
    proven: bool = False
    rows: int = 0
    tidied: tuple[Tidied, ...] = ()
    opened: str = ""
    undoing: bool = False

    @property
    def is_begun(self) -> bool:
        """Whether anything was done."""
        return bool(self.begun)
