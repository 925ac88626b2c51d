"""The records of our own topics, as frozen values.

Their Avro form is in ``avro/*.avsc``; ``codec`` converts. Both runtimes meet only here.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from shardmerge.schemas.model.actions import Action
from shardmerge.schemas.model.names import (
    ShardId,
    TargetTable,
)
from shardmerge.schemas.model.origin import (
    NO_ORIGIN,
    Origin,
)
from shardmerge.schemas.model.policies import (
    ExistingRows,
    Keyless,
    Mode,
    RenamePolicy,
    RowsPolicy,
    TypePolicy,
)
from shardmerge.schemas.model.position import SourcePosition
from shardmerge.schemas.model.shard_columns import (
    Lineage,
    ShardColumn,
)
from shardmerge.schemas.model.tables import TableSchema

from .reloads import Reload


@dataclass(frozen=True, order=True, slots=True)
class ChangeId:
    """Identity of what one schema-change event does to one shard.

    Attributes:
        source: The source's name.
        offset: Offset of the event in the source's schema-change topic (partition 0).
        ordinal: 0 to ``count`` - 1.
        count: How many schema changes this event has; the sink knows from it when every
            decision of the event is there.
    """

    source: str
    offset: int
    ordinal: int = 0
    count: int = 1

    def __str__(self) -> str:
        return f"{self.source}@{self.offset}.{self.ordinal}"


@dataclass(frozen=True, slots=True)
class SchemaChange:
    """What one DDL statement does to one shard: the tracker's output, the coordinator's input.

    Attributes:
        before: The shard's schema before; None when the shard did not exist.
        after: The schema after; None when the shard is gone (or ``error`` is set).
        lineage: One entry per column of ``after``, in its order; empty when ``before`` or
            ``after`` is None.
        actions: Canonical texts of the actions, for people and for comparing changes.
        ddl: The statement as the source sent it.
        snapshot: Whether it describes a starting state instead of changing one.
        mode, renames, origin, on_drop, existing_rows, keyless, types: What the shard's route says
            about its target, see ``RoutingRule``. Records from before ``types`` were decided in the
            published order.
        error: Why the tracker could not tell the schema after ("" if it could): the shard is
            held. ``hint`` then says what the operator can do.
        ts_ms: Debezium's time of the event, for people and latency figures only.
    """

    id: ChangeId
    target: TargetTable
    shard: ShardId
    position: SourcePosition
    before: TableSchema | None
    after: TableSchema | None
    lineage: tuple[Lineage, ...]
    actions: tuple[str, ...]
    ddl: str
    snapshot: bool = False
    error: str = ""
    hint: str = ""
    ts_ms: int = 0
    mode: Mode = Mode.OPTIMISTIC
    renames: RenamePolicy = RenamePolicy.MAP
    origin: Origin = NO_ORIGIN
    on_drop: RowsPolicy = RowsPolicy.KEEP
    existing_rows: ExistingRows = ExistingRows.REREAD
    keyless: Keyless = Keyless.COUNT
    types: TypePolicy = TypePolicy.PUBLISHED


class CommandKind(StrEnum):
    """What an operator can tell a target's coordinator; ``shard`` and ``argument`` by kind."""

    SKIP = "skip"
    """The held change of ``shard`` does not count: the target does not follow it."""
    REPLACE = "replace"
    """The held change of ``shard`` counts as the ALTER TABLE ``argument`` would."""
    SET_SCHEMA = "set-schema"
    """``shard`` has the schema of the CREATE TABLE ``argument`` from its last change on."""
    UNLOCK_EXECUTE = "unlock-execute"
    """What waits first for the DDL lock on ``shard`` is executed without the others."""
    UNLOCK_DISCARD = "unlock-discard"
    """It is skipped on all shards that made it."""
    DISABLE = "disable"
    """The target's schema stays as it is until ``enable``."""
    ENABLE = "enable"
    """The difference that came together meanwhile is emitted."""
    PAUSE = "pause"
    """The rows of ``shard`` wait until ``resume``."""
    RESUME = "resume"
    REREAD = "reread"
    """The table of ``shard`` is read again."""
    RELOADED = "reloaded"
    """Tables without a primary key were read as a whole: ``argument`` says where (``reloads``). The
    watchdog gives it, nobody else."""
    LEAVE = "leave"
    """``shard`` counts no more: its server is gone, say. "delete": its rows in the target go."""
    SET_MODE = "set-mode"
    """The target moves in mode ``argument``, whatever its routes say; "" is as they say."""
    SET_POLICY = "set-policy"
    """``argument`` is ``name=value`` of a route's policy, which counts instead of the route's."""


@dataclass(frozen=True, slots=True)
class OperatorCommand:
    """What an operator decided: the coordinator checks it against the state and answers it.

    Attributes:
        id: ``source`` is the name of the commands topic; the offset is filled in by the tracker,
            when it takes the command from there into the schema-log.
        shard: None where the kind concerns the whole target.
        argument: See ``CommandKind``.
        schema: What the tracker read from the argument of ``set-schema``.
        error: Why the tracker could not, "" otherwise.
        by: Who gave it, for people.
        ts_ms: When, for people.
    """

    id: ChangeId
    target: TargetTable
    kind: CommandKind
    shard: ShardId | None = None
    argument: str = ""
    schema: TableSchema | None = None
    error: str = ""
    by: str = ""
    ts_ms: int = 0

    def __str__(self) -> str:
        parts = [self.kind.value, str(self.shard or ""), self.argument]
        return " ".join(part for part in parts if part)


class StatementKind(StrEnum):
    """When a target statement may run (the barrier's rules, DESIGN of the sink)."""

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


@dataclass(frozen=True, slots=True)
class ShardProgress:
    """What the sink has applied of one shard, and why it stands if it does.

    Attributes:
        offset: Next row offset to apply, summed over the shard's row partitions.
        waiting: Reason why rows are parked; "" when they flow.
        hint: What the operator can do about it; "" when nothing needs doing.
        position: Gate or row where the shard stands; None when it flows.
        since_ms: When the sink saw first that the shard stands there; 0 when it flows.
        parked: Offsets that the row topic has beyond what is applied: at most so many rows wait.
        overwritten: So many of its rows at least took the place of others that the target had
            under the same primary key, since the sink started.
    """

    shard: ShardId
    offset: int
    waiting: str = ""
    hint: str = ""
    position: SourcePosition | None = None
    since_ms: int = 0
    parked: int = 0
    overwritten: int = 0


@dataclass(frozen=True, slots=True)
class StatementProgress:
    """A target statement that is decided and not executed, or was refused.

    Attributes:
        version: Decision's version; ``ordinal``: place among its statements.
        state: ``debt`` (waits for rows), ``waiting`` (for an earlier statement), ``executing`` or
            ``refused``.
        detail: Who waits for whom, the target's error, or what the target says of a running
            statement.
        since_ms: When the sink saw this state first, in milliseconds since 1970.
    """

    version: int
    ordinal: int
    sql: str
    kind: StatementKind
    state: str
    detail: str = ""
    since_ms: int = 0


@dataclass(frozen=True, slots=True)
class FailureProgress:
    """Rows of a target that could not be applied, and are tried again and again.

    Attributes:
        message: Of the latest try. ``hint``: what the operator can do; "" when nothing is known.
        where: Which of Kafka's partitions have the rows, for people.
        times: How many tries failed in a row.
        since_ms: When the sink saw the first of them, in milliseconds since 1970.
    """

    message: str
    hint: str
    where: str
    times: int
    since_ms: int = 0


@dataclass(frozen=True, slots=True)
class SinkProgress:
    """What the sink has executed and applied of one target; key: target.

    Attributes:
        executed_version: Every statement of versions up to this one, debts aside, is executed.
        open: Statements decided and not executed, in version order.
        rows: Rows applied to the target since the sink's control tables were made.
        failure: Why the latest batch of rows could not be applied; None when it was.
    """

    target: TargetTable
    executed_version: int
    rows: int
    open: tuple[StatementProgress, ...] = ()
    shards: tuple[ShardProgress, ...] = ()
    ts_ms: int = 0
    failure: FailureProgress | None = None
