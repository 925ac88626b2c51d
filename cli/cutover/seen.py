"""What a look at a cut-over found, what the operator told, and a step. Pure; see ``procedure``."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from .record import CutoverRecord, Tidied


class Act(StrEnum):
    """What a step does; see ``procedure``."""

    REFUSE = "refuse"
    ASK = "ask"
    COMPARE = "compare"
    READ_ONLY = "read-only"
    NOTE = "note"
    CATCH_UP = "catch-up"
    PROVE = "prove"
    CLOSE = "close"
    TIDY = "tidy"
    OPEN = "open"
    DONE = "done"
    FORGET_ENDS = "forget-ends"
    COMPARE_BACK = "compare-back"
    TURN_BACK = "turn-back"
    RESTORE = "restore"
    REOPEN = "reopen"
    WRITABLE = "writable"
    FORGET = "forget"


ENDS = frozenset({Act.REFUSE, Act.ASK, Act.DONE, Act.OPEN, Act.FORGET, Act.FORGET_ENDS})
"""After these a call has nothing more to do."""


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a cut-over does not go on, or what the operator must know.

    Attributes:
        code: See ``schemas.codes``; "" for a note.
        text: What was seen, and where.
        hint: What the operator can do.
    """

    code: str
    text: str
    hint: str = ""


@dataclass(frozen=True, slots=True)
class SourceSeen:
    """A source with shards of the target, as it is now.

    Attributes:
        name: Of the source.
        flavour: ``mysql`` or ``mariadb``.
        read_only: Whether the server refuses writes of everybody without a special privilege.
        before: Variables and their values now, to be set back by ``WRITABLE``.
        written: What its binlog has of the shards' tables behind the noted end, for people.
        shared: Other targets that have shards on it.
        handed_over: Those of them that were cut over.
    """

    name: str
    flavour: str = "mysql"
    read_only: bool = False
    before: tuple[tuple[str, str], ...] = ()
    written: tuple[str, ...] = ()
    shared: tuple[str, ...] = ()
    handed_over: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Seen:
    """Everything that the next step depends on, as one look found it.

    Attributes:
        record: As it is stored.
        closed: Whether the sink may not change the target.
        sources: Those with shards of the target, sorted by name.
        obstacles: What must be mended first.
        untidy: What served the merging alone and is to be removed, in the order of execution.
        unchanged: Whether this call has found that target and shards are still equal.
    """

    record: CutoverRecord
    closed: bool = False
    sources: tuple[SourceSeen, ...] = ()
    obstacles: tuple[Reason, ...] = ()
    untidy: tuple[Tidied, ...] = ()
    unchanged: bool = False

    @property
    def written(self) -> tuple[str, ...]:
        """What the sources have behind the noted ends."""
        return tuple(text for source in self.sources for text in source.written)


@dataclass(frozen=True, slots=True)
class Wishes:
    """What the operator told.

    Attributes:
        read_only: To make the sources read-only.
        stopped: That nobody writes to the shards.
        confirmed: That other targets may be stopped as well, and that there may be no way back.
        unproven: On the way back: that no application has written to the target.
    """

    read_only: bool = False
    stopped: bool = False
    confirmed: bool = False
    unproven: bool = False


@dataclass(frozen=True, slots=True)
class Step:
    """One step.

    Attributes:
        reasons: For ``REFUSE``, ``ASK`` and ``FORGET_ENDS``: why.
        source: For ``READ_ONLY`` and ``WRITABLE``: which one.
        statements: What is executed on the source or target, as SQL.
        tidied: For ``TIDY`` and ``RESTORE``.
    """

    act: Act
    reasons: tuple[Reason, ...] = ()
    source: SourceSeen | None = None
    statements: tuple[str, ...] = ()
    tidied: Tidied | None = None
