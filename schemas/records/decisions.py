"""The coordinator's answers: decisions with their target statements, and the joined schema."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from itertools import zip_longest

from shardmerge.schemas.model.actions import Action
from shardmerge.schemas.model.coded_text import CodedText
from shardmerge.schemas.model.frozen import made_at_once
from shardmerge.schemas.model.names import ShardId, TargetTable
from shardmerge.schemas.model.origin import Origin
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
    """Changes rows. With a shard, it changes that shard's rows: it waits only for them, and only
    they wait for it. Without a shard, it changes rows of all shards: it waits as a contracting
    statement does, and no row waits for it."""


@dataclass(frozen=True, slots=True)
class Binding:
    """Which target column an identity has after a statement is executed.

    Attributes:
        column_id: Identity, see ``ShardColumn``.
        name: The target's column that holds it from now on; "" when it is dropped.
        writable: False for a generated column: values are not written.
    """

    column_id: str
    name: str
    writable: bool = True


@made_at_once
@dataclass(frozen=True, slots=True)
class TargetStatement:
    """One statement for the target: DDL, or a change of rows.

    Attributes:
        sql: Canonical text, with the qualified target name: for people, and for the server.
        kind: When it may run. ``reason`` says why it is of this kind.
        subjects: What it concerns: ``column:<name>``, ``index:<name>``, ``check:<name>``
            (lower-case), or ``table`` for all of it. Statements with a common subject run in
            version order.
        binds: Column identities that its execution binds or unbinds.
        shard: The shard whose rows it changes; None for DDL, and for rows of all shards. A
            statement that changes rows is repeated, each time for a part of them, until it finds
            none.
        actions: What it does. Empty when that is not known: then no target executes it.
        code: Of ``reason``, see ``schemas.codes``.
    """

    sql: str
    kind: StatementKind
    reason: str
    subjects: tuple[str, ...]
    binds: tuple[Binding, ...] = ()
    shard: ShardId | None = None
    actions: tuple[Action, ...] = ()
    code: str = ""


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
    """Opens the held gates of a shard with versions up to ``through`` (inclusive).

    Attributes:
        left_out: Identities of columns whose values are ignored in the shard's rows behind these
            gates, because a command said so; sorted.
    """

    shard: ShardId
    through: int
    left_out: tuple[str, ...] = ()


class FixupKind(StrEnum):
    """What is done about rows that a schema change changed without row events."""

    SNAPSHOT = "snapshot"
    """The shard's table is read again, by an incremental snapshot."""
    RELOAD = "reload"
    """The table is read again as for SNAPSHOT, but the shard's rows are removed from the target
    first: under the target's new primary key, old rows could not be told from the ones that are
    read. The shard is among ``Decision.reloads``."""
    WHOLE = "whole"
    """The shard's table has no primary key. Its rows wait until the watchdog has had the table read
    as a whole; then a decision has the shard among its ``reloads``."""
    LOAD = "load"
    """The shard's rows are removed from the target, and the sink reads its table itself. The shard
    is among ``Decision.reloads``."""
    UPDATE = "update"
    """A statement of the decision updates the shard's rows in the target to the shard's values."""
    ACCEPT = "accept"
    """Nothing can be done, or a policy says that nothing is done. The rows stay different until
    they are written again."""
    HOLD = "hold"
    """The shard is paused until an operator has looked at the rows and resumes it."""

    @property
    def asks_for_snapshot(self) -> bool:
        """Whether the shard's table is read again by an incremental snapshot."""
        return self in (FixupKind.SNAPSHOT, FixupKind.RELOAD)


@dataclass(frozen=True, slots=True)
class Fixup:
    """What is done about existing rows of one shard that may differ from the target's.

    Attributes:
        columns: The columns in which they may differ, by the shard's names.
        reason: What the shard's rows hold and what the target's rows hold, for people.
        code: Of the reason for the first of the columns, see ``schemas.codes``.
    """

    shard: ShardId
    kind: FixupKind
    columns: tuple[str, ...]
    reason: str
    code: str = ""


@made_at_once
@dataclass(frozen=True, slots=True)
class Decision:
    """The one answer to one schema change or command; key ``(target, version)``.

    The gate of the decision is at ``position`` in the row stream of ``shard``. Rows from there on
    have the columns ``columns``. They wait for every expanding and switching statement of versions
    up to ``version`` and, if held, for a decision that releases the shard.

    Attributes:
        target: None when the outcome is ``ignored`` (no routed shard is concerned), and for a
            command about a target that does not exist.
        version: Counts the target's decisions from 1, without gaps; 0 when ignored.
        shard: The shard that has the gate; None when ignored, and for a command that sets none.
        statements: In execution order; empty unless ``outcome`` is ``emit``.
        reason: Why, one sentence for people.
        hint: For a hold: what ends it.
        code: Of the reason of a hold or of a refused command, see ``schemas.codes``; "" otherwise.
        conflict: Path and both sides when the schemas have no join, "" otherwise.
        columns: The shard's columns after the change, in order; empty when the shard is dropped
            or its schema is unknown.
        key: Names of the shard's primary-key columns in order; empty without one.
        live: False when the shard left the target with this change.
        releases: Which held gates this decision opens: at most one entry per shard, sorted.
        pauses, resumes: Shards whose rows wait from now on, or no longer wait.
        leaves: Shards that an operator took out of the target. That sets no gate: rows that still
            come are applied as before, into those of their columns that the target has. When such a
            shard is held, its gates are released and the rows behind them are skipped.
        warnings: What the operator must know although nothing is held.
        warning_codes: One for each of ``warnings``, in their order.
        ddl, ts_ms: Text and time of the schema change or command.
        fixups: Shards whose existing rows may differ from the target's from now on, at most one
            entry for each, sorted by shard.
        renewed: For a shard that was held before this change: identities of the columns that the
            change drops and adds again, or redefines so that it may not keep their values. The
            values of these columns in the waiting rows are of no use any more.
        reloads: Shards whose rows are removed from the target, because all of them come again;
            sorted. They are removed before the decision's statements are executed, except expanding
            ones. All reloads of a decision are completed together.
        origin: The origin columns that the target has from this decision on; None if it keeps those
            that it has. Then a rebuilt table takes the target's place, and rows before the gates of
            this decision have these columns, too.
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
    code: str = ""
    warning_codes: tuple[str, ...] = ()
    origin: Origin | None = None

    @property
    def notices(self) -> tuple[CodedText, ...]:
        """The warnings with their codes."""
        pairs = zip_longest(self.warnings, self.warning_codes[: len(self.warnings)], fillvalue="")
        return tuple(CodedText(text, code) for text, code in pairs)

    @property
    def released(self) -> tuple[ShardId, ...]:
        """The shards of ``releases``, in its order."""
        return tuple(release.shard for release in self.releases)


@made_at_once
@dataclass(frozen=True, slots=True)
class JoinedSchema:
    """The joined schema of a target after its latest decision; key: target.

    Attributes:
        columns: The joined columns with identities, in the target's order.
        schema: The same as a table schema, with indexes and checks; None without a live shard.
        shards: How many live shards there are. The decisions say which ones.
        held: How many of them are held.
    """

    target: TargetTable
    version: int
    columns: tuple[ShardColumn, ...]
    schema: TableSchema | None
    shards: int
    held: int = 0
