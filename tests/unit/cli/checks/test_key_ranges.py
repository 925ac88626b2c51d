"""Whether shards of one target may have the same keys."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal

import pytest

from shardmerge.cli.checks.key_ranges import KeyRange, key_range, overlap_findings
from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.model.origin import Origin, OriginColumn, OriginPart
from shardmerge.schemas.model.policies import RoutePolicies
from shardmerge.schemas.pipeline.routing import RoutingRule

RULE = RoutingRule(".*", "app", r"t_.*", "m", "t")


def shard(table: str, source: str = "s1") -> ShardId:
    return ShardId(source, "app", table)


def ranges(*bounds: tuple[int, int]) -> dict[ShardId, KeyRange]:
    return {shard(f"t_{n}"): KeyRange("id", low, high) for n, (low, high) in enumerate(bounds)}


def test_shards_that_number_their_rows_each_for_itself_are_told() -> None:
    [found] = overlap_findings(ranges((1, 90), (1, 70)), [RULE])
    assert not found.fault
    assert str(found).startswith(
        "target m.t: the primary keys of s1/app.t_0 (id 1 to 90) and s1/app.t_1 (id 1 to 70) are "
        "in ranges that overlap"
    )
    assert "in_keys = true" in found.text


@pytest.mark.parametrize(
    ("bounds", "overlap"),
    [
        (((1, 9), (10, 19), (20, 29)), False),
        (((20, 29), (1, 9), (10, 20)), True),
        (((1, 100), (5, 5), (101, 102)), True),
        (((1, 100),), False),
        ((), False),
    ],
)
def test_ranges_that_share_a_value_overlap(
    bounds: tuple[tuple[int, int], ...], overlap: bool
) -> None:
    assert bool(overlap_findings(ranges(*bounds), [RULE])) is overlap


def test_a_long_range_overlaps_also_one_that_does_not_follow_it() -> None:
    [found] = overlap_findings(ranges((1, 100), (-5, 0), (200, 300), (90, 95)), [RULE])
    assert "s1/app.t_0 (id 1 to 100) and s1/app.t_3 (id 90 to 95)" in found.text


def test_only_shards_of_one_target_whose_keys_do_not_differ_are_compared() -> None:
    same = ranges((1, 9), (1, 9))
    other = RoutingRule(".*", "app", "t_1", "m", "u")
    assert overlap_findings(same, [RoutingRule(".*", "app", "t_0", "m", "t"), other]) == []
    assert overlap_findings(same, [RULE, other]) == [], "what two targets claim is told as that"
    keyed = Origin((OriginColumn(OriginPart.SHARD, "_s"),), in_keys=True)
    assert overlap_findings(same, [_with(keyed)]) == []
    assert overlap_findings(same, [_with(Origin(keyed.columns))]) != []
    by_source = _with(Origin((OriginColumn(OriginPart.SOURCE, "_s"),), in_keys=True))
    assert overlap_findings(same, [by_source]) != []
    apart = {shard("t_0", "s1"): KeyRange("id", 1, 9), shard("t_0", "s2"): KeyRange("id", 1, 9)}
    assert overlap_findings(apart, [by_source]) == []


def _with(origin: Origin) -> RoutingRule:
    return RoutingRule(".*", "app", r"t_.*", "m", "t", policies=RoutePolicies(origin=origin))


def test_values_of_one_kind_are_compared() -> None:
    assert key_range("id", None, None) is None
    assert key_range("d", "0000-00-00", date(2026, 1, 1)) is None
    found = {
        shard("t_0"): KeyRange("id", 1, 9),
        shard("t_1"): KeyRange("id", Decimal("2.5"), Decimal(3)),
        shard("t_2"): KeyRange("id", date(2026, 1, 1), date(2026, 2, 1)),
        shard("t_3"): KeyRange("id", datetime(2026, 1, 1), datetime(2026, 2, 1)),
    }
    [numbers] = overlap_findings(found, [RULE])
    assert "t_0" in numbers.text and "t_1 (id 2.5 to 3)" in numbers.text
    del found[shard("t_1")]
    assert overlap_findings(found, [RULE]) == []
