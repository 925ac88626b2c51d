"""What the sink has executed and applied, as a record for the status pages."""

from __future__ import annotations

from dataclasses import dataclass

from shardmerge.schemas.model.names import ShardId, TargetTable
from shardmerge.schemas.model.position import SourcePosition

from .decisions import StatementKind


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
