"""What the agents would make of the shards' tables as they are now: joined types, and holds. Pure.

The agents' own folds get the tables as a snapshot would describe them, for targets that do not
exist yet. The order in which the sources' snapshots bring them is not known, and it matters to a
target that cannot change a column to every type. So the tables are folded in their order, and in
the reverse order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from shardmerge.agents.coordination.coordinator import initial
from shardmerge.agents.coordination.state.target_state import TargetState
from shardmerge.agents.handling.handlers import decide
from shardmerge.agents.tracking import tracker
from shardmerge.connectors.debezium.envelope import SchemaChangeEvent, TableChange
from shardmerge.schemas.lattice.type_join import value_type
from shardmerge.schemas.model.errors import ConfigError
from shardmerge.schemas.model.mysql_text import column_type
from shardmerge.schemas.model.names import ShardId, TargetTable
from shardmerge.schemas.model.position import BEGINNING
from shardmerge.schemas.model.types import ColumnType
from shardmerge.schemas.pipeline.server_differences import server_context, utf8mb4_defaults
from shardmerge.schemas.pipeline.settings import Pipeline
from shardmerge.schemas.records.decisions import Fixup
from shardmerge.schemas.target.dialects.dialects import dialect_of

from .findings import Finding


@dataclass(frozen=True, slots=True)
class ShardTable:
    """A shard, and what SHOW CREATE TABLE says of it."""

    shard: ShardId
    ddl: str


def forecast_findings(pipeline: Pipeline, tables: Sequence[ShardTable]) -> list[Finding]:
    """The joined types of columns where shards differ, and the shards that would be held.

    Args:
        pipeline: Its sources are those of the tables.
        tables: Tables that the connectors capture, all or some; those without a route do not count.

    Returns:
        Warnings; a fault if the agents could not start with this pipeline file.
    """
    try:
        states, fixups = _forecast(pipeline, tables)
    except ConfigError as error:
        return [Finding("pipeline", error.message, code=error.code)]
    otherwise, more = _forecast(pipeline, tables[::-1])
    found = [
        finding for target in sorted(states) for finding in _type_findings(target, states[target])
    ]
    if dialect_of(pipeline.target.kind, pipeline.target.version).shares_check_names:
        found += _check_findings(states)
    holds, others = _holds(states), _holds(otherwise)
    for (target, code, why), shard in {**others, **holds}.items():
        always = (target, code, why) in holds and (target, code, why) in others
        when = "" if always else ", should its table be read after those of the other shards"
        found.append(
            Finding(f"shard {shard}", f"it would be held{when}: {why}", fault=False, code=code)
        )
    return found + [
        Finding(
            f"shard {fixup.shard}",
            f"it would be read again: {fixup.reason}",
            fault=False,
            code="SM-6206",
        )
        for fixup in dict.fromkeys((*fixups, *more))
    ]


def _forecast(
    pipeline: Pipeline, tables: Iterable[ShardTable]
) -> tuple[dict[TargetTable, TargetState], list[Fixup]]:
    """The targets after the tables in this order, and the tables that would be read again."""
    contexts = {source.name: server_context(source) for source in pipeline.sources}
    dialect = dialect_of(pipeline.target.kind, pipeline.target.version)
    defaults = utf8mb4_defaults(pipeline.sources)
    states: dict[TargetTable, TargetState] = {}
    fixups: list[Fixup] = []
    for number, table in enumerate(tables):
        shard = table.shard
        event = SchemaChangeEvent(
            shard.source, number, shard.database, table.ddl, BEGINNING, snapshot=True,
            table=shard.table, tables=(TableChange("CREATE", shard.database, shard.table, ()),),
            ts_ms=0,
        )  # fmt: skip
        result = tracker.track({}, event, pipeline.routes, contexts[shard.source])
        for change in result.changes:
            target = change.target
            before = states.get(target) or initial(target, defaults)
            step = decide(before, change, dialect, contexts[shard.source])
            states[target] = step.state
            fixups += step.decision.fixups if step.decision else ()
    return states, fixups


def _type_findings(target: TargetTable, state: TargetState) -> Iterator[Finding]:
    """Columns of the target that shards have with different types."""
    shards: dict[str, dict[ColumnType, list[ShardId]]] = {}
    for shard in sorted(state.shards):
        schema = state.shards[shard].effective
        for item in schema.columns if schema else ():
            kinds = shards.setdefault(item.id, {})
            kinds.setdefault(value_type(item.column.type), []).append(shard)
    for column in state.columns:
        kinds = shards.get(column.id, {})
        if len(kinds) > 1:
            name, will_be = column.column.name, column_type(column.column.type)
            text = f"column {name} will be {will_be}: it is {_counted(kinds)}"
            yield Finding(f"target {target}", text, fault=False, code="SM-6207")


def _check_findings(states: Mapping[TargetTable, TargetState]) -> Iterator[Finding]:
    """Checks with one name in two targets of a database, which MySQL refuses (error 3822)."""
    first: dict[tuple[str, str], TargetTable] = {}
    for target in sorted(states):
        schema = states[target].schema
        for check in schema.checks if schema else ():
            other = first.setdefault((target.database, check.name.lower()), target)
            if other != target:
                text = f"its check {check.name} has the name of one of {other}"
                yield Finding(f"target {target}", text, code="SM-6208")


def _counted(kinds: Mapping[ColumnType, Sequence[ShardId]]) -> str:
    """The types, each with the number of shards that have it, and one of these shards."""
    parts: list[str] = []
    for text, shards in sorted((column_type(kind), shards) for kind, shards in kinds.items()):
        word = "" if parts else " shards" if len(shards) > 1 else " shard"
        more = ", …" if len(shards) > 1 else ""
        parts.append(f"{text} on {len(shards)}{word} ({shards[0]}{more})")
    return ", ".join(parts)


def _holds(
    states: Mapping[TargetTable, TargetState],
) -> dict[tuple[TargetTable, str, str], ShardId]:
    """Target, code and reason → a shard that is held for it."""
    return {
        (target, hold.code, f"{hold.reason}; {hold.hint}"): name
        for target in sorted(states)
        for name in sorted(states[target].held, reverse=True)
        if (hold := states[target].shards[name].hold) is not None
    }
