"""Why shards are held, as pages and ``--json`` show it. Pure.

Every field is always there. Later versions may add fields.
"""

from __future__ import annotations

from dataclasses import dataclass

WITHOUT = "none"
"""The definition on the side of shards that do not have the column."""


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
        command: A line to paste into a shell; "" if the way out is DDL on a shard.
        does: What the way out leads to. The coordinator's rules said so, except for ``set-schema``
            and ``replace``.
        kind: The kind, if the way out is an operator's command; "" otherwise.
        argument: The command's argument; "" without one, and for an argument that the operator has
            yet to write.
    """

    command: str
    does: str
    kind: str = ""
    argument: str = ""


@dataclass(frozen=True, slots=True)
class Side:
    """One of the definitions that contradict each other.

    Attributes:
        shards: The shards with this definition, sorted.
        definition: The definition as SQL; ``none`` for shards without the column.
    """

    definition: str
    shards: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ShownConflict:
    """One reason why shards of a target are held, as ``shardmerge conflicts`` prints it.

    Attributes:
        target: As ``database.table``.
        reason: Why the shards are held.
        hint: What ends it.
        kind: ``conflict``, ``lock`` or ``unreadable``, as in ``Cause``; on pages also ``pause``.
        about: What contradicts, such as ``column a, type``; "" if the shards do not contradict each
            other.
        since: When the earliest of these holds began; "" if that is not known.
        held: The shards that are held or paused, sorted.
        sides: The definitions of the column, the most common one first.
        code: The code of the reason, such as ``SM-1203``; "" without one.
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
