"""What lineage events are made from: values that the driver's loop hands over. Pure.

One target has one run as long as a sink process writes to it. The loop takes what the events need
from its state, which changes; the events are made later, in another thread.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from shardmerge.schemas.model.names import ShardId, TargetTable
from shardmerge.schemas.model.server_context import ServerContext
from shardmerge.schemas.model.shard_columns import ShardColumn
from shardmerge.schemas.model.tables import Column
from shardmerge.schemas.records.decisions import Decision, TargetStatement
from shardmerge.schemas.target.table_state import TableState, executed_state
from shardmerge.spark_sink.barrier.decisions import StatementKey, TargetDecisions
from shardmerge.spark_sink.barrier.shard_gates import Gate, ShardGates
from shardmerge.spark_sink.barrier.statements import bindings


class RunState(StrEnum):
    """Where a run stands, in OpenLineage's words."""

    START = "START"
    RUNNING = "RUNNING"
    COMPLETE = "COMPLETE"
    FAIL = "FAIL"
    ABORT = "ABORT"

    @property
    def ends_run(self) -> bool:
        """Whether the run has ended."""
        return self in (RunState.COMPLETE, RunState.FAIL, RunState.ABORT)


@dataclass(frozen=True, slots=True)
class ShardFeed:
    """The columns of a shard whose values go to its target.

    Attributes:
        columns: The shard's columns with identities, as its rows have them now.
        left_out: Identities of columns whose values are not applied.
    """

    shard: ShardId
    columns: tuple[ShardColumn, ...]
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TargetTableNow:
    """A target's table as the executed statements made it.

    Attributes:
        columns: Its columns in order; empty when it has no table yet.
        names: Column identity → the column that takes its values.
    """

    columns: tuple[Column, ...] = ()
    names: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TargetReport:
    """How a target's run stands.

    Attributes:
        run_id: Of the run, a UUID.
        at_ms: When that was, in milliseconds since 1970.
        rows: Rows that were written to the target since the run began.
        table: The target's table; None when nothing of it or its shards is new.
        feeds: Shards that are new, or whose columns go elsewhere than was told last.
        error: Why the run failed or was ended from outside; "" otherwise.
    """

    target: TargetTable
    run_id: str
    state: RunState
    at_ms: int
    rows: int
    table: TargetTableNow | None = None
    feeds: tuple[ShardFeed, ...] = ()
    error: str = ""


@dataclass(frozen=True, slots=True)
class StatementReport:
    """A statement that was executed on a target.

    Attributes:
        run_id: Of the statement's own run, a UUID.
        parent_id: Of the target's run.
        began_ms, ended_ms: When it ran, in milliseconds since 1970.
        decision: The decision that has the statement; None when it is not known.
        table: The target's table after the statement.
        feed: What the decision's shard feeds the table with; None when there is no such shard.
    """

    target: TargetTable
    run_id: str
    parent_id: str
    key: StatementKey
    statement: TargetStatement
    began_ms: int
    ended_ms: int
    decision: Decision | None
    table: TargetTableNow
    feed: ShardFeed | None = None


Report = TargetReport | StatementReport


def feed_of(shard: ShardGates) -> ShardFeed | None:
    """What a shard feeds its target with; None when it has left, or its columns are not known.

    A held gate does not count: the rows before it have the columns of the gate before it.
    """
    last: Gate | None = None
    for gate in reversed(shard.gates):
        if gate.effective_version is not None:
            last = gate
            break
    if last is None or not last.live or not last.columns:
        return None
    return ShardFeed(shard.shard, last.columns, last.left_out)


def feeds_of(target: TargetDecisions) -> dict[ShardId, ShardFeed]:
    """What each living shard feeds the target with."""
    feeds = (feed_of(gates) for shard, gates in target.shards.items() if target.lives(shard))
    return {feed.shard: feed for feed in feeds if feed is not None}


def executed_table(
    target: TargetDecisions, executed: Collection[StatementKey], server: ServerContext
) -> TableState:
    """The target's table as the executed statements made it.

    Args:
        target: What is decided.
        executed: The statements that are executed.
        server: The target's server.

    Raises:
        UnsupportedDDL: The statements contradict each other.
    """
    known = [s.actions for key, s in target.statements.items() if key in executed and s.actions]
    return executed_state(known, target.target, server)


def names_of(target: TargetDecisions, executed: Collection[StatementKey]) -> dict[str, str]:
    """Column identity → the target's column that takes its values."""
    return {id_: b.name for id_, b in bindings(target, executed).items() if b.writable}
