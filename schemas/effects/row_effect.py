"""What a change did to one column of existing rows, as a value. Pure."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RowEffect:
    """What a change did to one column of the existing rows.

    Attributes:
        id: The column's identity.
        name: The column's name on the shard after the change.
        fill: The value that every row holds now, as ``fill_text``; "" when it is not known.
        reason: What happened, a clause for people.
        code: Of the reason, see ``schemas.codes``; "" in what an earlier version stored.
        anew: Whether the column was added, so that no row has a value from before the change.
        passed: Whether rows that were written after the change may be in the target already. Then
            no statement may write ``fill`` to the target: it would overwrite them.
    """

    id: str
    name: str
    fill: str
    reason: str
    anew: bool = False
    passed: bool = False
    code: str = ""
