"""What the sink has executed and applied, as a record for the status pages."""

from __future__ import annotations

from dataclasses import dataclass

from shardmerge.schemas.model.names import ShardId, TargetTable
from shardmerge.schemas.model.position import SourcePosition

from .decisions import StatementKind
from .drift import Difference

RENEWED_S = 60.0
"""A sink that runs reports each target at least once in about so many seconds."""
CUT_OVER_CODE = "SM-1617"
"""The code of each shard of a target that was cut over: its applications change it now."""
_SILENT_MS = 3_000 * RENEWED_S


def is_silent(reported_ms: int, now_ms: int) -> bool:
    """Whether a sink that reported a target at that time, and not since, has been silent for long.

    Then it does not run, or gets no further (SM-6723).

    Args:
        reported_ms: Milliseconds since 1970.
        now_ms: Likewise.
    """
    return now_ms - reported_ms > _SILENT_MS


@dataclass(frozen=True, slots=True)
class ShardProgress:
    """What the sink has applied of one shard, and why the shard waits if it does.

    Attributes:
        offset: Next row offset to apply, summed over the shard's row partitions.
        waiting: Reason why rows are parked; "" when they flow.
        hint: What the operator can do about it; "" when nothing needs to be done.
        code: Of the reason, see ``schemas.codes``; "" when rows flow.
        position: The gate or row that the shard waits at; None when rows flow.
        since_ms: When the sink first saw the shard wait there, in milliseconds since 1970; 0 when
            rows flow.
        parked: Offsets in the row topic after the last applied one. At most so many rows wait.
        overwritten: At least this many of the shard's rows replaced another row that the target
            had under the same primary key, since the sink started.
    """

    shard: ShardId
    offset: int
    waiting: str = ""
    hint: str = ""
    position: SourcePosition | None = None
    since_ms: int = 0
    parked: int = 0
    overwritten: int = 0
    code: str = ""


@dataclass(frozen=True, slots=True)
class StatementProgress:
    """A target statement that is decided and not executed, or was refused.

    Attributes:
        version: Decision's version; ``ordinal``: place among its statements.
        state: ``debt`` (waits for rows), ``waiting`` (for an earlier statement), ``executing`` or
            ``refused``.
        detail: Who waits for whom, the target's error, or the target's report about a running
            statement.
        since_ms: When the sink first saw this state, in milliseconds since 1970.
        code: Of what it waits for or why it was refused, see ``schemas.codes``; "" while it runs.
    """

    version: int
    ordinal: int
    sql: str
    kind: StatementKind
    state: str
    detail: str = ""
    since_ms: int = 0
    code: str = ""


@dataclass(frozen=True, slots=True)
class FailureProgress:
    """Rows of a target that could not be applied. The sink repeats them until they are.

    Attributes:
        message: The error of the latest try.
        hint: What the operator can do; "" when nothing is known.
        where: Which of Kafka's partitions have the rows, for people.
        times: How many tries failed in a row.
        since_ms: When the sink saw the first of them, in milliseconds since 1970.
        code: Of the error, see ``schemas.codes``.
    """

    message: str
    hint: str
    where: str
    times: int
    since_ms: int = 0
    code: str = ""


@dataclass(frozen=True, slots=True)
class SinkProgress:
    """What the sink has executed and applied of one target; key: target.

    Attributes:
        executed_version: Every statement of versions up to this one is executed, except debts.
        open: Statements that are decided and not executed, in version order.
        rows: Rows applied to the target since the sink's control tables were created.
        failure: Why the latest batch of rows could not be applied; None when it was.
        drift: In what the target's table differs from what was decided and executed, by subject.
        writer: Host of the sink that wrote this, as the target's server sees it; "" when that is
            not known, and for a kind of target that has no lease.
        standbys: Hosts of the sinks that wait to take over, likewise.
    """

    target: TargetTable
    executed_version: int
    rows: int
    open: tuple[StatementProgress, ...] = ()
    shards: tuple[ShardProgress, ...] = ()
    ts_ms: int = 0
    failure: FailureProgress | None = None
    drift: tuple[Difference, ...] = ()
    writer: str = ""
    standbys: tuple[str, ...] = ()

    @property
    def is_cut_over(self) -> bool:
        """Whether the target was handed over to its applications, so that the sink leaves it."""
        return any(shard.code == CUT_OVER_CODE for shard in self.shards)
