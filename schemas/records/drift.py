"""Records of how a target's table differs from what was decided and executed."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from shardmerge.schemas.model.actions import Adoption
from shardmerge.schemas.model.errors import ContractError

from . import plain


class DriftKind(StrEnum):
    """What a difference can do to rows."""

    HARMLESS = "harmless"
    """The sink writes rows as before."""
    REFUSES = "refuses"
    """The table can refuse rows that the decided table accepts."""
    VALUES = "values"
    """The table can change values of rows, or replace rows. The decided table does neither."""
    MISSING = "missing"
    """The table lacks what was decided."""
    UNREAD = "unread"
    """The table cannot be compared, because shardmerge does not understand its definition."""


CODES = {
    DriftKind.HARMLESS: "SM-6801",
    DriftKind.REFUSES: "SM-6802",
    DriftKind.VALUES: "SM-6803",
    DriftKind.MISSING: "SM-6804",
    DriftKind.UNREAD: "SM-6805",
}
MET_CODE = "SM-6806"
"""The code of a statement that would overwrite a change by hand."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One difference between a target's table and what was decided and executed.

    Attributes:
        subject: ``column:<name>``, ``index:<name>``, ``check:<name>``, ``foreign key:<name>``,
            ``trigger:<name>`` (lower-case), ``partitioning``, ``charset`` (the table's default), or
            ``table`` for the whole table. In an Iceberg table also ``identifier`` (its identifier
            fields), ``rows`` (somebody else committed rows) and ``rollback`` (somebody set the
            table back).
        kind: What the difference can do to rows.
        expected: The definition that was decided, as SQL; "" when none was decided.
        found: The definition that the server shows; "" when there is none.
        since_ms: When the sink first saw the difference, in milliseconds since 1970; 0 when it has
            not seen it yet.
        clear_ms: When the sink last saw the table without the difference; 0 when this is not known.
            Somebody made the change between ``clear_ms`` and ``since_ms``.
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
        """A key. Two looks saw the same difference if their keys are equal; times do not count."""
        return self.subject, self.kind.value, self.expected, self.found


@dataclass(frozen=True, slots=True)
class Adoptions:
    """The argument of the command ``adopt``, as JSON."""

    adoptions: tuple[Adoption, ...]

    def __str__(self) -> str:
        return plain.dump(self).decode()

    @classmethod
    def read(cls, text: str) -> Adoptions:
        """Parse a command's argument.

        Raises:
            ContractError: The text is not the JSON of an ``Adoptions`` with at least one adoption.
        """
        found = plain.load(cls, text.encode())
        if not found.adoptions:
            raise ContractError("the command names nothing to adopt", code="SM-6808")
        return found


def needs_somebody(kind: DriftKind) -> bool:
    """Whether an operator should act on a difference of this kind: heal it or adopt it."""
    return kind is not DriftKind.HARMLESS


def unread_difference(reason: str) -> Difference:
    """The difference of a table that was not compared, for this reason."""
    return Difference("table", DriftKind.UNREAD, "", reason)


def in_fingerprint(subject: str) -> bool:
    """Whether every change of such a part changes the fingerprint that a look compares first.

    Changes of checks, foreign keys and partitions may leave the fingerprint as it is: it only has
    their names, or whether there are any.
    """
    return subject.partition(":")[0] not in ("check", "foreign key", "partitioning")


def with_times(
    found: tuple[Difference, ...],
    known: tuple[Difference, ...],
    *,
    now_ms: int,
    clear_ms: int,
) -> tuple[Difference, ...]:
    """Give the differences of a look their times. A known difference keeps its times.

    Args:
        found: The differences that this look found, without times.
        known: The differences that were known before, with times.
        now_ms: When this look began, in milliseconds since 1970; the ``since_ms`` of new ones.
        clear_ms: When the previous look began, the ``clear_ms`` of new ones; 0 without such a look.
    """
    before = {each.is_same_as: each for each in known}
    timed = []
    for each in found:
        old = before.get(each.is_same_as)
        since, clear = (old.since_ms, old.clear_ms) if old else (now_ms, clear_ms)
        timed.append(Difference(each.subject, each.kind, each.expected, each.found, since, clear))
    return tuple(timed)
