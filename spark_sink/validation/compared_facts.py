"""What the topics say of a target and its shards, for their comparison. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from shardmerge.schemas.model.names import ShardId, TargetTable, quote_identifier
from shardmerge.schemas.model.origin import OriginColumn, OriginPart, group_of, origin_part
from shardmerge.schemas.model.shard_columns import ShardColumn
from shardmerge.schemas.model.tables import Column
from shardmerge.schemas.pipeline.routing import RoutingRule

from .value_texts import text_value


@dataclass(frozen=True, slots=True)
class ShardFacts:
    """What the topics say of a shard.

    Attributes:
        columns: Its columns behind its last gate; the identity is "" for a column that is left out.
        rule: Its route.
        obstacle: Why its rows cannot be compared now; "" when they can.
    """

    shard: ShardId
    columns: tuple[ShardColumn, ...]
    rule: RoutingRule
    obstacle: str = ""


@dataclass(frozen=True, slots=True)
class TargetFacts:
    """What the topics say of a target.

    Attributes:
        columns: Each identity, with the target's column that it is bound to now.
        key: Names of the target's primary key; empty without one.
        kept: Why the target can have rows that no live shard has; "" when it cannot.
        points: See ``value_texts.value_text``.
        other_keys: Whether the target has a unique key besides the primary key.
        catalog: For an Iceberg table, the name of its Spark catalog; "" for a table of a server.
    """

    target: TargetTable
    columns: tuple[ShardColumn, ...]
    key: tuple[str, ...]
    kept: str = ""
    points: bool = True
    catalog: str = ""
    other_keys: bool = False

    @property
    def sql(self) -> str:
        """The quoted, qualified name of the target."""
        prefix = f"{quote_identifier(self.catalog)}." if self.catalog else ""
        return f"{prefix}{self.target.sql}"


def column_of(facts: ShardFacts, column_id: str) -> Column | None:
    """The shard's column with an identity; None without one."""
    return next((c.column for c in facts.columns if c.id == column_id and column_id), None)


def origin_value(facts: ShardFacts, column: ShardColumn) -> str | None:
    """SQL of the value of an origin column; None for another column."""
    part = origin_part(column.id)
    if part is None or part is OriginPart.POSITION:
        return None
    if part is OriginPart.GROUP:
        own = _group_column(facts, column.id)
        text = "" if own is None else facts.rule.group_value(facts.shard, own)
        return text if column.column.type.is_integer else text_value(text)
    return text_value(part.value_in(facts.shard))


def _group_column(facts: ShardFacts, column_id: str) -> OriginColumn | None:
    wanted = group_of(column_id)
    return next((c for c in facts.rule.policies.origin.columns if c.group == wanted), None)
