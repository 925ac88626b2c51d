"""Whether a shard's table can be read again by an incremental snapshot. Pure."""

from __future__ import annotations

from shardmerge.connectors.signals import can_be_asked_for
from shardmerge.schemas.joined import ShardSchema
from shardmerge.schemas.names import ShardId


def why_not_read_again(shard: ShardId, schema: ShardSchema | None) -> str:
    """Why no snapshot of the shard's table can be asked for; "" when it can.

    Args:
        shard: Any.
        schema: What it has; None when that is not known.
    """
    if schema is None or schema.schema.primary_key is None:
        return "a table without a primary key cannot be read again"
    if not can_be_asked_for(shard):
        return "Debezium cannot read a table of this name again"
    return ""
