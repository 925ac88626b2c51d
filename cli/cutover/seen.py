"""What a look found, the operator's options, and a step. Pure; see ``procedure``."""

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
"""A call ends after one of these steps."""


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a cut-over does not go on.

    Attributes:
        code: See ``schemas.codes``.
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
        name: Name of the source.
        flavour: ``mysql`` or ``mariadb``.
        read_only: Whether ``super_read_only`` is on, for MariaDB ``read_only``.
        before: The present values of these variables, which ``WRITABLE`` sets back.
        written: Says what its binlog has about the target's shards behind the noted end; only the
            first few events.
        shared: Other targets that have shards on this source.
        handed_over: Which of ``shared`` were cut over.
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
        record: The stored record.
        closed: Whether the sink is forbidden to change the target.
        sources: The sources with shards of the target, sorted by name.
        obstacles: What has to be done first.
        untidy: The statements of step ``tidy`` that are not executed yet, in their order.
        unchanged: On the way back: whether this call has found target and shards equal.
        fresh: Whether this call has compared the rows while applications wrote.
    """

    record: CutoverRecord
    closed: bool = False
    sources: tuple[SourceSeen, ...] = ()
    obstacles: tuple[Reason, ...] = ()
    untidy: tuple[Tidied, ...] = ()
    unchanged: bool = False
    fresh: bool = False

    @property
    def written(self) -> tuple[str, ...]:
        """What the sources' binlogs have behind the noted ends."""
        return tuple(text for source in self.sources for text in source.written)


@dataclass(frozen=True, slots=True)
class Wishes:
    """The operator's options.

    Attributes:
        read_only: Make the sources read-only.
        stopped: Nobody writes to the shards any more.
        confirmed: The answer to each question is yes (``--yes``).
        unproven: On the way back: no application has written to the target.
        bounded: Only the rows that have changed are compared while the writes stand, although
            nothing tells which rows of the target somebody has changed by hand.
    """

    read_only: bool = False
    stopped: bool = False
    confirmed: bool = False
    unproven: bool = False
    bounded: bool = False


@dataclass(frozen=True, slots=True)
class Step:
    """One step.

    Attributes:
        reasons: For ``REFUSE``, ``ASK`` and ``FORGET_ENDS``: why. For ``DONE``: what was written to
            shards afterwards.
        source: For ``READ_ONLY`` and ``WRITABLE``: the source that is changed.
        statements: The SQL that is executed on the source or the target.
        tidied: For ``TIDY`` and ``RESTORE``: the statement with its way back.
    """

    act: Act
    reasons: tuple[Reason, ...] = ()
    source: SourceSeen | None = None
    statements: tuple[str, ...] = ()
    tidied: Tidied | None = None
