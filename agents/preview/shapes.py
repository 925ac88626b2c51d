"""A plan as pages and ``shardmerge plan --json`` show it. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import zip_longest

from shardmerge.agents.holds.shapes import Reason, Side, WayOut
from shardmerge.schemas.codes.registry import coded
from shardmerge.schemas.model.frozen import made_at_once


@made_at_once
@dataclass(frozen=True, slots=True)
class ShownStatement:
    """A statement that the target would get.

    Attributes:
        sql: The statement.
        kind: ``expanding``, ``contracting``, ``switching`` or ``rows``.
        waits_for: Which rows it waits for, and which wait for it.
        lossy: Which values the target loses by the statement; "" when it loses none.
        why: Why the target gets it; null where that is not told.
    """

    sql: str
    kind: str
    waits_for: str
    lossy: str = ""
    why: Reason | None = None


@dataclass(frozen=True, slots=True)
class ShownFixup:
    """What would be done about existing rows that the change altered without row events.

    Attributes:
        shard: Whose rows.
        kind: ``snapshot``, ``reload`` and ``whole`` read the shard's table again; ``update``,
            ``accept`` and ``hold`` do not.
        columns: The columns in which rows may differ.
        reason: What the shard's rows hold, and what the target's rows hold.
        rows: About how many rows the table has, by its server's statistics; null when no server was
            asked.
        code: Of the reason, such as ``SM-1803``.
    """

    shard: str
    kind: str
    columns: tuple[str, ...]
    reason: str
    rows: int | None = None
    code: str = ""


@made_at_once
@dataclass(frozen=True, slots=True)
class ShownDecision:
    """One decision of the agents.

    Attributes:
        target: As ``database.table``; "" for a statement that concerns no shard.
        version: Of the target.
        shard: As ``source/database.table``.
        outcome: ``emit``, ``no-op``, ``hold`` or ``ignored``.
        waits_for_lock: Whether the hold only waits for the DDL lock, as every change does in
            pessimistic mode. Such a hold does not count in the plan's ``holds``; if it stays until
            the end, its shard is in ``left_held``.
        reason: Why, in one sentence.
        hint: What ends a hold; "" without one.
        code: Of a hold, such as ``SM-1203``; "" without one.
        conflict: Where there is no joined schema: the path to the conflict, and both sides; ""
            otherwise.
        sides: For a conflict about a column: its definitions, and the shards that have them.
        ways: How a hold or a pause can be ended. Only a target's first 20 holds of each code, and
            its first 20 pauses, have them; further ones can be ended in the same ways.
        statements: What the target gets, in order.
        fixups: Shards whose existing rows may differ from the target's.
        released: Held shards that the decision releases.
        warnings: What should be known although nothing is held.
        warning_codes: One for each of ``warnings``, in their order.
        pauses: Shards whose rows wait from here on until an operator has looked at their existing
            rows and resumes them: their route has ``existing_rows = "hold"``.
    """

    target: str
    version: int
    shard: str
    outcome: str
    waits_for_lock: bool
    reason: str
    hint: str
    code: str
    conflict: str
    sides: tuple[Side, ...]
    ways: tuple[WayOut, ...]
    statements: tuple[ShownStatement, ...]
    fixups: tuple[ShownFixup, ...]
    released: tuple[str, ...]
    warnings: tuple[str, ...]
    warning_codes: tuple[str, ...] = ()
    pauses: tuple[str, ...] = ()

    @property
    def coded_warnings(self) -> tuple[str, ...]:
        """Each warning behind its code."""
        pairs = zip_longest(self.warnings, self.warning_codes, fillvalue="")
        return tuple(coded(code, warning) for warning, code in pairs)


@made_at_once
@dataclass(frozen=True, slots=True)
class ShownStep:
    """One statement of the rollout.

    Attributes:
        number: From 1, in the order that was given.
        shard: The shard whose source executes it.
        sql: The statement.
        origin: Where it is written, such as ``V2__add.sql:3``; "" when it has no file of its own.
        decisions: What the agents decide; none for a statement that changes only rows or settings.
        condition: What decides whether the statement is executed at all, such as
            ``changeset anna:3: context:test``. The plan executes it. "" for none.
    """

    number: int
    shard: str
    sql: str
    origin: str
    decisions: tuple[ShownDecision, ...]
    condition: str = ""


@dataclass(frozen=True, slots=True)
class ShownOrder:
    """An order of the same steps that leads to no hold, and to no pause if that can be avoided.

    Attributes:
        steps: The steps' numbers in that order; none when no such order was found.
        moved: How many of them are moved.
        shortest: Whether no other such order moves fewer steps.
        note: What was found, or not, in a sentence.
        pauses: Shards that this order pauses all the same, because no order without a pause was
            found.
    """

    steps: tuple[int, ...]
    moved: int
    shortest: bool
    note: str
    pauses: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ShownAlternative:
    """The same steps under another policy or mode.

    Attributes:
        setting: Such as ``renames=hold``.
        holds: How many decisions hold their shard, without waits for the DDL lock.
        conflicts: How many of these holds are due to a conflict.
        left_held: Shards that are held at the end and were not before.
        statements: How many statements the targets get.
        lossy: How many of these statements lose values.
        read_again: Shards whose tables are read again.
        steps: For each step, in order: what is decided, in a few words.
        pauses: How often a step pauses a shard.
        left_paused: Shards that are paused at the end and were not before.
    """

    setting: str
    holds: int
    conflicts: int
    left_held: tuple[str, ...]
    statements: int
    lossy: int
    read_again: tuple[str, ...]
    steps: tuple[str, ...]
    pauses: int = 0
    left_paused: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ShownPlan:
    """What ``shardmerge plan`` prints.

    Attributes:
        pipeline: Its name.
        present: Where the present tables come from: ``topics``, ``bundle`` or ``files``.
        shards: How many live shards there are before the rollout.
        clean: Whether no step holds or pauses a shard and no shard is left held. Then the exit code
            is 0.
        holds: How many decisions hold their shard, without waits for the DDL lock.
        conflicts: How many of these holds are due to a conflict.
        held_before: Shards that are held already before the rollout.
        left_held: Shards that are held at the end and were not before.
        lossy: How many statements of targets lose values.
        read_again: Shards whose tables are read again, each once.
        untouched: Shards whose steps all concern tables that no route takes: their statements may
            name the wrong table.
        steps: In the order that was given.
        order: What the search for a safe order found. Null when the given order leads to no hold
            and no pause, or when no search was asked for.
        alternatives: The settings of ``--compare``, in its order.
        pauses: How often a step pauses a shard.
        paused_before: Shards that are paused already before the rollout.
        left_paused: Shards that are paused at the end and were not before.
    """

    pipeline: str
    present: str
    shards: int
    clean: bool
    holds: int
    conflicts: int
    held_before: tuple[str, ...]
    left_held: tuple[str, ...]
    lossy: int
    read_again: tuple[str, ...]
    untouched: tuple[str, ...]
    steps: tuple[ShownStep, ...]
    order: ShownOrder | None
    alternatives: tuple[ShownAlternative, ...]
    pauses: int = 0
    paused_before: tuple[str, ...] = ()
    left_paused: tuple[str, ...] = ()
