"""What is known of comparisons of targets with their shards. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from shardmerge.agents.holds.shapes import WayOut
from shardmerge.schemas.model.names import TargetTable
from shardmerge.schemas.records.decisions import Decision
from shardmerge.schemas.records.validations import TargetValidation, record_keys

OLD_MS = 7 * 86_400_000
"""A comparison that ended longer ago says little of the rows of today."""
DIFFERENCE_WORDS = {
    "missing": "missing",
    "extra": "that no shard has",
    "differs": "with other values",
    "count": "without a key, in another number",
}
"""Kind of a difference → how people call such a row of the target."""


@dataclass(frozen=True, slots=True)
class ValidationView:
    """The comparisons of one target that count now.

    Attributes:
        whole: The latest one that compared all rows; None if none is known.
        later: One that ended later and did not compare all rows; None without one.
    """

    whole: TargetValidation | None = None
    later: TargetValidation | None = None

    @property
    def known(self) -> tuple[TargetValidation, ...]:
        """Both, the latest one first."""
        return tuple(each for each in (self.later, self.whole) if each is not None)

    @property
    def latest(self) -> TargetValidation | None:
        """The one that ended last; None if none is known."""
        return self.known[0] if self.known else None

    @property
    def differing(self) -> TargetValidation | None:
        """The one that found most differences; None if none did.

        A comparison that did not compare all rows proves nothing of the differences from before.
        """
        found = [each for each in self.known if each.differences]
        return max(found, key=lambda each: each.differences, default=None)

    @property
    def telling(self) -> TargetValidation | None:
        """The one that ``state`` is about: ``differing``, else the latest one."""
        return self.differing or self.latest

    @property
    def is_later_incomplete(self) -> bool:
        """Whether the state is about the comparison of all rows, and a later one ended early."""
        later = self.later
        return later is not None and self.telling is self.whole and not later.complete

    @property
    def state(self) -> str:
        """``never``, ``differs``, ``failed``, ``incomplete`` or ``equal``.

        ``failed``: something did not answer in the latest one. ``incomplete``: it could not compare
        everything that it was to compare. Nothing else is known then, or all rows were equal.
        """
        if self.latest is None:
            return "never"
        if self.differing is not None:
            return "differs"
        if self.latest.code:
            return "failed"
        return "equal" if all(each.is_clean for each in self.known) and self.whole else "incomplete"

    @property
    def since_ms(self) -> int:
        """Since when differences are known, in milliseconds since 1970; 0 without differences."""
        return min((each.since_ms for each in self.known if each.since_ms), default=0)


NEVER = ValidationView()
"""Of a target of which no comparison is known."""


@dataclass(slots=True)
class ValidationLog:
    """Collects the records of comparisons. The last record of each key counts."""

    _known: dict[str, TargetValidation] = field(default_factory=dict)

    def add(self, record: TargetValidation) -> None:
        """Note a comparison."""
        self._known[record.record_key] = record

    def forget(self, key: str) -> None:
        """Note the tombstone of a record: its target has another table now."""
        self._known.pop(key, None)

    def of(self, target: TargetTable) -> ValidationView:
        """What is known of a target."""
        whole, later = map(self._known.get, record_keys(target))
        if whole is not None and later is not None and later.ended_ms <= whole.ended_ms:
            later = None
        return ValidationView(whole, later) if whole or later else NEVER


def is_old(found: TargetValidation, now_ms: int) -> bool:
    """Whether a comparison ended long ago.

    Args:
        found: The comparison.
        now_ms: Milliseconds since 1970.
    """
    return now_ms - found.ended_ms > OLD_MS


def is_before_statement(found: TargetValidation, decisions: Sequence[Decision]) -> bool:
    """Whether the target got a statement after a comparison.

    Args:
        found: The comparison.
        decisions: Of its target.
    """
    return bool(found.version) and any(
        each.statements for each in decisions if each.version > found.version
    )


def rows_differ(found: TargetValidation) -> str:
    """How many rows differ, such as ``2 rows differ: 1 missing, 1 that no shard has``."""
    numbers = ((getattr(found, kind), words) for kind, words in DIFFERENCE_WORDS.items())
    parts = [f"{number:,} {words}" for number, words in numbers if number]
    number = found.differences
    rows = f"{number:,} row{'' if number == 1 else 's'} differ{'s' if number == 1 else ''}"
    return f"{rows}: {', '.join(parts)}"


def shortcomings(found: TargetValidation) -> tuple[str, ...]:
    """What keeps a comparison from telling of every row of the target, a clause each."""
    parts = []
    if found.only:
        names = ", ".join(map(str, found.only[:3]))
        more = f" and {len(found.only) - 3} more" if len(found.only) > 3 else ""
        parts.append(f"it was to compare only {names}{more}")
    if found.stopped:
        parts.append(f"{found.code}: {found.stopped}" if found.code else found.stopped)
    for number, one, many in (
        (found.obstacles, "shard could not be compared", "shards could not be compared"),
        (found.in_doubt, "row looks different, which is not confirmed",
         "rows look different, which is not confirmed"),
        (found.unsettled, "row changed each time that it was read",
         "rows changed each time that they were read"),
    ):  # fmt: skip
        if number:
            parts.append(f"{number:,} {one if number == 1 else many}")
    return tuple(parts) or (() if found.complete else ("it did not compare all rows",))


def repairs(found: TargetValidation) -> tuple[WayOut, ...]:
    """The calls that repair what a comparison found, the better one first."""
    call = f"shardmerge validate {found.target} --pipeline FILE"
    ways = []
    if found.missing or found.differs:
        ways.append(
            WayOut(
                f"{call} --repair reread",
                "Have the connectors read the rows again that are missing or have other values. "
                "Traffic may go on.",
            )
        )
    if found.extra:
        what = "Print a DELETE for each row that no shard has"
        ways.append(WayOut(f"{call} --repair sql", f"{what}, to be run by you on the target."))
    if found.count:
        what = "Print statements for rows without a key, to be run by you on the target"
        ways.append(WayOut(f"{call} --repair sql", f"{what}, while nothing writes these rows."))
    ways.append(WayOut(call, "Compare again. The differences stay on this page until then."))
    return tuple(ways)
