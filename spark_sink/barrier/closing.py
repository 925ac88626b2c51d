"""Why the sink may not change a target now. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum

from shardmerge.schemas.model.names import TargetTable
from shardmerge.schemas.records.progress import CUT_OVER_CODE


class Closing(IntEnum):
    """The reason; its number is stored."""

    CUT_OVER = 1
    """Applications write to it: ``shardmerge cutover``."""
    SWAPPING = 2
    """A rebuilt table takes its place: ``shardmerge rebuild``."""

    @property
    def clause(self) -> str:
        """The reason, as a part of a sentence."""
        if self is Closing.CUT_OVER:
            return "the target was cut over"
        return "a rebuilt table takes the target's place"

    @property
    def hint(self) -> str:
        """What the operator can do."""
        if self is Closing.CUT_OVER:
            return (
                "nothing has to be done; `shardmerge cutover --undo` is the way back as long as no "
                "application has written to the target"
            )
        return (
            "this takes seconds while `shardmerge rebuild` runs; if the command has ended, run it "
            "again, or with --abort"
        )

    @property
    def code(self) -> str:
        """The code for rows that wait."""
        return CUT_OVER_CODE if self is Closing.CUT_OVER else "SM-6510"


@dataclass(frozen=True, slots=True)
class Marks:
    """What other commands have noted in the target for the sink.

    Attributes:
        closed: The targets that the sink may not change, and why.
        swaps: The number of the latest rebuild whose table is in its target's place; 0 without one.
    """

    closed: Mapping[TargetTable, Closing]
    swaps: int
