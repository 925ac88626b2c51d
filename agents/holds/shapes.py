"""What is told of held shards, as pages and ``--json`` show it. Pure.

Every field is always there. Later versions may add fields.
"""

from __future__ import annotations

from dataclasses import dataclass

WITHOUT = "none"
"""The definition of a column, on the side of a conflict that does not have it."""


@dataclass(frozen=True, slots=True)
class Reason:
    """A reason with its code.

    Attributes:
        code: Such as ``SM-1902``.
        text: A clause or a sentence.
    """

    code: str
    text: str


@dataclass(frozen=True, slots=True)
class WayOut:
    """One way to end a wait.

    Attributes:
        command: A line that can be pasted into a shell; "" when the way is DDL on a shard.
        does: What happens then. For a command the coordinator's own rules were asked.
    """

    command: str
    does: str


@dataclass(frozen=True, slots=True)
class Side:
    """One of the definitions that stand against each other.

    Attributes:
        shards: Sorted.
        definition: As SQL; ``none`` for shards without the column.
    """

    definition: str
    shards: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ShownConflict:
    """One reason for which shards of a target are held, as ``shardmerge conflicts`` prints it.

    Attributes:
        target: As ``database.table``.
        reason: Why the shards are held.
        hint: What ends it.
        kind: ``conflict``, ``lock`` or ``unreadable``, as in ``Cause``.
        about: What contradicts, from outside in, such as ``column a, type``; "" where the shards do
            not contradict each other.
        since: Of the earliest of these holds.
        held: The shards that wait, sorted.
        sides: The definitions of the column in question, those of most shards first.
        code: Of the reason, such as ``SM-1203``; "" without one.
    """

    target: str
    kind: str
    about: str
    reason: str
    hint: str
    since: str
    held: tuple[str, ...]
    sides: tuple[Side, ...]
    code: str = ""
