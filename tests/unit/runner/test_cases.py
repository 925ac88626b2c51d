from __future__ import annotations

from pathlib import Path

import pytest

from shardmerge.schemas.model.names import ShardId, TargetTable
from shardmerge.schemas.model.policies import Mode, RenamePolicy
from shardmerge.schemas.pipeline.routing import route, rule_of
from tests.e2e.runner.cases import CASE_ROUTES, Result, case_name, load_later, with_policies
from tests.e2e.runner.model import ScenarioError, load

OWN = Path(__file__).resolve().parents[2] / "e2e" / "scenarios"


def test_every_scenario_of_ours_is_well_formed_and_named_after_its_file() -> None:
    paths = sorted(OWN.glob("*.yaml"))
    assert len(paths) >= 12
    assert [load(path).id for path in paths] == [path.stem for path in paths]


def test_the_list_of_what_must_wait_gives_reasons(tmp_path: Path) -> None:
    assert all(entry.reason for entry in load_later())
    (tmp_path / "l.yaml").write_text("- ids: [a]\n  reason: ''\n", encoding="utf-8")
    with pytest.raises(ScenarioError, match="no reason"):
        load_later(tmp_path / "l.yaml")


@pytest.mark.parametrize(
    ("passed", "listed", "word"),
    [
        (True, "", "passed"),
        (False, "", "FAILED"),
        (False, "needs x", "later"),
        (True, "needs x", "FAILED"),
    ],
)
def test_a_listed_scenario_must_fail_and_another_must_pass(
    passed: bool, listed: str, word: str
) -> None:
    result = Result("x", passed, 0.0, listed=listed)
    assert result.word == word
    assert result.counts_as_failed is (word == "FAILED")


def test_each_case_has_a_target_of_its_own() -> None:
    shard = ShardId("s1", "sc12_app1", "t_1")
    assert route(CASE_ROUTES, shard) == (TargetTable("sc12_merged", "t"),)
    assert route(CASE_ROUTES, ShardId("s1", "sc12_mark", "m_1")) == ()
    modes = []
    for found in (shard, ShardId("s1", "sp12_app1", "t_1")):
        rule = rule_of(CASE_ROUTES, found)
        assert rule is not None
        modes.append(rule.policies.mode)
    assert modes == [Mode.OPTIMISTIC, Mode.PESSIMISTIC]


def test_a_scenario_is_played_under_the_policy_whose_end_it_tells(tmp_path: Path) -> None:
    (told,) = [s for s in map(load, OWN.glob("*.yaml")) if s.id == "renames_copied"]
    other = load(OWN / "widen.yaml")
    (tmp_path / "p.yaml").write_text("hold: [widen]\n", encoding="utf-8")
    found = with_policies([told, other], tmp_path / "p.yaml")
    assert [s.renames for s in found] == [RenamePolicy.COPY, RenamePolicy.HOLD]
    for scenario in found:
        shard = ShardId("s1", f"{case_name(scenario, 7)}_app1", "t_1")
        rule = rule_of(CASE_ROUTES, shard)
        assert rule is not None
        assert rule.policies.renames is scenario.renames
    (tmp_path / "p.yaml").write_text("keep: [widen]\n", encoding="utf-8")
    with pytest.raises(ScenarioError, match="keep"):
        with_policies([other], tmp_path / "p.yaml")
