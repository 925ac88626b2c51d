"""The values that ``--json`` prints of decisions. Pure; see ``shapes``."""

from __future__ import annotations

from dataclasses import dataclass

from shardmerge.agents.holds.shapes import Reason


@dataclass(frozen=True, slots=True)
class DecidedFixup:
    """What a decision does about existing rows that DDL changed on a shard.

    Attributes:
        shard: As ``source/database.table``.
        kind: ``snapshot``, ``reload``, ``whole``, ``update``, ``accept`` or ``hold``: see
            [Fixup](records.md#fixup).
        columns: The columns in which rows may differ, by their names on the shard.
        reason: What the shard's rows and the target's rows hold.
        code: Of the reason, such as ``SM-1803``.
    """

    shard: str
    kind: str
    columns: tuple[str, ...]
    reason: str
    code: str


@dataclass(frozen=True, slots=True)
class DecisionLine:
    """One decision, as ``shardmerge decisions`` prints it.

    Attributes:
        target: As ``database.table``; "" for a statement that concerns no shard.
        position: Where the change stands in its source; "" for a command.
        reason: Why it was decided so.
        hint: For a hold or a refused command: what helps.
        warnings: What the operator must know although nothing is held.
        version: 0 for a statement that concerns no shard.
        time: When the agents wrote it.
        shard: "" for a command that is about no single shard's schema.
        change: The source and offset of what was decided.
        outcome: ``emit``, ``no-op``, ``hold``, ``refused`` or ``ignored``.
        asked: The statement of the source, or the command.
        by: Who gave the command; "" for a statement.
        statements: For the target, in order.
        state: ``executed``, ``open`` or ``refused`` by the target; "" without statements.
        released: Shards that it releases.
        code: Of the reason, such as ``SM-1203``; "" without one.
        warning_codes: One for each of ``warnings``, in their order.
        statement_reasons: Why the target gets each of ``statements``, in their order.
        fixups: What is done about existing rows that DDL changed.
    """

    target: str
    version: int
    time: str
    shard: str
    position: str
    change: str
    outcome: str
    asked: str
    by: str
    reason: str
    hint: str
    statements: tuple[str, ...]
    state: str
    released: tuple[str, ...]
    warnings: tuple[str, ...]
    code: str = ""
    warning_codes: tuple[str, ...] = ()
    statement_reasons: tuple[Reason, ...] = ()
    fixups: tuple[DecidedFixup, ...] = ()
