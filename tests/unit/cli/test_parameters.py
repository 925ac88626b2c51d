"""Kinds of values on the command line."""

from __future__ import annotations

import getpass
import os
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.shell_completion import ShellComplete

from shardmerge.cli.main import main
from shardmerge.cli.parameters import Position, Shard, Target, Time, login_name
from shardmerge.schemas.model.names import ShardId, TargetTable
from shardmerge.schemas.model.position import SourcePosition


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (Shard(), "s1/app.t_1", ShardId("s1", "app", "t_1")),
        (Shard(), "s1/app.a.b", ShardId("s1", "app", "a.b")),
        (Target(), "merged.t", TargetTable("merged", "t")),
        (Position(), "binlog.000007:1234", SourcePosition(0, "binlog.000007", 1234, 0)),
        (Position(), "2/binlog.000007:1234+5", SourcePosition(2, "binlog.000007", 1234, 5)),
        (Time(), "1970-01-01T00:00:01.234", 1234),
        (Time(), "1970-01-01T01:00:00+01:00", 0),
    ],
)
def test_a_text_is_read(kind: click.ParamType, text: str, value: object) -> None:
    assert kind.convert(text, None, None) == value


@pytest.mark.parametrize("value", [ShardId("s", "d", "t"), SourcePosition(1, "b.1", 4, 2)])
def test_what_the_values_print_is_read_back(value: object) -> None:
    kind: click.ParamType = Shard() if isinstance(value, ShardId) else Position()
    assert kind.convert(str(value), None, None) == value


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (Shard(), "app.t"), (Shard(), "s1/app"), (Shard(), "/app.t"), (Target(), "t"),
        (Target(), "a.b.c"), (Position(), "binlog.000007"), (Position(), "a:b"),
        (Time(), "yesterday"),
    ],
)  # fmt: skip
def test_another_text_is_an_error(kind: click.ParamType, text: str) -> None:
    with pytest.raises(click.BadParameter):
        kind.convert(text, None, None)


def test_a_user_without_a_name_is_told_by_number(monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody() -> str:
        raise KeyError("getpwuid(): uid not found: 7")

    monkeypatch.setattr(getpass, "getuser", nobody)
    assert login_name().startswith("uid ")


def completed(*words: str) -> list[str]:
    *before, begun = words
    found = ShellComplete(main, {}, "shardmerge", "_SHARDMERGE_COMPLETE")
    return [item.value for item in found.get_completions(before, begun)]


def test_commands_options_and_sources_are_completed(tmp_path: Path) -> None:
    assert completed("ex") == ["explain", "explain-code", "export"]
    assert completed("connect", "re") == ["render", "restart"]
    assert "--failed" in completed("connect", "restart", "--")
    assert "unlock-execute" in completed("command", "unlock-")
    file = tmp_path / "pipeline.toml"
    file.write_text('[[sources]]\nname = "s1"\npassword = "${UNSET}"\n[[sources]]\nname = "t2"\n')
    assert completed("connect", "restart", "--pipeline", str(file), "") == ["s1", "t2"]
    assert completed("connect", "restart", "--pipeline", str(file), "t") == ["t2"]
    assert completed("connect", "restart", "--pipeline", str(tmp_path / "none"), "") == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_documented_variable_gives_the_script_of_a_shell(shell: str) -> None:
    program = "from shardmerge.cli.main import main; main(prog_name='shardmerge')"
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False,
        env={**os.environ, "_SHARDMERGE_COMPLETE": f"{shell}_source"},
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    assert f"_SHARDMERGE_COMPLETE={shell}_complete" in ended.stdout
