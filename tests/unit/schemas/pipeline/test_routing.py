"""Names, routing rules and positions."""

import pytest

from shardmerge.schemas.model.errors import ConfigError
from shardmerge.schemas.model.names import ShardId, TargetTable, quote_identifier
from shardmerge.schemas.model.position import BEGINNING, SourcePosition
from shardmerge.schemas.pipeline.routing import RoutingRule, route


def test_quoting_doubles_backticks() -> None:
    assert quote_identifier("a`b") == "`a``b`"
    assert TargetTable("m", "t`").sql == "`m`.`t```"


def test_a_rule_matches_whole_names_only() -> None:
    rule = RoutingRule("s1", "app", "t_.*", "merged", "t")

    assert rule.match(ShardId("s1", "app", "t_1")) == TargetTable("merged", "t")
    assert rule.match(ShardId("s1", "app2", "t_1")) is None
    assert rule.match(ShardId("s1", "app", "xt_1")) is None


def test_the_table_of_a_connectors_own_marks_is_never_a_shard() -> None:
    rule = RoutingRule(".*", ".*", ".*", "merged", "t")

    assert route([rule], ShardId("s1", "shardmerge_demo_s1", "signals")) == ()
    assert route([rule], ShardId("s1", "shardmerge_demo_s1", "t")) != ()
    assert route([rule], ShardId("s1", "app", "signals")) != ()


def test_named_groups_of_all_patterns_fill_the_target() -> None:
    rule = RoutingRule(
        r"(?P<region>\w+)_\d", r"(?P<app>\w+)", r"t_\d+", r"\g<app>", r"t_\g<region>"
    )

    assert rule.match(ShardId("eu_1", "shop", "t_3")) == TargetTable("shop", "t_eu")


def test_a_target_naming_an_unknown_group_is_an_error() -> None:
    rule = RoutingRule(".*", ".*", ".*", r"\g<nope>", "t")

    with pytest.raises(ConfigError, match="nope"):
        rule.match(ShardId("s", "d", "t"))


def test_a_pattern_that_is_no_regular_expression_is_refused() -> None:
    with pytest.raises(ConfigError, match="regular expression"):
        RoutingRule(".*", "(", ".*", "m", "t")


def test_contradicting_rules_give_every_target_and_agreeing_ones_one() -> None:
    shard = ShardId("s", "d", "t")
    one = RoutingRule(".*", ".*", ".*", "m", "a")
    same = RoutingRule("s", ".*", ".*", "m", "a")
    other = RoutingRule("s", ".*", ".*", "m", "b")

    assert route([one, same], shard) == (TargetTable("m", "a"),)
    assert route([one, other], shard) == (TargetTable("m", "a"), TargetTable("m", "b"))
    assert route([RoutingRule("x", ".*", ".*", "m", "a")], shard) == ()


def test_positions_order_by_epoch_then_file_number_then_place() -> None:
    ordered = [
        BEGINNING,
        SourcePosition(0, "binlog.000009", 900, 0),
        SourcePosition(0, "binlog.000010", 4, 0),
        SourcePosition(0, "binlog.000010", 4, 1),
        SourcePosition(0, "binlog.000010", 90, 0),
        SourcePosition(0, "binlog.999999", 1, 0),
        SourcePosition(0, "binlog.1000000", 1, 0),
        SourcePosition(1, "binlog.000001", 4, 0),
    ]

    backwards = ordered[::-1]
    assert sorted(backwards) == ordered
    assert ordered[1] <= ordered[1]
    assert str(ordered[-1]) == "1/binlog.000001:4"
    assert str(ordered[3]) == "binlog.000010:4+1"
