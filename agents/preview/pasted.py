"""A statement that somebody pasted → the steps of a rollout. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from shardmerge.schemas.model.errors import ConfigError
from shardmerge.schemas.model.names import ShardId, quote_identifier

from .rollout import RolloutStep

MOST_STEPS = 200
"""A page shows the plan of so many shards; ``shardmerge plan`` shows that of any number."""

_NAME = r"(?:`(?:[^`]|``)+`|[\w$]+)"
_ALTER = re.compile(rf"(\s*ALTER\s+TABLE\s+)(?:{_NAME}\s*\.\s*)?{_NAME}", re.IGNORECASE)


def pasted_steps(sql: str, shards: Sequence[ShardId]) -> list[RolloutStep]:
    """The statement on each shard, in the given order.

    Args:
        sql: One statement. ``{table}`` stands for each shard's table; without it, the table that an
            ALTER TABLE names stands for the shard's.
        shards: Which execute it, the first one first.

    Raises:
        ConfigError: There is no statement, or no shard, or there are too many shards.
    """
    statement = sql.strip().removesuffix(";").rstrip()
    if not statement:
        raise ConfigError(
            "no statement was pasted", hint="paste one ALTER TABLE statement", code="SM-5604"
        )
    if not shards:
        raise ConfigError(
            "no shard was chosen",
            hint="name live shards of the target, or a part of their names",
            code="SM-5604",
        )
    if len(shards) > MOST_STEPS:
        raise ConfigError(
            f"{len(shards):,} shards are too many for a page, which shows {MOST_STEPS}",
            hint="name fewer, or use `shardmerge plan`, which takes any number",
            code="SM-5604",
        )
    return [RolloutStep(shard, _on(statement, shard)) for shard in shards]


def _on(statement: str, shard: ShardId) -> str:
    table = quote_identifier(shard.table)
    if "{table}" in statement:
        return statement.replace("{table}", table)
    return _ALTER.sub(lambda found: found[1] + table, statement, count=1)
