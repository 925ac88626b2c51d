"""Whether a shard's table can be read again by an incremental snapshot. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from shardmerge.connectors.debezium.signals import can_be_asked_for
from shardmerge.connectors.debezium.value_limits import SNAPSHOT, limits_of
from shardmerge.schemas.model.coded_text import CodedText
from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.model.policies import ExistingRows
from shardmerge.schemas.model.shard_columns import ShardColumn
from shardmerge.schemas.model.tables import TableSchema
from shardmerge.schemas.records.decisions import Fixup, FixupKind

READ_AGAIN = (FixupKind.SNAPSHOT, FixupKind.RELOAD, FixupKind.WHOLE)
"""The fix-ups by which all rows of a table come again."""


def is_read_again(policy: ExistingRows, shard: ShardId, schema: TableSchema | None) -> bool:
    """Whether the policy wants the shard's rows read again, and a snapshot can read them."""
    return policy is ExistingRows.REREAD and not why_not_read_again(shard, schema)


def why_not_read_again(shard: ShardId, schema: TableSchema | None) -> str:
    """Why no snapshot of the shard's table can be asked for; "" when it can.

    Args:
        shard: Any.
        schema: The shard's schema; None when it is not known.
    """
    if schema is None or schema.primary_key is None:
        return "a table without a primary key cannot be read again"
    if not can_be_asked_for(shard):
        return "Debezium cannot read a table of this name again"
    return ""


def is_read_as_whole(shard: ShardId, schema: TableSchema | None) -> bool:
    """Whether the shard's table can be read again as a whole, and not otherwise."""
    return schema is not None and schema.primary_key is None and can_be_asked_for(shard)


def lost_by_reading(fixup: Fixup, columns: Iterable[ShardColumn]) -> list[CodedText]:
    """Warnings about values that are right in the target and that reading again damages."""
    if fixup.kind not in READ_AGAIN:
        return []
    return [
        CodedText(
            f"reading {fixup.shard} again: column {item.column.name}: {limit.sentence}", "SM-1711"
        )
        for item in columns
        for limit in limits_of(item.column.type, item.column.nullable)
        if limit.told_by_ddl and limit.ways == (SNAPSHOT,)
    ]
