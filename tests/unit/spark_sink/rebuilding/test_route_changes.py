from __future__ import annotations

from dataclasses import replace

import pytest

from shardmerge.schemas.model.names import TargetTable
from shardmerge.schemas.model.origin import NO_ORIGIN, Origin, OriginColumn, OriginPart
from shardmerge.schemas.model.policies import RoutePolicies
from shardmerge.schemas.pipeline.routing import RoutingRule
from shardmerge.spark_sink.rebuilding.route_changes import (
    ChangedOrigin,
    ChangedWhere,
    RouteChange,
    is_route_of,
    routes_in_force,
)

TARGET = TargetTable("merged", "t")
RULE = RoutingRule(".*", "app", "t_.*", "merged", "t", where="a > 1")
OTHER = replace(RULE, target_table="u")
FIRST, SECOND = ChangedWhere(TARGET, "a > 1", "b"), ChangedWhere(TARGET, "b", "")


def in_force(where: str, *changes: ChangedWhere) -> str:
    [rule] = routes_in_force([replace(RULE, where=where)], changes)
    return rule.where


@pytest.mark.parametrize(
    ("file", "first", "both"),
    [
        ("a > 1", "b", ""),  # as before the rebuilds
        ("b", "b", ""),  # changed after the first one
        ("", "", ""),  # changed after the second one
        ("c", "c", "c"),  # changed by hand since
    ],
)
def test_a_rebuild_counts_unless_the_file_says_something_of_its_own(
    file: str, first: str, both: str
) -> None:
    assert in_force(file) == file
    assert in_force(file, FIRST) == first
    assert in_force(file, FIRST, SECOND) == both
    assert in_force(both, FIRST, SECOND) == both


def test_a_rebuild_can_go_back_to_the_condition_from_before() -> None:
    back = ChangedWhere(TARGET, "b", "a > 1")
    assert in_force("a > 1", FIRST, back) == "a > 1"
    assert in_force("b", FIRST, back) == "a > 1"


def test_routes_of_other_targets_stay() -> None:
    assert routes_in_force([OTHER, RULE], [FIRST]) == (OTHER, replace(RULE, where="b"))


def test_a_route_to_several_targets_is_no_targets_own() -> None:
    assert is_route_of(RULE, TARGET)
    assert not is_route_of(replace(RULE, target_table=r"\g<name>"), TARGET)


def test_changed_origin_columns_count_as_a_changed_condition_does() -> None:
    one, other = (Origin((OriginColumn(OriginPart.SHARD, name),)) for name in ("_a", "_b"))
    changes: list[RouteChange] = [FIRST, ChangedOrigin(TARGET, NO_ORIGIN, one)]
    [changed] = routes_in_force([RULE], changes)
    assert (changed.where, changed.policies.origin) == ("b", one)
    by_hand = replace(RULE, policies=RoutePolicies(origin=other))
    assert routes_in_force([by_hand], changes)[0].policies.origin == other
    assert routes_in_force([OTHER], changes) == (OTHER,)
