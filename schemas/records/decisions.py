"""The coordinator's answers: decisions with their target statements, and the joined schema."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from shardmerge.schemas.model.actions import Action
from shardmerge.schemas.model.names import ShardId, TargetTable
from shardmerge.schemas.model.position import SourcePosition
from shardmerge.schemas.model.shard_columns import ShardColumn
from shardmerge.schemas.model.tables import TableSchema

from .reloads import Reload
from .schema_changes import ChangeId


class StatementKind(StrEnum):
    """When a target statement may run; the rules are in ``spark_sink.barrier``."""

    EXPANDING = "expanding"
    CONTRACTING = "contracting"
    SWITCHING = "switching"
    ROWS = "rows"
    """Changes rows of one shard: it waits only for that shard's rows, and only they for it. Without
    a shard it changes rows of all, waits as a contracting one does, and nobody waits for it."""


@dataclass(frozen=True, slots=True)
class Binding:
    """A fact that becomes true when a statement is executed: the target's column of an identity.

    Attributes:
        column_id: Identity, see ``ShardColumn``.
        name: Target column that holds it from now on; "" when it is gone.
        writable: False for a generated column: values are not written.
    """

    column_id: str
    name: str
    writable: bool = True


@dataclass(frozen=True, slots=True)
class TargetStatement:
    """One statement for the target: DDL, or a change of rows.

    Attributes:
        sql: Canonical text, with the qualified target name: for people, and for the server.
        kind: Its class, ``reason`` says why.
        subjects: What it concerns: ``column:<name>``, ``index:<name>``, ``check:<name>``
            (lower-case), or ``table`` for all of it. Statements with a common subject run in
            version order.
        binds: Column identities that its execution binds or unbinds.
        shard: Whose rows it changes; None for DDL, and for rows of all shards. A statement that
            changes rows is repeated, a part of them at a time, until it finds none.
        actions: What it does. Empty: nobody knows, so no target executes it.
    """

    sql: str
    kind: StatementKind
    reason: str
    subjects: tuple[str, ...]
    binds: tuple[Binding, ...] = ()
    shard: ShardId | None = None
    actions: tuple[Action, ...] = ()


class Outcome(StrEnum):
    """The answer to a schema change."""

    EMIT = "emit"
    NOOP = "no-op"
    HOLD = "hold"
    IGNORED = "ignored"
    REFUSED = "refused"
    """An operator's command that cannot be carried out; nothing changed."""


@dataclass(frozen=True, order=True, slots=True)
class Release:
    """Opens the held gates of a shard, of versions up to ``through`` (inclusive).

    Attributes:
        left_out: Identities of the shard's columns whose values in the rows behind these gates do
            not count, since a command said so; sorted.
    """

    shard: ShardId
    through: int
    left_out: tuple[str, ...] = ()


class FixupKind(StrEnum):
    """What is done about rows that a schema change altered without row events."""

    SNAPSHOT = "snapshot"
    """The shard's table is read again, by an incremental snapshot."""
    RELOAD = "reload"
    """The same, but what the target has of the shard goes first: by the target's new primary key
    nobody could tell it from what comes. It is among ``Decision.reloads``."""
    WHOLE = "whole"
    """The shard's table has no primary key: its rows wait until the watchdog has had the table read
    as a whole. Then a decision has it among its ``reloads``."""
    UPDATE = "update"
    """A statement of the decision gives its rows in the target the value that they have."""
    ACCEPT = "accept"
    """Nothing helps, or nothing shall: they stay different until they are written again."""
    HOLD = "hold"
    """The shard is paused, until an operator has looked at them and resumes it."""

    @property
    def asks_for_snapshot(self) -> bool:
        """Whether the shard's table is read again by an incremental snapshot."""
        return self in (FixupKind.SNAPSHOT, FixupKind.RELOAD)


@dataclass(frozen=True, slots=True)
class Fixup:
    """Existing rows of one shard that may differ from the target's.

    Attributes:
        columns: In which columns, by the shard's names.
        reason: What the shard's rows hold and what the target's, for people.
    """

    shard: ShardId
    kind: FixupKind
    columns: tuple[str, ...]
    reason: str


@dataclass(frozen=True, slots=True)
class Decision:
    """The one answer to one schema change or command; key ``(target, version)``.

    The gate of the decision stands in the row stream of ``shard`` at ``position``: rows from
    there on have the columns ``columns`` and wait for every expanding and switching statement
    of versions up to ``version`` (and, if held, for a decision that releases the shard).

    Attributes:
        target: None when the outcome is ``ignored`` (no routed shard is concerned), and for a
            command about a target that there is not.
        version: Counts the target's decisions from 1, without gaps; 0 when ignored.
        shard: Whose gate it is; None when ignored, and for a command that sets no gate.
        statements: In execution order; empty unless ``outcome`` is ``emit``.
        reason: Why, one sentence for people.
        hint: For a hold: what ends it.
        conflict: For a hold by the semilattice: path and both sides, "" otherwise.
        columns: The shard's columns after the change, in order; empty when the shard is gone
            or its schema is unknown.
        key: Names of the shard's primary-key columns in order; empty without one.
        live: False when the shard left the target with this change.
        releases: Which held gates this decision opens: at most one entry per shard, sorted.
        pauses, resumes: Shards whose rows wait from now on, or wait no more.
        leaves: Shards that an operator took out of the target. That sets no gate: rows that still
            come are applied as before, with what the target has of their columns. Of a held shard
            its gates are released too, and the rows behind them passed over.
        warnings: What the operator must know although nothing is held.
        ddl, ts_ms: Of the schema change; a command's text and time.
        fixups: Shards whose existing rows may differ from the target's from now on, at most one
            entry for each, sorted by shard.
        renewed: Of a shard that was held before this change, the identities of the columns that it
            dropped and added again with it, or converted to what their values cannot become by
            themselves: what its waiting rows have in them is of no use any more.
        reloads: Shards whose rows the target gives up, because all of them come again; sorted.
            What the target has of them is taken out before the decision's statements are executed,
            apart from expanding ones. They are settled together.
    """

    id: ChangeId
    target: TargetTable | None
    version: int
    shard: ShardId | None
    position: SourcePosition
    outcome: Outcome
    statements: tuple[TargetStatement, ...] = ()
    reason: str = ""
    hint: str = ""
    conflict: str = ""
    columns: tuple[ShardColumn, ...] = ()
    key: tuple[str, ...] = ()
    live: bool = True
    releases: tuple[Release, ...] = ()
    pauses: tuple[ShardId, ...] = ()
    resumes: tuple[ShardId, ...] = ()
    leaves: tuple[ShardId, ...] = ()
    warnings: tuple[str, ...] = ()
    snapshot: bool = False
    ddl: str = ""
    ts_ms: int = 0
    fixups: tuple[Fixup, ...] = ()
    renewed: tuple[str, ...] = ()
    reloads: tuple[Reload, ...] = ()

    @property
    def released(self) -> tuple[ShardId, ...]:
        """The shards of ``releases``, in its order."""
        return tuple(release.shard for release in self.releases)


@dataclass(frozen=True, slots=True)
class JoinedSchema:
    """The joined schema of a target after its latest decision; key: target.

    Attributes:
        columns: The joined columns with identities, in the target's order.
        schema: The same as a table schema, with indexes and checks; None when no shard lives.
        shards: How many shards live; which ones, the decisions tell.
        held: How many of them are held.
    """

    target: TargetTable
    version: int
    columns: tuple[ShardColumn, ...]
    schema: TableSchema | None
    shards: int
    held: int = 0
