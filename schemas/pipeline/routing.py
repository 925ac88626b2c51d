"""Routing rules: which source table is a shard of which target."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache

from shardmerge.schemas.model.errors import ConfigError
from shardmerge.schemas.model.names import (
    SIGNAL_DATABASE_PREFIX,
    SIGNAL_TABLE,
    ShardId,
    TargetTable,
)
from shardmerge.schemas.model.origin import OriginColumn, OriginPart, group_cell
from shardmerge.schemas.model.policies import (
    DEFAULT_POLICIES,
    RoutePolicies,
    RowOperation,
    RowsPolicy,
)

_MOST_ROUTED = 16_384
"""Shards, for each rule, whose targets are remembered."""
TOOLS_TABLES = r"_.+_(?:gho|ghc|ghr|del|new|old)"
"""Tables that gh-ost and pt-online-schema-change create beside a table: copies that they are
filling, old tables that a cut-over leaves, gh-ost's log. Their rows duplicate the table's rows.

Source: gh-ost, "Cheat sheet" (names of its tables); pt-online-schema-change, ``--new-table-name``.
"""


@dataclass(frozen=True, slots=True)
class RoutingRule:
    r"""Maps the tables that match three regular expressions to one target.

    Each expression must match the whole name (``re.fullmatch``). ``target_database`` and
    ``target_table`` may use named groups of all three as ``\g<name>``. A group name may be used in
    only one of the three expressions.

    Attributes:
        source, database, table: Regular expressions.
        skip: Regular expression of tables that are not shards although ``table`` matches; by
            default those that online schema change tools make. "": no table is skipped.
        where: Condition in SQL; only rows for which it is true are merged. "": all rows are merged.
        leave_out: Regular expression of columns that are not merged, compared without case. The
            connectors do not read their values. "": no column is left out.
        on_truncate: What happens to the rows of a truncated shard. When they cannot be deleted,
            because the target's rows do not show which shard they are from, the shard is paused.
        ignore: Operations that are not merged; empty: all are.
        policies: The route's policies for its target.
        row_topic: The topic with the rows of all shards of the route; "" when each shard has its
            own topic. See ``topics.RowTopics``.
    """

    source: str
    database: str
    table: str
    target_database: str
    target_table: str
    skip: str = TOOLS_TABLES
    where: str = ""
    leave_out: str = ""
    on_truncate: RowsPolicy = RowsPolicy.DELETE
    ignore: tuple[RowOperation, ...] = ()
    policies: RoutePolicies = DEFAULT_POLICIES
    row_topic: str = ""

    def __post_init__(self) -> None:
        for field in ("source", "database", "table", "skip", "leave_out"):
            pattern = getattr(self, field)
            try:
                re.compile(pattern)
            except re.error as error:
                raise ConfigError(
                    f"routing rule: {field} {pattern!r} is not a regular expression: {error}",
                    code="SM-5302",
                ) from None

    @property
    def keeps_truncated(self) -> bool:
        """Whether the rows of a truncated shard stay in the target."""
        return self.on_truncate is RowsPolicy.KEEP or RowOperation.TRUNCATE in self.ignore

    @property
    def ignores_operations(self) -> bool:
        """Whether something that a shard does with its rows is not done in the target."""
        return bool(self.ignore) or self.keeps_truncated

    @property
    def groups(self) -> frozenset[str]:
        """The named groups of its expressions."""
        patterns = (self.source, self.database, self.table)
        return frozenset(name for text in patterns for name in re.compile(text).groupindex)

    def match(self, shard: ShardId) -> TargetTable | None:
        """The target of a shard, or None when the rule does not match."""
        return _target(self._patterns, self.target_database, self.target_table, shard)

    def group_value(self, shard: ShardId, column: OriginColumn) -> str:
        """What the origin column of a group holds in the rows of a shard that the rule matches.

        Raises:
            ValueError: The group's value does not fit the column.
        """
        text = (_matched(self._patterns, shard) or {}).get(column.group)
        if text is None:
            raise ValueError(f"no expression of the route has the group {column.group}")
        return group_cell(text, column.column_type)

    def group_values(self, shard: ShardId) -> dict[str, str]:
        """Group → value, for the origin columns of groups whose value fits."""
        found = {}
        for column in self.policies.origin.of_shard:
            if column.part is OriginPart.GROUP:
                with suppress(ValueError):
                    found[column.group] = self.group_value(shard, column)
        return found

    def group_fault(self, shard: ShardId) -> str:
        """Why the value of a group does not fit its origin column; "" when all do."""
        for column in self.policies.origin.of_shard:
            if column.part is OriginPart.GROUP:
                try:
                    self.group_value(shard, column)
                except ValueError as error:
                    return f"group {column.group} for origin column {column.name!r}: {error}"
        return ""

    @property
    def _patterns(self) -> tuple[str, str, str, str]:
        return self.skip, self.source, self.database, self.table


@lru_cache(maxsize=_MOST_ROUTED)
def _target(
    patterns: tuple[str, str, str, str], database: str, table: str, shard: ShardId
) -> TargetTable | None:
    """The target of a shard by a rule's patterns and templates; it is asked for at each change."""
    groups = _matched(patterns, shard)
    if groups is None:
        return None
    return TargetTable(_expand(database, groups), _expand(table, groups))


def _matched(patterns: tuple[str, str, str, str], shard: ShardId) -> dict[str, str] | None:
    """The texts of the named groups in a shard's names; None when the rule does not match."""
    skip, *expressions = patterns
    if skip and re.fullmatch(skip, shard.table):
        return None
    groups: dict[str, str] = {}
    names = (shard.source, shard.database, shard.table)
    for pattern, name in zip(expressions, names, strict=True):
        found = re.fullmatch(pattern, name)
        if found is None:
            return None
        groups.update({k: v or "" for k, v in found.groupdict().items()})
    return groups


def route(rules: Sequence[RoutingRule], shard: ShardId) -> tuple[TargetTable, ...]:
    """Every distinct target that the rules give a shard, in rule order.

    The result is empty when the table is not routed; a connector's signal table never is. With more
    than one target the rules contradict each other, and the shard must be held.
    """
    return tuple(dict.fromkeys(target for _, target in matches_of(rules, shard)))


def matches_of(
    rules: Sequence[RoutingRule], shard: ShardId
) -> tuple[tuple[RoutingRule, TargetTable], ...]:
    """Every rule that matches a routed table, with the target that it gives, in rule order.

    Empty when the table is not routed, see ``route``.
    """
    if shard.table == SIGNAL_TABLE and shard.database.startswith(SIGNAL_DATABASE_PREFIX):
        return ()
    targets = ((rule, rule.match(shard)) for rule in rules)
    return tuple((rule, target) for rule, target in targets if target is not None)


def rule_of(rules: Sequence[RoutingRule], shard: ShardId) -> RoutingRule | None:
    """The first rule that matches a shard; None when none does."""
    return next((rule for rule in rules if rule.match(shard) is not None), None)


def _expand(template: str, groups: dict[str, str]) -> str:
    def value(match: re.Match[str]) -> str:
        name = match.group(1)
        if name not in groups:
            raise ConfigError(
                f"routing rule: target {template!r} names group {name!r}, which no pattern has",
                code="SM-5302",
            )
        return groups[name]

    return re.sub(r"\\g<(\w+)>", value, template)
