"""The list of commands: true to each command, and listed without importing them."""

from __future__ import annotations

import inspect
import json
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import version

import click
import pytest
from click.testing import CliRunner

from shardmerge.cli.main import COMMANDS, main

WITHOUT_RESULT = {"agents", "sink", "run", "connect watch", "demo", "down"}
"""Processes that run until they are stopped; what plays for people; what only ends with a code."""
HEAVY = (
    "rich", "structlog", "sqlglot", "confluent_kafka", "aiokafka", "faust", "pyspark", "pymysql",
    "requests", "fastavro", "shardmerge.agents.coordination", "shardmerge.agents.handling",
    "shardmerge.agents.status", "shardmerge.spark_sink",
)  # fmt: skip


def commands(group: click.Group, path: str = "") -> Iterator[tuple[str, click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        found = group.get_command(context, name)
        assert found is not None
        if isinstance(found, click.Group):
            yield from commands(found, f"{path}{name} ")
        else:
            yield f"{path}{name}", found


@pytest.mark.parametrize("name", COMMANDS)
def test_the_line_of_a_command_is_the_first_sentence_of_its_help(name: str) -> None:
    command = main.get_command(click.Context(main), name)
    assert command is not None
    assert command.name == name
    first = inspect.cleandoc(command.help or "").partition("\n\n")[0]
    assert COMMANDS[name][1] == " ".join(first.split())


def test_every_command_that_has_a_result_prints_it_as_json_too() -> None:
    without = {
        name
        for name, command in commands(main)
        if not any("--json" in parameter.opts for parameter in command.params)
    }
    assert without == WITHOUT_RESULT


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--help"], "explain-code"),
        (["explain-code", "SM-1203"], "The defaults of a column differ"),
        (["explain-code", "SM-1203", "--json"], '"code": "SM-1203"'),
    ],
)
def test_a_light_command_imports_nothing_heavy(words: list[str], told: str) -> None:
    program = (
        "import atexit, json, sys\n"
        "atexit.register(lambda: print(json.dumps(sorted(sys.modules)), file=sys.stderr))\n"
        "from shardmerge.cli.main import main\n"
        f"main({words!r})"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert (ended.returncode, told in ended.stdout) == (0, True), ended.stderr
    assert set(json.loads(ended.stderr)) & set(HEAVY) == set()


def test_a_command_that_does_not_exist_is_refused() -> None:
    assert main.get_command(click.Context(main), "statuses") is None


def test_status_of_a_pipeline_file_imports_no_local_stack_and_no_coordinator() -> None:
    """It reads states and does not decide."""
    program = "import json, sys, shardmerge.cli.status\nprint(json.dumps(sorted(sys.modules)))"
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    needless = {
        "faust", "pyspark", "aiokafka", "shardmerge.local.line", "shardmerge.spark_sink",
        "shardmerge.agents.coordination.coordinator", "shardmerge.connectors.repair.source_repair",
    }  # fmt: skip
    assert set(json.loads(ended.stdout)) & needless == set()


def test_the_command_says_its_version() -> None:
    found = CliRunner().invoke(main, ["--version"], prog_name="shardmerge")
    assert (found.exit_code, found.output) == (0, f"shardmerge {version('shardmerge')}\n")
