"""``shardmerge command``: who gave it, and what is printed as JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from shardmerge.cli import command as module
from shardmerge.cli.bundles import without_passwords
from shardmerge.cli.command import Given, command_of
from shardmerge.cli.main import main
from shardmerge.cli.parameters import login_name
from shardmerge.cli.views.call_shapes import GivenCommand
from shardmerge.schemas.model.names import ShardId, TargetTable
from shardmerge.schemas.model.position import BEGINNING
from shardmerge.schemas.pipeline.settings import Pipeline
from shardmerge.schemas.pipeline.text import pipeline_text
from shardmerge.schemas.records.decisions import Decision, Outcome
from shardmerge.schemas.records.operator_commands import OperatorCommand
from shardmerge.schemas.records.plain import from_plain
from shardmerge.schemas.records.schema_changes import ChangeId
from tests.recorded import pipeline

SHARD = "s1/shop.tbl1"
PLACE = ChangeId("p.commands", 7)


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch) -> list[OperatorCommand]:
    """The commands that were given; the second one gets no answer, a third is refused."""
    found: list[OperatorCommand] = []

    def give(pipeline: Pipeline, said: OperatorCommand, wait_s: float) -> Given:
        found.append(said)
        outcome = Outcome.REFUSED if len(found) == 3 else Outcome.NOOP
        answer = Decision(
            PLACE, said.target, 4, None, BEGINNING, outcome, reason="why", ddl=str(said)
        )
        return Given(PLACE, None if len(found) == 2 else answer)

    monkeypatch.setattr(module, "give", give)
    return found


def call(tmp_path: Path, *words: str) -> Result:
    file = tmp_path / "pipeline.toml"
    file.write_text(pipeline_text(without_passwords(pipeline())), encoding="utf-8")
    arguments = ["command", *words, "--shard", SHARD, "--pipeline", str(file)]
    return CliRunner().invoke(main, arguments)


def test_the_record_keeps_who_gave_the_command(
    tmp_path: Path, given: list[OperatorCommand]
) -> None:
    call(tmp_path, "pause", "--by", "olga")
    call(tmp_path, "resume")
    assert [(said.kind.value, said.by) for said in given] == [
        ("pause", "olga"), ("resume", login_name()),
    ]  # fmt: skip
    assert given[0].shard == ShardId("s1", "shop", "tbl1")
    assert given[0].target == TargetTable("merged", "tbl")


def test_nobody_is_the_login_name() -> None:
    assert command_of(pipeline(), "pause", "", SHARD, "", by=" ").by == login_name()


def test_json_tells_the_answer_or_that_there_is_none_yet(
    tmp_path: Path, given: list[OperatorCommand]
) -> None:
    done, late, refused = (call(tmp_path, "pause", "--json", "--by", "olga") for _ in range(3))
    assert [found.exit_code for found in (done, late, refused)] == [0, 1, 1]
    answers = [from_plain(GivenCommand, json.loads(r.stdout)) for r in (done, late, refused)]
    assert [answer.change for answer in answers] == ["p.commands@7.0"] * 3
    assert answers[1].answer is None
    assert answers[0].answer is not None
    assert (answers[0].answer.by, answers[0].answer.outcome) == ("olga", "no-op")
    assert answers[2].answer is not None
    assert answers[2].answer.outcome == "refused"
