"""``shardmerge load again``: the command that has one shard read once more by the sink."""

from __future__ import annotations

from shardmerge.connectors.clock import now_ms
from shardmerge.schemas.model.errors import ConfigError
from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.pipeline import topics
from shardmerge.schemas.pipeline.routing import route, rule_of
from shardmerge.schemas.pipeline.settings import Pipeline
from shardmerge.schemas.records.operator_commands import CommandKind, OperatorCommand
from shardmerge.schemas.records.schema_changes import ChangeId


def command_for(pipeline: Pipeline, shard: ShardId, *, by: str) -> OperatorCommand:
    """The operator's command that orders a shard to be loaded again.

    The coordinator refuses it for what only it knows, such as a shard that is held.

    Args:
        pipeline: The pipeline of the shard.
        shard: The shard.
        by: Who gives the command.

    Raises:
        ConfigError: The sink does not load the shard's source, or the shard's rows in the target
            are not only those of its table.
    """
    source = next((each for each in pipeline.sources if each.name == shard.source), None)
    if source is None:
        names = ", ".join(each.name for each in pipeline.sources)
        raise ConfigError(
            f"the pipeline has no source {shard.source}", hint=f"it has: {names}", code="SM-1315"
        )
    if not source.is_loaded:
        raise ConfigError(
            f"the sink does not load shards of source {shard.source}",
            hint=f"let Debezium read it: shardmerge command reread --shard {shard}; or give the "
            "source snapshot = 'spark', and restart the sink",
            code="SM-1643",
        )
    rule, targets = rule_of(pipeline.routes, shard), route(pipeline.routes, shard)
    if rule is None or len(targets) != 1:
        raise ConfigError(
            f"no single route leads {shard} to a target",
            hint="name the shard as `shardmerge load` shows it",
            code="SM-1303",
        )
    if rule.ignores_operations:
        raise ConfigError(
            f"the route of {shard} keeps rows that the shard has deleted, or ignores others",
            hint="take `ignore` and `on_truncate` out of the route, and restart the sink, if these "
            "rows may go",
            code="SM-1644",
        )
    return OperatorCommand(
        id=ChangeId(topics.commands(pipeline).name, 0),
        target=targets[0],
        kind=CommandKind.LOAD_AGAIN,
        shard=shard,
        by=by,
        ts_ms=now_ms(),
    )
