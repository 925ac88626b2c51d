"""The values that ``--json`` prints, and from which tables and lines are made. Pure.

Every field is always there. A time is ISO 8601 in UTC with milliseconds; "" where there is none.
Later versions may add fields.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from shardmerge.agents.holds.shapes import ShownConflict, WayOut
from shardmerge.connectors.formats.connector_status import ConnectorState

from .decision_shapes import DecisionLine


@dataclass(frozen=True, slots=True)
class AgentsState:
    """The agents, as their consumer group shows them.

    Attributes:
        workers: How many workers are in the group now.
        undecided: Records of sources, commands and schema-log that no agent has finished; at most a
            few seconds old.
    """

    workers: int
    undecided: int


@dataclass(frozen=True, slots=True)
class TargetServer:
    """The target's server.

    Attributes:
        kind: As ``[target] kind`` of the pipeline file.
        address: Host and port, or the name of an Iceberg catalog. The catalog is not asked, and
            Kafka tells where its sinks run.
        version: What it calls its version; "" when it was not asked, or does not answer.
        writer_epoch: Of the sink that writes; 0 before the first.
        error: Why it does not answer; "" when it does.
        writer: The host of the sink that writes, as the server sees it; ``unknown`` if the server
            tells of none, as TiDB; "" when no sink has the writer's lease.
        standbys: The hosts of sinks that wait to take over, at most eight.
    """

    kind: str
    address: str
    version: str = ""
    writer_epoch: int = 0
    error: str = ""
    writer: str = ""
    standbys: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StatementStatus:
    """A statement of the target that is decided and not executed.

    Attributes:
        sql: The statement.
        kind: ``expanding``, ``contracting``, ``switching`` or ``rows``.
        statement: Version and place of the statement, such as ``7.0``.
        state: ``debt`` (waits for rows), ``waiting`` (for an earlier statement), ``executing`` or
            ``refused``.
        detail: Who waits for whom, or what the target said.
        since: When the sink first saw this state.
        code: Of the reason, such as ``SM-1203``; "" without one.
        why: Why the target gets the statement, as its decision says.
        why_code: Of ``why``, such as ``SM-1902``.
    """

    statement: str
    sql: str
    kind: str
    state: str
    detail: str
    since: str
    code: str = ""
    why: str = ""
    why_code: str = ""


@dataclass(frozen=True, slots=True)
class Failure:
    """Rows that could not be applied; the sink tries them again until they are.

    Attributes:
        message: The error of the latest try.
        hint: What helps; "" when nothing is known.
        where: Which partitions have the rows.
        times: How many tries failed in a row.
        since: When the first of these tries failed.
        code: Of the reason, such as ``SM-1203``; "" without one.
    """

    message: str
    hint: str
    where: str
    times: int
    since: str
    code: str = ""


@dataclass(frozen=True, slots=True)
class ShardStatus:
    """One live shard.

    Attributes:
        shard: As ``source/database.table``.
        state: ``flows``, ``waits`` (at a gate or row, for something that happens by itself or that
            the hint names), ``held`` (until a conflict ends, or a command) or ``paused``.
        position: Where it stands; of its last schema change when its rows flow.
        version: Of the decision that brought it there; 0 when none did.
        since: When that began; "" when rows flow.
        reason: Why it stands; "" when rows flow.
        hint: What ends it.
        parked: At most so many rows wait in Kafka.
        overwritten: At least so many of its rows replaced rows with the same primary key.
        by: Who gave the command that paused it; "" otherwise.
        code: Of the reason, such as ``SM-1203``; "" without one.
    """

    shard: str
    state: str
    position: str
    version: int
    since: str = ""
    reason: str = ""
    hint: str = ""
    parked: int = 0
    overwritten: int = 0
    by: str = ""
    code: str = ""


@dataclass(frozen=True, slots=True)
class DriftStatus:
    """One thing in which the target's table differs from what was decided, as the sink saw it last.

    Attributes:
        subject: Such as ``column:note`` or ``index:by_name``.
        kind: ``harmless``, ``refuses``, ``values``, ``missing`` or ``unread``.
        code: Of the kind, such as ``SM-6802``.
        expected: What was decided, as SQL; "" for nothing.
        found: What the server shows; "" for nothing.
        since: When the sink first saw it.
        before: When the sink last saw the table without it; "" when it never did.
    """

    subject: str
    kind: str
    code: str
    expected: str
    found: str
    since: str
    before: str


@dataclass(frozen=True, slots=True)
class ValidationStatus:
    """What the latest `shardmerge validate` of a target found.

    Attributes:
        state: ``differs``, ``equal``, ``failed`` (something did not answer) or ``incomplete`` (it
            did not compare everything, or rows are in doubt).
        ended: When the latest comparison ended.
        differences: How many rows differ, at least: also those of the latest comparison of all rows
            count.
        what: The differences by kind, a sentence; "" without any.
        since: Since when the oldest difference is known; "" without any.
        shortcomings: What the latest comparison does not tell, a clause each.
    """

    state: str
    ended: str
    differences: int
    what: str
    since: str
    shortcomings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TargetStatus:
    """One target.

    Attributes:
        target: As ``database.table``.
        version: Of its latest decision.
        executed_version: Every statement of versions up to this one is executed, except debts.
        rows: Rows applied.
        reported: When the sink last said anything about this target; "" when it never did.
        shards: The live ones, sorted.
        open: Statements that are decided and not executed.
        failure: None when the latest rows could be applied.
        disabled_by: Who gave the command ``disable`` that counts now: the target's schema stays as
            it is. "" when it follows its shards.
        disabled_since: When the command was decided; "" when the target follows its shards.
        drift: In what the table differs from what was decided; `shardmerge drift` says more.
        validation: What `shardmerge validate` found; None when no comparison is known.
    """

    target: str
    version: int
    executed_version: int
    rows: int
    reported: str
    shards: tuple[ShardStatus, ...]
    open: tuple[StatementStatus, ...]
    failure: Failure | None = None
    disabled_by: str = ""
    disabled_since: str = ""
    drift: tuple[DriftStatus, ...] = ()
    validation: ValidationStatus | None = None


@dataclass(frozen=True, slots=True)
class PipelineStatus:
    """What ``shardmerge status`` prints.

    Attributes:
        pipeline: Its name.
        targets: Sorted by name.
        connectors: One of each source; none when Connect does not answer.
        target_server: As it answers now.
        at: Everything in it was written before this time.
        agents: None when Kafka did not answer for them.
        faults: What needs somebody, a sentence each; with any the exit code is 1.
    """

    pipeline: str
    at: str
    targets: tuple[TargetStatus, ...]
    connectors: tuple[ConnectorState, ...]
    agents: AgentsState | None
    target_server: TargetServer
    faults: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Cause:
    """One thing that a shard waits for.

    Attributes:
        kind: ``hold``, ``lock`` (the DDL lock), ``unreadable`` (its schema is not known),
            ``pause``, ``rows`` (the sink parks them), ``statement``, ``reading`` (its table is
            being read as a whole), ``failure``, ``connector`` or ``agents``.
        what: What it waits for, a sentence.
        since: When that began; "" when it is not known.
        position: Where in its source; "" when that does not matter.
        version: Of the decision; 0 without one.
        others: Who it waits for: shards, sources or statements.
        ways: What ends it.
        code: Of the reason, such as ``SM-1203``; "" without one.
    """

    kind: str
    what: str
    since: str
    position: str
    version: int
    others: tuple[str, ...]
    ways: tuple[WayOut, ...]
    code: str = ""


@dataclass(frozen=True, slots=True)
class Explanation:
    """What ``shardmerge explain`` prints.

    Attributes:
        shard: As ``source/database.table``.
        target: As ``database.table``.
        at: Everything in it was written before this time.
        state: As in ``ShardStatus``; ``left`` for a shard that is none any more.
        parked: At most so many rows wait in Kafka.
        causes: Why it stands; none when its rows flow.
        waiting: Statements and shards of the target that wait for this shard.
        unanswered: What did not answer, so that causes may be missing.
    """

    shard: str
    target: str
    at: str
    state: str
    parked: int
    causes: tuple[Cause, ...]
    waiting: tuple[str, ...]
    unanswered: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ShownColumn:
    """One column of a schema.

    Attributes:
        name: In the schema that is shown.
        id: Its identity.
        definition: Type and properties as SQL.
        missing_on: Live shards that lack it; for a shard's own schema always empty.
    """

    name: str
    id: str
    definition: str
    missing_on: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ShownSchema:
    """What ``shardmerge schema`` prints.

    Attributes:
        target: As ``database.table``.
        columns: In the table's order.
        shard: "" for the joined schema of a target.
        version: The target's version as of which it is shown.
        time: When the change of that version was logged; for the present schema, when it was
            decided; "" before the first.
        create_table: The statement; "" while there is no table, or its schema is not known.
        counts: Of a shard whose own schema is not the one that counts in the join (while it is
            held, or after a change that was skipped): the lines of a diff. ``-`` marks lines of the
            schema that counts, ``+`` lines of its own schema.
    """

    target: str
    shard: str
    version: int
    time: str
    create_table: str
    columns: tuple[ShownColumn, ...]
    counts: tuple[str, ...] = ()


Shape: TypeAlias = PipelineStatus | Explanation | DecisionLine | ShownSchema | ShownConflict
"""What a command prints as JSON. ``decisions`` and ``conflicts`` print one object a line."""
