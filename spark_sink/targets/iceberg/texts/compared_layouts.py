"""In what an Iceberg table differs from what was decided. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from shardmerge.schemas.model.actions import Action
from shardmerge.schemas.model.tables import TableSchema
from shardmerge.schemas.records.drift import Difference, DriftKind, unread_difference
from shardmerge.schemas.target.drift import differences
from shardmerge.schemas.target.drift_meetings import holds_already, met, replaced
from shardmerge.schemas.target.table_state import TABLE, TableState
from shardmerge.spark_sink.targets.drift_interface import TableComparison

from .decided import HISTORY_SUBJECTS, Decided, decided_after, part_text, states
from .history import History
from .layout import Layout
from .layout_healing import Compared

_NONE = TableState(None)


@dataclass(frozen=True, slots=True)
class ComparedLayout(TableComparison):
    """A table as it was decided, and as the catalog has it.

    Attributes:
        layouts: What a plan to heal it is made from; None when there is no such table.
    """

    layouts: Compared | None = None


def missing_table() -> ComparedLayout:
    """The comparison of a table that somebody dropped."""
    expected = TableState(TableSchema(()))
    return ComparedLayout(expected, _NONE, differences(expected, _NONE))


def no_table() -> ComparedLayout:
    """The comparison of a table that nobody has made."""
    return ComparedLayout(_NONE, _NONE, ())


def unread_layout(reason: str) -> ComparedLayout:
    """A table that was not compared, for this reason."""
    return ComparedLayout(_NONE, _NONE, (unread_difference(reason),))


def compared_layout(
    decided: Decided | None,
    real: Layout,
    history: History,
    kept: Sequence[Difference] = (),
    ignored: str = "",
) -> ComparedLayout:
    """Compare a table.

    Args:
        decided: The decided table; None for a table that does not hold the sink's state.
        real: The table's columns.
        history: The table's commits.
        kept: The known differences. Those of the history stay although its snapshots expire.
        ignored: A regular expression. A harmless difference is left out when it matches the whole
            subject; "" leaves out none.
    """
    if decided is None:
        found = "another table with this name: it does not hold the sink's state"
        each = Difference(TABLE, DriftKind.MISSING, "the table that the sink made", found)
        return ComparedLayout(_NONE, _NONE, (each,))
    known = {each.subject: each.found for each in kept if each.subject in HISTORY_SUBJECTS}
    expected, there = states(decided, real, history, known)
    return ComparedLayout(
        expected,
        there,
        tuple(
            each
            for each in differences(expected, there, part_text)
            if each.kind is not DriftKind.HARMLESS or not re.fullmatch(ignored, each.subject)
        ),
        Compared(decided.layout, real, history),
    )


@dataclass(frozen=True, slots=True)
class Meeting:
    """A statement that meets changes by hand.

    Attributes:
        hit: The changes that it would overwrite.
        is_held: Whether the table can stay as it is, because it accepts all that is decided.
        replaced: See ``drift_meetings.replaced``; empty if something is hit.
    """

    hit: tuple[Difference, ...] = ()
    is_held: bool = False
    replaced: tuple[Difference, ...] = ()


def meeting(decided: Decided | None, real: Layout, actions: Sequence[Action]) -> Meeting:
    """What a statement would overwrite.

    Args:
        decided: The decided table before the statement; None while that is not known.
        real: The table's columns.
        actions: Of the statement.
    """
    if decided is None:
        return Meeting()
    nothing = History()
    expected, found = states(decided, real, nothing)
    hit = met(expected, found, actions, part_text)
    if not hit:
        return Meeting(replaced=replaced(expected, found, actions, part_text))
    after, _ = states(decided_after(decided, actions, real, nothing), real, nothing)
    return Meeting(hit, holds_already(expected, after, found, actions))
