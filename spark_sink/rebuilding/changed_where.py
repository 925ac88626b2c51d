"""Conditions of routes that a rebuild has changed. Pure.

A table that was rebuilt with another condition has the rows of that condition. From the swap on its
rows must be applied with it, whatever a sink has read from the pipeline file before. So the rebuild
stores both conditions: that of the file, and the new one. A sink that finds the earlier one in its
file takes the new one. If the file says something else, somebody has changed it since, and it
counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from shardmerge.schemas.model.names import TargetTable
from shardmerge.schemas.pipeline.routing import RoutingRule


@dataclass(frozen=True, slots=True)
class ChangedWhere:
    """What a rebuild has made of the condition of its target's route.

    Attributes:
        before: The condition that was in force; "" for all rows.
        after: The new one.
    """

    target: TargetTable
    before: str
    after: str


def routes_in_force(
    routes: Sequence[RoutingRule], changes: Sequence[ChangedWhere]
) -> tuple[RoutingRule, ...]:
    """The routes with the conditions that their targets' tables have.

    Args:
        routes: Of the pipeline file.
        changes: Those of the rebuilds whose tables are in their targets' places, in order.
    """
    return tuple(_in_force(rule, changes) for rule in routes)


def _in_force(rule: RoutingRule, changes: Iterable[ChangedWhere]) -> RoutingRule:
    for change in changes:
        if is_route_of(rule, change.target) and rule.where in (change.before, change.after):
            rule = replace(rule, where=change.after)
    return rule


def is_route_of(rule: RoutingRule, target: TargetTable) -> bool:
    """Whether a route leads to one target, and to no others."""
    return (rule.target_database, rule.target_table) == (target.database, target.table)
