"""How a target's table differs from what was decided and executed, as records."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from shardmerge.schemas.model.actions import Adoption
from shardmerge.schemas.model.errors import ContractError

from . import plain


class DriftKind(StrEnum):
    """What a difference can do to rows; the first one does nothing."""

    HARMLESS = "harmless"
    """Rows are written as before."""
    REFUSES = "refuses"
    """The table can refuse rows that the decided one accepts."""
    VALUES = "values"
    """The table can change values of rows, or replace rows, that the decided one keeps."""
    MISSING = "missing"
    """The table lacks what was decided."""
    UNREAD = "unread"
    """The table has something that shardmerge does not understand, so it is not compared."""


CODES = {
    DriftKind.HARMLESS: "SM-6801",
    DriftKind.REFUSES: "SM-6802",
    DriftKind.VALUES: "SM-6803",
    DriftKind.MISSING: "SM-6804",
    DriftKind.UNREAD: "SM-6805",
}
MET_CODE = "SM-6806"
"""Of a statement that meets a difference in what it changes."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing in which a target's table differs from what was decided and executed.

    Attributes:
        subject: ``column:<name>``, ``index:<name>``, ``check:<name>``, ``foreign key:<name>``,
            ``trigger:<name>`` (lower-case), ``partitioning``, ``charset`` (the table's default), or
            ``table`` for all of it.
        kind: What it can do to rows.
        expected: The definition that was decided, as SQL; "" when there is to be none.
        found: The definition that the server shows; "" when there is none.
        since_ms: When the sink first saw it, in milliseconds since 1970; 0 when it has not.
        clear_ms: When the sink last saw the table without it; 0 when it never did. The change was
            made between ``clear_ms`` and ``since_ms``.
    """

    subject: str
    kind: DriftKind
    expected: str
    found: str
    since_ms: int = 0
    clear_ms: int = 0

    @property
    def code(self) -> str:
        """The code of its kind, see ``schemas.codes``."""
        return CODES[self.kind]

    @property
    def is_same_as(self) -> tuple[str, str, str, str]:
        """What tells whether two differences are the same one, seen at two times."""
        return self.subject, self.kind.value, self.expected, self.found


@dataclass(frozen=True, slots=True)
class Adoptions:
    """The argument of the command ``adopt``, as JSON."""

    adoptions: tuple[Adoption, ...]

    def __str__(self) -> str:
        return plain.dump(self).decode()

    @classmethod
    def read(cls, text: str) -> Adoptions:
        """The value of a command's argument.

        Raises:
            ContractError: The text is no such argument.
        """
        found = plain.load(cls, text.encode())
        if not found.adoptions:
            raise ContractError("nothing is adopted", code="SM-6808")
        return found


def needs_somebody(kind: DriftKind) -> bool:
    """Whether an operator should look at a difference of that kind."""
    return kind is not DriftKind.HARMLESS


def with_times(
    found: tuple[Difference, ...],
    known: tuple[Difference, ...],
    *,
    now_ms: int,
    clear_ms: int,
) -> tuple[Difference, ...]:
    """The differences with the times at which they were first seen.

    Args:
        found: Of this look, without times.
        known: Of the look before, with times.
        now_ms: When this look was, in milliseconds since 1970.
        clear_ms: When the table was looked at before; 0 when it was not.
    """
    before = {each.is_same_as: each for each in known}
    timed = []
    for each in found:
        old = before.get(each.is_same_as)
        since, clear = (old.since_ms, old.clear_ms) if old else (now_ms, clear_ms)
        timed.append(Difference(each.subject, each.kind, each.expected, each.found, since, clear))
    return tuple(timed)
