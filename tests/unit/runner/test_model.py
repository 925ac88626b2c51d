from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from shardmerge.schemas.model.names import ShardId, TargetTable
from shardmerge.schemas.pipeline.routing import route as route_to
from tests.e2e.runner.cases import case_name, routes_of
from tests.e2e.runner.model import ANY, ScenarioError, load_all, parse, pending, rename


def document(**changes: Any) -> dict[str, Any]:
    base: dict[str, Any] = {
        "id": "x",
        "title": "t",
        "mode": "optimistic",
        "origin": "own",
        "route": "app1.t_* of every source -> merged.t",
        "target": "merged.t",
        "sources": [
            {"source": "s1", "table": "app1.t_1", "create": "create table app1.t_1 (i int)"}
        ],
        "steps": [
            {"n": 1, "source": "s2", "table": "app1.t_1", "sql": "insert into app1.t_1 values (1)"}
        ],
        "final": {"columns": [{"name": "i", "type": "int"}], "rows": [[1]]},
    }
    return {**base, **changes}


def test_a_scenario_knows_the_sources_of_its_shards_and_of_its_steps() -> None:
    assert parse(document(), "x").sources == ("s1", "s2")


@pytest.mark.parametrize(
    "changes",
    [
        {"surprise": 1},
        {"steps": [{"n": 1, "surprise": 1}]},
        {"steps": [{"expect": {"surprise": 1}}]},
        {"steps": [{"wait": {"for": "x"}}]},
        {"final": {"surprise": 1}},
        {"final": {"columns": [{"name": "a", "surprise": 1}]}},
        {"final": {"indexes": {"i": {"surprise": 1}}}},
        {"sources": [{"source": "s1", "table": "a.b", "create": "c", "surprise": 1}]},
    ],
)
def test_an_unknown_field_is_an_error(changes: dict[str, Any]) -> None:
    with pytest.raises(ScenarioError, match="unknown field"):
        parse(document(**changes), "x")


@pytest.mark.parametrize(
    "step",
    [{"n": 1}, {"event": "a", "operator": "b"}, {"n": 1, "sql": "insert into app1.t_1 values (1)"}],
)
def test_a_step_does_one_thing_or_expects_one(step: dict[str, Any]) -> None:
    with pytest.raises(ScenarioError):
        parse(document(steps=[step]), "x")


def test_an_unknown_route_is_an_error() -> None:
    with pytest.raises(ScenarioError, match="route"):
        parse(document(route="everything"), "x")


def test_the_rows_of_the_shards_win_over_those_of_the_original_target() -> None:
    final = parse(document(final={"source_rows": [[2]], "rows": [[1]], "row_count": 1}), "x").final
    assert final.rows == ((2,),)
    assert final.row_count is None


@pytest.mark.parametrize(
    ("step", "ends"),
    [
        ({"conflict": "x"}, True),
        ({"task_error": "x"}, True),
        ({"target_rows": 3}, False),
        ({"target_equals_union": False}, True),
        ({"target_equals_union": True}, False),
    ],
)
def test_a_scenario_ends_in_conflict_when_its_last_expectation_is_one(
    step: dict[str, Any], ends: bool
) -> None:
    steps = [{"expect": {"target_rows": 1}}, {"expect": step}]
    assert parse(document(steps=steps), "x").ends_in_conflict() is ends


@pytest.mark.parametrize(
    ("sql", "renamed"),
    [
        ("alter table app1.t_1 add a int", "alter table sc7_app1.t_1 add a int"),
        ("delete from app1.t_1 where a='app1.t'", "delete from sc7_app1.t_1 where a='app1.t'"),
        ("drop database app1", "drop database sc7_app1"),
        (
            "rename table app1.t_1 to `app2`.t_2, app2.t_3 to app1.t_4",
            "rename table sc7_app1.t_1 to `sc7_app2`.t_2, sc7_app2.t_3 to sc7_app1.t_4",
        ),
        ("update merged.t set a = 1", "update sc7_merged.t set a = 1"),
        ("alter table app1.t_1 add app1 int", "alter table sc7_app1.t_1 add app1 int"),
        ("call app1.f('it''s app1.x')", "call sc7_app1.f('it''s app1.x')"),
    ],
)  # fmt: skip
def test_databases_get_the_case_prefix_outside_of_strings(sql: str, renamed: str) -> None:
    assert rename(sql, "sc7") == renamed


def test_a_target_without_shards_is_judged_by_its_rows_only() -> None:
    final = {"basis": "x", "columns": [], "indexes": {}, "row_count": 0, "rows": []}
    scenario = parse(document(final=final), "x")

    assert (scenario.final.columns, scenario.final.indexes) == (None, None)
    assert (scenario.final.row_count, scenario.final.rows) == (0, ())


def test_a_file_that_cannot_be_read_fails_by_itself(tmp_path: Path) -> None:
    good = yaml.safe_dump(document())
    (tmp_path / "a.yaml").write_text("id: [broken", encoding="utf-8")
    (tmp_path / "b.yaml").write_text(good, encoding="utf-8")
    (tmp_path / "c.yaml").write_text("- a list", encoding="utf-8")
    (tmp_path / "d.yaml").write_text(good, encoding="utf-8")
    (tmp_path / "e.yaml").write_bytes(b"\xff\xfe\x00")
    changed = yaml.safe_dump(document(sources=[{"source": "s1"}]))
    (tmp_path / "f.yaml").write_text(changed, encoding="utf-8")

    scenarios, unreadable = load_all(sorted(tmp_path.glob("*.yaml")))

    assert [scenario.id for scenario in scenarios] == ["x"]
    assert sorted(unreadable) == ["a", "c", "d", "e", "f"]
    assert "another file has the id 'x'" in unreadable["d"]


@pytest.mark.parametrize(
    ("fields", "refused"),
    [
        ({"refused": True}, ANY),
        ({"source_error": 1091}, "1091"),
        ({"expect": {"source_error": "Duplicate"}}, "Duplicate"),
        ({"must_fail": False}, ""),
        ({}, ""),
    ],
)
def test_a_step_may_say_that_the_source_must_refuse_it(
    fields: dict[str, Any], refused: str
) -> None:
    step = {"n": 1, "source": "s1", "table": "app1.t_1", "sql": "alter table t_1 drop x", **fields}
    found = parse(document(steps=[step]), "x").steps[0]
    assert (found.refused, found.expect) == (refused, None)


def test_a_scenario_may_say_its_partitions_and_that_locks_stay() -> None:
    found = parse(document(partitions=3, final={"locks_pending": True}), "x")
    assert (found.partitions, found.final.state) == (3, "locks pending")
    with pytest.raises(ScenarioError, match="no number of partitions"):
        parse(document(partitions="many"), "x")
    told: list[dict[str, Any]] = [{"lock": "pending"}, {"locks_pending": 2}, {"held": True}]
    assert [pending(expect) for expect in told] == [True, 2, None]


@pytest.mark.parametrize(
    ("route", "databases", "tables"),
    [
        ("app1.t_* of every source -> merged.t", ("app1", "app2"), "t_.*"),
        ("app1.t_*, app2.t_* of every source -> merged.t", ("app1", "app2"), "t_.*"),
        ("`app1`.`t_?` -> `merged`.`t`", ("app1",), "t_."),
        ("t% of all sources => merged.t", ("app1",), "t.*"),
        ("app*.t_[12] and app1.old -> merged.t", ("app1",), "t_[12]|old"),
    ],
)
def test_a_route_may_have_any_wildcards(
    route: str, databases: tuple[str, ...], tables: str
) -> None:
    found = parse(document(route=route), "x").route
    assert (found.databases, found.tables) == (databases, tables)


def test_other_databases_get_the_prefix_too() -> None:
    changes = {
        "route": "shop.order_? of every source -> all_shops.orders",
        "target": "all_shops.orders",
        "sources": [
            {"source": "s1", "table": "shop.order_1", "create": "create table order_1 (i int)"}
        ],
    }
    scenario = parse(document(**changes), "x")
    sql = "insert into shop.order_1 select * from all_shops.orders"
    wanted = "insert into su1_shop.order_1 select * from su1_all_shops.orders"
    assert rename(sql, "su1", scenario.names) == wanted
    (rule,) = routes_of([scenario])
    shard = ShardId("s1", f"{case_name(scenario, 7, 1)}_shop", "order_1")
    assert route_to((rule,), shard) == (TargetTable("su1_7_all_shops", "orders"),)
