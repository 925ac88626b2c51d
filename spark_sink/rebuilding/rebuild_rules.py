"""When a target may be rebuilt, and which loads fill its shadow. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from shardmerge.schemas.model.names import ShardId, TargetTable
from shardmerge.schemas.model.policies import RowsPolicy
from shardmerge.schemas.pipeline.routing import RoutingRule, rule_of
from shardmerge.schemas.pipeline.row_conditions import column_names
from shardmerge.spark_sink.barrier.decisions import StatementKey, TargetDecisions
from shardmerge.spark_sink.barrier.passed_debts import carried_debts
from shardmerge.spark_sink.barrier.restarts import open_restart
from shardmerge.spark_sink.barrier.statements import void_debts
from shardmerge.spark_sink.loading.load_state import Load, LoadKind

from .route_changes import is_route_of

_EXPLAIN = "`shardmerge status` shows what it waits for, `shardmerge explain` the ways out"
ALLOW = "--only-source-rows"


@dataclass(frozen=True, slots=True)
class Obstacle:
    """Why a rebuild cannot begin.

    Attributes:
        passes: Whether it ends by itself while the pipeline runs.
    """

    code: str
    text: str
    hint: str
    passes: bool = False


def obstacles(
    known: TargetDecisions,
    executed: Collection[StatementKey],
    routes: Sequence[RoutingRule],
    *,
    only_source_rows: bool,
    may_be_held: bool = False,
) -> tuple[Obstacle, ...]:
    """Why the rebuild of a target cannot begin now; empty when it can.

    Args:
        known: Everything decided for the target.
        executed: The target's keys in the journal.
        routes: The pipeline's.
        only_source_rows: Whether the new table may lack rows that no shard has.
        may_be_held: Whether shards may be held: the new table has decisions of its own.
    """
    found = [*not_at_rest(known, executed, may_be_held=may_be_held)]
    if not only_source_rows:
        found += _rows_elsewhere(known, routes)
    if not any(known.lives(shard) for shard in known.shards):
        found.append(
            Obstacle(
                "SM-6502", f"{known.target} has no live shard", "there is nothing to load it from"
            )
        )
    return tuple(found)


def held_shards(known: TargetDecisions) -> list[ShardId]:
    """The live shards that are held."""
    return [name for name in sorted(known.shards) if _is_held(known, name)]


def _is_held(known: TargetDecisions, name: ShardId) -> bool:
    return known.lives(name) and known.shards[name].first_held is not None


def not_at_rest(
    known: TargetDecisions, executed: Collection[StatementKey], *, may_be_held: bool = False
) -> Iterator[Obstacle]:
    """Why a table does not stand where its decisions lead.

    Args:
        known: Everything decided for the table.
        executed: The table's keys in the journal.
        may_be_held: Whether held shards are no reason.
    """
    void = void_debts(known, executed)
    waiting = [key for key in known.statements if key not in executed and key not in void]
    if waiting or carried_debts(known.statements, executed):
        count = max(len(waiting), 1)
        yield Obstacle(
            "SM-6503",
            f"{known.target}: {count} statements are decided and not executed",
            _EXPLAIN,
            passes=True,
        )
    for name, shard in sorted(known.shards.items()):
        if not known.lives(name):
            continue
        if (held := shard.first_held) is not None and not may_be_held:
            yield Obstacle("SM-6504", f"{name} is held: {held.reason}", _EXPLAIN)
        elif name in known.paused:
            yield Obstacle("SM-6504", f"{name} is paused", "resume it first")
        elif known.awaited.since(name) is not None:
            yield Obstacle(
                "SM-6504", f"{name}: its table is to be read as a whole", _EXPLAIN, passes=True
            )
        elif open_restart(shard, executed) is not None:
            yield Obstacle("SM-6504", f"{name} is being read again", _EXPLAIN, passes=True)


def _rows_elsewhere(known: TargetDecisions, routes: Sequence[RoutingRule]) -> Iterator[Obstacle]:
    """The rows that the target may have and no shard has."""
    hint = f"if the new table need not have them, add {ALLOW}"
    for name in sorted(known.shards):
        rule = rule_of(routes, name)
        if not known.lives(name):
            if rule is None or rule.policies.on_drop is RowsPolicy.KEEP or name in known.left:
                yield Obstacle(
                    "SM-6505",
                    f"{known.target} may have rows of {name}, which is no shard of it any more",
                    hint,
                )
        elif rule is not None and rule.ignores_operations:
            yield Obstacle(
                "SM-6505",
                f"the route of {name} keeps rows that the shard has deleted",
                hint,
            )


def change_refused(
    known: TargetDecisions, routes: Sequence[RoutingRule], where: str | None
) -> Obstacle | None:
    """Why a rebuild cannot change a target's route; None when it can.

    Args:
        known: Everything decided for the target.
        routes: The pipeline's.
        where: The new condition; "" for all rows, None if the origin columns change alone.
    """
    rules = {rule_of(routes, name) for name in known.shards if known.lives(name)}
    if len(rules) != 1 or any(
        rule is None or not is_route_of(rule, known.target) for rule in rules
    ):
        return Obstacle(
            "SM-6524" if where is None else "SM-6520",
            f"the shards of {known.target} do not have one route that leads only to it",
            "give the target one route of its own in the pipeline file; docs/how-to/rebuild.md has "
            "another way to change the condition",
        )
    for name in sorted(known.shards):
        if not known.lives(name):
            continue
        there = {column.column.name.lower() for column in known.shards[name].gates[-1].columns}
        for column in column_names(where) if where else ():
            if column.lower() not in there:
                return Obstacle(
                    "SM-6520",
                    f"{name} has no column {column}, which the condition names",
                    "name columns that every shard has",
                )
    return None


def shadow_loads(known: TargetDecisions, table: TargetTable) -> tuple[Load, ...]:
    """The loads that fill a shadow: one for each live shard, at the shard's last gate.

    Args:
        known: Everything decided for the target when the shadow is planned.
        table: The shadow.
    """

    def load(name: ShardId) -> Load:
        version = known.shards[name].gates[-1].version
        return Load(name, table, version, LoadKind.SNAPSHOT, version)

    return tuple(load(name) for name in sorted(known.shards) if known.lives(name))
