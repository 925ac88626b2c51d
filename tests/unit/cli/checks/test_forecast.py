"""What `shardmerge check` foretells of the shards' tables as they are now."""

from __future__ import annotations

from dataclasses import replace

import pytest

from shardmerge.cli.checks.forecast import ShardTable, forecast_findings
from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.model.policies import Mode, RoutePolicies, TypePolicy
from shardmerge.schemas.pipeline.routing import RoutingRule
from shardmerge.schemas.pipeline.settings import Connect, Kafka, Pipeline, Source, Target

RULE = RoutingRule(".*", "app", r"t_\d", "m", "t")
SOURCES = tuple(
    Source(name, "127.0.0.1", 3306, "u", "p", 5 + n) for n, name in enumerate(("s1", "s2"))
)
PIPELINE = Pipeline(
    "p",
    Kafka("127.0.0.1:9092"),
    Connect("http://127.0.0.1:8083"),
    SOURCES,
    (RULE,),
    Target("127.0.0.1", 3306, "u", "p"),
)


def table(source: str, number: int, columns: str, key: str = "int") -> ShardTable:
    ddl = f"CREATE TABLE `t_{number}` (`id` {key} NOT NULL, {columns}, PRIMARY KEY (`id`))"
    return ShardTable(ShardId(source, "app", f"t_{number}"), f"{ddl} DEFAULT CHARSET=utf8mb4")


def said(*tables: ShardTable, pipeline: Pipeline = PIPELINE) -> list[str]:
    found = forecast_findings(pipeline, tables)
    assert not any(finding.fault for finding in found)
    return [str(finding) for finding in found]


def test_tables_that_are_alike_give_no_word() -> None:
    columns = "`n` int unsigned DEFAULT NULL, `s` varchar(20) DEFAULT NULL"
    assert said(table("s1", 1, columns), table("s2", 1, columns)) == []
    # How wide an integer is shown is no matter of its values.
    assert said(table("s1", 1, "`n` int(11)"), table("s2", 1, "`n` int(10)")) == []


def test_the_joined_type_is_told_where_shards_differ() -> None:
    found = said(
        table("s1", 1, "`n` int, `s` varchar(20)"),
        table("s1", 2, "`n` int, `s` varchar(20)"),
        table("s2", 1, "`n` int unsigned, `s` text"),
    )
    assert found == [
        "target m.t: column n will be bigint: it is int on 2 shards (s1/app.t_1, …), int unsigned "
        "on 1 (s2/app.t_1)",
        "target m.t: column s will be text CHARACTER SET utf8mb4: it is text CHARACTER SET utf8mb4 "
        "on 1 shard (s2/app.t_1), varchar(20) CHARACTER SET utf8mb4 on 2 (s1/app.t_1, …)",
    ]


def test_a_hold_is_told_with_its_reason() -> None:
    (found,) = said(table("s1", 1, "`n` int"), table("s2", 1, "`n` date"))
    assert found.startswith("shard s2/app.t_1: it would be held: column n, type: date and int: ")
    assert "their values are of different kinds; make the type of n agree" in found

    published = replace(
        PIPELINE, routes=(replace(RULE, policies=RoutePolicies(types=TypePolicy.PUBLISHED)),)
    )
    tables = table("s1", 1, "`n` int"), table("s2", 1, "`n` int unsigned")
    (found,) = said(*tables, pipeline=published)
    assert "one is unsigned" in found and "types=wide" in found


@pytest.mark.parametrize("mode", Mode)
def test_a_key_that_tidb_cannot_alter_holds_whichever_shard_comes_first(mode: Mode) -> None:
    tidb = replace(
        PIPELINE,
        target=replace(PIPELINE.target, kind="tidb", version="8.4"),
        routes=(replace(RULE, policies=RoutePolicies(mode=mode)),),
    )
    tables = table("s1", 1, "`n` int", "bigint"), table("s2", 1, "`n` int", "bigint unsigned")
    told = ", should its table be read after those of the other shards: TiDB does not change id"
    first, second = sorted(said(*tables, pipeline=tidb))
    assert first.startswith(f"shard s1/app.t_1: it would be held{told} from bigint unsigned to ")
    assert second.startswith(f"shard s2/app.t_1: it would be held{told} from bigint to decimal")
    assert "the primary key's values would have to be written anew" in first


def test_what_holds_in_one_order_alone_is_told_so() -> None:
    lake = replace(
        PIPELINE,
        target=Target("", 0, "", "", "control", "iceberg", "1.12.0"),
    )
    wide, narrow = table("s1", 1, "`n` bigint unsigned"), table("s2", 1, "`n` bigint")
    for tables in ((wide, narrow), (narrow, wide)):
        found = said(*tables, pipeline=lake)
        (hold,) = [text for text in found if "held" in text]
        assert hold.startswith(
            "shard s1/app.t_1: it would be held, should its table be read after those of the other "
            "shards: Iceberg does not change n from bigint to decimal(20,0)"
        )


def test_a_table_that_nobody_can_read_is_told() -> None:
    unread = ShardTable(ShardId("s1", "app", "t_1"), "CREATE TABLE `t_1` (`id` nothing known)")
    (found,) = said(unread, table("s2", 1, "`n` int"))
    assert found.startswith("shard s1/app.t_1: it would be held: ")


def test_tables_that_no_route_takes_are_left_alone() -> None:
    other = ShardTable(ShardId("s1", "app", "other"), "CREATE TABLE `other` (`id` int)")
    assert said(other) == []


def test_a_version_that_the_agents_cannot_read_is_a_fault() -> None:
    odd = replace(PIPELINE, sources=(replace(SOURCES[0], version="8.0.36-log"),))
    (found,) = forecast_findings(odd, [])
    assert found.fault
    assert "version '8.0.36-log' is not numbers with points" in str(found)


def test_two_targets_of_a_database_with_checks_of_one_name_are_a_fault() -> None:
    other = RoutingRule(".*", "app", r"u_\d", "m", "u")
    new = replace(PIPELINE.target, version="8.0.36")
    pipeline = replace(PIPELINE, routes=(RULE, other), target=new)
    check = "`n` int, CONSTRAINT `Positive` CHECK ((`n` > 0))"
    ddl = table("s1", 1, check.lower().replace("constraint", "CONSTRAINT")).ddl
    u_1 = ShardTable(ShardId("s1", "app", "u_1"), ddl.replace("`t_1`", "`u_1`"))
    tables = table("s1", 1, check), u_1
    (found,) = forecast_findings(pipeline, tables)
    assert (str(found), found.fault) == (
        "target m.u: its check positive has the name of one of m.t",
        True,
    )
    apart = replace(pipeline, routes=(RULE, replace(other, target_database="other")))
    maria = replace(pipeline, target=replace(PIPELINE.target, kind="mariadb", version="10.11"))
    assert forecast_findings(apart, tables) == forecast_findings(maria, tables) == []
