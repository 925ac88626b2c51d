"""What rebuilds have changed in routes. Pure.

A table that was rebuilt with another condition has the rows of that condition, and one that was
rebuilt with other origin columns has these. From the swap on its rows must be applied with them,
whatever a sink has read from the pipeline file before. So the rebuild stores both: what the file
had, and the new value. A sink that finds the earlier one in its file takes the new one. If the file
says something else, somebody has changed it since, and it counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from shardmerge.schemas.model.names import TargetTable
from shardmerge.schemas.model.origin import Origin
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


@dataclass(frozen=True, slots=True)
class ChangedOrigin:
    """What a rebuild has made of the origin columns of its target's route.

    Attributes:
        before: Those that were in force.
        after: The new ones.
    """

    target: TargetTable
    before: Origin
    after: Origin


RouteChange: TypeAlias = ChangedWhere | ChangedOrigin


def routes_in_force(
    routes: Sequence[RoutingRule], changes: Sequence[RouteChange]
) -> tuple[RoutingRule, ...]:
    """The routes with what their targets' tables have.

    Args:
        routes: Of the pipeline file.
        changes: Those of the rebuilds whose tables are in their targets' places, in order.
    """
    return tuple(_in_force(rule, changes) for rule in routes)


def _in_force(rule: RoutingRule, changes: Iterable[RouteChange]) -> RoutingRule:
    for change in changes:
        if not is_route_of(rule, change.target):
            continue
        if isinstance(change, ChangedWhere):
            if rule.where == change.before:
                rule = replace(rule, where=change.after)
        elif rule.policies.origin == change.before:
            rule = replace(rule, policies=replace(rule.policies, origin=change.after))
    return rule


def is_route_of(rule: RoutingRule, target: TargetTable) -> bool:
    """Whether a route leads to one target, and to no others."""
    return (rule.target_database, rule.target_table) == (target.database, target.table)
