"""Schema-change records: what one DDL statement does to one shard.

``avro/*.avsc`` defines the Avro form of the records of our topics; ``codec`` converts. The agents
and the sink share nothing but these records.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from shardmerge.schemas.model.frozen import made_at_once
from shardmerge.schemas.model.names import ShardId, TargetTable
from shardmerge.schemas.model.policies import EARLIEST_POLICIES, RoutePolicies
from shardmerge.schemas.model.position import SourcePosition
from shardmerge.schemas.model.shard_columns import Lineage
from shardmerge.schemas.model.tables import TableSchema

from .plain_fields import FLAT


@dataclass(frozen=True, order=True, slots=True)
class ChangeId:
    """Identity of what one schema-change event does to one shard.

    Attributes:
        source: The source's name.
        offset: Offset of the event in the source's schema-change topic (partition 0).
        ordinal: 0 to ``count`` - 1.
        count: How many schema changes this event has. From it the sink knows when it has every
            decision of the event.
    """

    source: str
    offset: int
    ordinal: int = 0
    count: int = 1

    def __str__(self) -> str:
        return f"{self.source}@{self.offset}.{self.ordinal}"


@made_at_once
@dataclass(frozen=True, slots=True)
class SchemaChange:
    """What one DDL statement does to one shard: the tracker's output, the coordinator's input.

    Attributes:
        before: The shard's schema before; None when the shard did not exist.
        after: The schema after; None when the shard is dropped, or when ``error`` is set.
        lineage: One entry per column of ``after``, in its order; empty when ``before`` or
            ``after`` is None.
        actions: Canonical texts of what the statement does, for people and for comparing changes.
        ddl: The statement as the source sent it.
        snapshot: Whether it describes a starting state instead of changing one.
        policies: The policies of the shard's route.
        error: Why the tracker does not know the schema after; "" when it does. With an error the
            shard is held, and ``hint`` says what the operator can do.
        code: Of the error, see ``schemas.codes``; "" without an error.
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
    policies: RoutePolicies = field(default=EARLIEST_POLICIES, metadata=FLAT)
    code: str = ""
