from __future__ import annotations

from typing import Any

import pytest

from tests.e2e.runner.model import ScenarioError, parse, rename


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
