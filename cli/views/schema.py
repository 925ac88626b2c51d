"""A shard's schema or the joined one, as of now or of a version, time or position. Pure."""

from __future__ import annotations

from difflib import ndiff

from shardmerge.agents.coordination.state.target_state import TargetState
from shardmerge.agents.replay.facts import create_table, schema_lines, schema_text
from shardmerge.schemas.ddl.describe import definition
from shardmerge.schemas.model.errors import ConfigError
from shardmerge.schemas.model.names import ShardId, TargetTable

from .picture import moment
from .shapes import ShownColumn, ShownSchema
from .target_log import TargetLog


def joined_schema(log: TargetLog) -> ShownSchema:
    """The joined schema of a target after what was folded."""
    state = log.state
    return ShownSchema(
        target=str(log.target),
        shard="",
        version=state.version,
        time=moment(log.time_ms),
        create_table=create_table(state) or "",
        columns=tuple(
            ShownColumn(c.column.name, c.id, definition(c.column), _missing_on(state, c.id))
            for c in state.columns
        ),
    )


def shard_schema(log: TargetLog, shard: ShardId) -> ShownSchema:
    """The schema that a shard has after what was folded, as its own server has it.

    Raises:
        ConfigError: It was no live shard of the target then.
    """
    state = log.state
    known = state.shards.get(shard)
    if known is None:
        live = ", ".join(map(str, sorted(state.shards))) or "none"
        raise ConfigError(
            f"{shard} is no live shard of {log.target} as of version {state.version}",
            hint=f"live then: {live}",
            code="SM-5601",
        )
    real, table, counts = known.real, known.table, known.effective
    differs: tuple[str, ...] = ()
    if real is not None and real != counts:
        before = schema_lines(counts.schema, counts.columns) if counts else []
        changed = ndiff(before, schema_lines(real.schema, real.columns))
        differs = tuple(line for line in changed if line.startswith(("+ ", "- ")))
    ids = {item.column.name: item.id for item in real.columns} if real else {}
    return ShownSchema(
        target=str(log.target),
        shard=str(shard),
        version=state.version,
        time=moment(log.time_ms),
        create_table=schema_text(_quoted(shard), table) if table else "",
        columns=tuple(
            ShownColumn(column.name, ids.get(column.name, ""), definition(column))
            for column in (table.columns if table else ())
        ),
        counts=differs,
    )


def _quoted(shard: ShardId) -> str:
    return TargetTable(shard.database, shard.table).sql


def _missing_on(state: TargetState, column_id: str) -> tuple[str, ...]:
    return tuple(
        str(name)
        for name in sorted(state.shards)
        if (schema := state.shards[name].effective) is not None and column_id not in schema.ids
    )
