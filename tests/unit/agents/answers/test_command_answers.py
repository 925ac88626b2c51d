from __future__ import annotations

import pytest

from shardmerge.agents.answers.command_answers import CommandCall, call_of, commands_answer
from shardmerge.agents.status.command_log import AnsweredCommand
from shardmerge.schemas.model.errors import ConfigError
from shardmerge.schemas.records.operator_commands import CommandKind, OperatorCommand
from shardmerge.schemas.records.schema_changes import ChangeId
from tests.example_pages import ORDERS


def test_a_call_needs_a_kind_only():
    assert call_of({"kind": "enable"}) == CommandCall("enable")
    whole = {"kind": "skip", "shard": "s", "argument": "a", "only_ask": True}
    assert call_of(whole) == CommandCall("skip", "s", "a", only_ask=True)


@pytest.mark.parametrize(
    "plain",
    [
        None,
        [],
        "skip",
        {},
        {"kind": 1},
        {"kind": "skip", "shard": None},
        {"kind": "skip", "only_ask": "yes"},
        {"kind": "skip", "by": "root"},
        {"kind": "\ud800"},
    ],
)
def test_what_is_no_call_is_told(plain):
    with pytest.raises(ConfigError) as told:
        call_of(plain)
    assert told.value.code == "SM-6912"


def test_a_command_about_a_target_has_no_shard():
    said = OperatorCommand(ChangeId("c", 7), ORDERS, CommandKind.ENABLE, by="olga", ts_ms=5)
    [found] = commands_answer("t", [AnsweredCommand(said, None)]).commands
    assert (found.id, found.kind, found.shard, found.by) == ("c@7.0", "enable", "", "olga")
