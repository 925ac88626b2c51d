"""The stored record of a cut-over: the next call goes on from it. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from shardmerge.schemas.model.position import SourcePosition
from shardmerge.spark_sink.validation.proofs import NO_PROOF, Proof


@dataclass(frozen=True, slots=True)
class MadeReadOnly:
    """A source that the command has made read-only, or is about to.

    Attributes:
        source: Name of the source.
        before: Variables with their earlier values, in the order in which they are set back.
    """

    source: str
    before: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class NotedEnd:
    """Where the binlog of a source ended after the writes had stopped."""

    source: str
    position: SourcePosition


@dataclass(frozen=True, slots=True)
class Tidied:
    """A statement of step ``tidy`` that was executed on the target, or was about to be.

    Attributes:
        sql: The statement.
        back: The statement that undoes it; "" when nothing can.
    """

    sql: str
    back: str


@dataclass(frozen=True, slots=True)
class CutoverRecord:
    """How far the cut-over of a target is. It is stored in the target's control database.

    Attributes:
        by: Who began it; "" when none has begun.
        begun: When it began.
        compared: When the comparison under traffic ended without a difference; "" before.
        proof: What the last comparison proves for later.
        unprovable: Why a comparison of this table proves nothing for later; "" if it can.
        read_only: The sources that the command has made read-only.
        noted: The ends of the sources' binlogs; empty before they are noted.
        passed: Whether the target has applied everything up to the noted ends.
        proven: Whether the comparison after that ended without a difference.
        changed_only: Whether that comparison read only the rows that had changed since ``proof``.
        rows: How many rows of the shards that comparison read.
        tidied: Statements on the target, in the order of their execution.
        opened: When applications were allowed to write to the target; "" before.
        undoing: Whether the way back has begun.
        not_compared: What the last comparison did not compare, as sentences.
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
    proof: Proof = NO_PROOF
    changed_only: bool = False
    unprovable: str = ""
    not_compared: tuple[str, ...] = ()

    @property
    def is_begun(self) -> bool:
        """Whether a call has stored a step."""
        return bool(self.begun)
