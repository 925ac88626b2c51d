from __future__ import annotations

import pytest

from shardmerge.schemas.model.errors import ConfigError
from shardmerge.schemas.model.names import TargetTable
from shardmerge.schemas.pipeline.given_commands import given_command
from shardmerge.schemas.records.operator_commands import CommandKind
from tests.example_pages import ORDERS, orders, pipeline

SHARD = str(orders(7))


def given(kind: str, argument: str = "", shard: str = "", target: str = ""):
    return given_command(pipeline(), kind, argument, shard, target, by=" olga ", ts_ms=7)


def test_the_record_has_what_was_said():
    said = given("leave", " delete ", SHARD)
    assert (said.target, said.kind, said.shard) == (ORDERS, CommandKind.LEAVE, orders(7))
    assert (said.argument, said.by, said.ts_ms) == ("delete", "olga", 7)
    assert given("set-mode", "", "", "other.t").target == TargetTable("other", "t")


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (("",), "there is no command (none chosen)"),
        (("reloaded", "x", SHARD), "there is no command reloaded"),
        (("skip",), "skip needs a shard"),
        (("enable", "", SHARD), "enable takes no shard"),
        (("skip", "x", SHARD), "skip takes no argument"),
        (("skip", "", "s1.app.t"), "a shard is source/database.table"),
        (("skip", "", "s1/app.other"), "skip needs a target"),
        (("enable", "", "", "orders"), "a target is database.table"),
    ],
)
def test_what_is_no_command_is_told(words, what):
    with pytest.raises(ConfigError) as told:
        given(*words)
    assert told.value.message.startswith(what)
    assert told.value.code == "SM-5601"
