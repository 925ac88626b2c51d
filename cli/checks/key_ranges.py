"""Whether shards of one target may have the same keys, judged by the ranges of the keys. Pure.

The target has one row for a key. To see that two shards write the same key, one would have to read
the target for every row. So this check looks where the fault shows: shards that each number their
own rows have overlapping ranges. An overlap proves nothing, since the keys may be distributed so
that each one is in one shard.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import TypeAlias, TypeGuard, cast

from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.pipeline.routing import RoutingRule, route, rule_of

from .findings import Finding

Bound: TypeAlias = int | Decimal | date | datetime
_KINDS: Mapping[type, str] = {int: "number", Decimal: "number", date: "date", datetime: "datetime"}
"""Values of one kind can be compared, and have the same order here as on a server."""


@dataclass(frozen=True, slots=True)
class KeyRange:
    """What a shard has in the first column of its primary key.

    Attributes:
        low, high: The least and the greatest value, of one kind.
    """

    column: str
    low: Bound
    high: Bound

    def __str__(self) -> str:
        return f"{self.column} {self.low} to {self.high}"


def key_range(column: str, low: object, high: object) -> KeyRange | None:
    """The range; None for an empty table, and for values of other types, such as a zero date."""
    if _is_bound(low) and _is_bound(high):
        return KeyRange(column, low, high)
    return None


def overlap_findings(
    ranges: Mapping[ShardId, KeyRange], rules: Sequence[RoutingRule]
) -> list[Finding]:
    """A warning for each target whose shards have keys in overlapping ranges.

    Args:
        ranges: Of the shards that have rows.
        rules: The routing rules. If they put origin columns into the keys, shards that differ in
            these columns may have the same values.
    """
    groups: dict[tuple[object, ...], list[tuple[ShardId, KeyRange]]] = {}
    for shard, found in sorted(ranges.items()):
        rule, targets = rule_of(rules, shard), route(rules, shard)
        if rule is None or len(targets) > 1:
            continue
        origin = rule.policies.origin
        apart = []
        if origin.in_keys:
            values = rule.group_values(shard)
            apart = [
                values.get(c.group, "") if c.group else c.part.value_in(shard)
                for c in origin.of_shard
            ]
        key = (targets[0], *apart, _KINDS[type(found.low)])
        groups.setdefault(key, []).append((shard, found))
    findings = {}
    for (target, *_), members in sorted(groups.items(), key=lambda item: str(item[0])):
        if pair := _overlapping(members):
            (one, of_one), (two, of_two) = pair
            findings[target] = Finding(
                f"target {target}",
                f"the primary keys of {one} ({of_one}) and {two} ({of_two}) are in ranges that "
                "overlap: where both have a row with one key, the target has the one that was "
                "written last; unless each key is in one shard only, let the route put the shard "
                "into the keys: origin = { shard = '_shard', in_keys = true }",
                fault=False,
                code="SM-6204",
            )
    return list(findings.values())


def _overlapping(
    members: Sequence[tuple[ShardId, KeyRange]],
) -> Sequence[tuple[ShardId, KeyRange]]:
    """Two shards whose ranges overlap; empty when none do."""
    furthest: tuple[ShardId, KeyRange] | None = None
    for member in sorted(members, key=lambda item: cast(int, item[1].low)):
        low, high = cast(int, member[1].low), cast(int, member[1].high)
        if furthest is not None and low <= cast(int, furthest[1].high):
            return furthest, member
        if furthest is None or high > cast(int, furthest[1].high):
            furthest = member
    return ()


def _is_bound(value: object) -> TypeGuard[Bound]:
    return type(value) in _KINDS
