"""Every command that a document shows exists, with the options that it is shown with."""

from __future__ import annotations

import importlib.util
import re
import shlex
import subprocess
from pathlib import Path

import click
import pytest

from shardmerge.cli.command import command_of
from shardmerge.cli.main import main
from shardmerge.schemas.model.policies import Mode
from shardmerge.schemas.pipeline.file import parse_pipeline
from shardmerge.schemas.pipeline.routes import routing_rule
from shardmerge.schemas.pipeline.settings import Pipeline
from tests.unit.docs.documents import DOCUMENTS, ROOT, code_words, name_of, shell_lines

WORDS = ("shardmerge", "make", "python")
TEXTS = {document: document.read_text(encoding="utf-8") for document in DOCUMENTS}
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")


def shown(first: str) -> list[tuple[str, str]]:
    """The commands that begin with a word: page and command, each once."""
    found: dict[tuple[str, str], None] = {}
    for document, text in TEXTS.items():
        inline = (word for word in code_words(text) if not re.search(r"[…\[]|\|", word))
        for line in (*shell_lines(text), *inline):
            call = line.removeprefix(".venv/bin/")
            if call.split()[0] == first and len(call.split()) > 1:
                found[(name_of(document), call)] = None
    return list(found)


def pipeline() -> Pipeline:
    text = (ROOT / "docker/pipeline.toml").read_text(encoding="utf-8")
    read = parse_pipeline(text, {"SOURCE_PASSWORD": "a", "TARGET_PASSWORD": "b"})
    everything = {"database": ".*", "table": ".*", "target": "merged.t"}
    rule = routing_rule(everything, "example", Mode.OPTIMISTIC)
    return Pipeline(read.name, read.kafka, read.connect, read.sources, (rule,), read.target)


def parsed(line: str, file: Path) -> tuple[click.Command, click.Context]:
    """The command of a line, and what its options became; nothing is executed."""
    arguments = [str(file) if word == "FILE" else word for word in shlex.split(line)[1:]]
    command: click.Command = main
    context = click.Context(main, info_name="shardmerge")
    while isinstance(command, click.Group):
        name, command_found, arguments = command.resolve_command(context, arguments)
        assert command_found is not None
        command, context = command_found, click.Context(command_found, context, name)
    command.parse_args(context, arguments)
    return command, context


def is_whole(line: str) -> bool:
    """Whether it is a call, not the name of a command in a sentence."""
    words = line.split()
    return "--" in line or words[1] in ("status", "up", "down", "demo")


@pytest.mark.parametrize(("page", "line"), [c for c in shown("shardmerge") if is_whole(c[1])])
def test_a_call_of_the_command_line_is_read(page: str, line: str, tmp_path: Path) -> None:
    file = tmp_path / "FILE"
    file.touch()
    command, context = parsed(line, file)
    if command.name == "command":
        values = context.params
        argument = values["argument"] if not values["argument"].startswith("@") else "CREATE TABLE"
        command_of(pipeline(), values["kind"], argument, values["shard"], values["target"])


@pytest.mark.parametrize(("page", "line"), [c for c in shown("shardmerge") if not is_whole(c[1])])
def test_a_command_that_a_sentence_names_exists(page: str, line: str) -> None:
    command: click.Command = main
    for word in line.split()[1:]:
        if not isinstance(command, click.Group):
            [first, *_] = command.params
            kinds = first.type.choices if isinstance(first.type, click.Choice) else ()
            assert word in kinds or word == word.upper() or word == "delete", line
            if word in kinds:
                return
            continue
        below = command.get_command(click.Context(command), word)
        assert below is not None, line
        command = below


@pytest.mark.parametrize(("page", "line"), shown("make"))
def test_a_target_of_make_exists(page: str, line: str) -> None:
    words = shlex.split(line)[1:]
    goals = [word for word in words if "=" not in word]
    made = re.findall(r"^([a-z0-9-]+):", MAKEFILE, re.MULTILINE)
    assert set(goals) <= set(made)
    for name, _, value in (word.partition("=") for word in words if "=" in word):
        assert f"$({name})" in MAKEFILE or f"$(filter-out 0,$({name}))" in MAKEFILE, value
    subprocess.run(
        ["make", "--dry-run", "--no-print-directory", *words],
        cwd=ROOT, check=True, capture_output=True, timeout=60,
    )  # fmt: skip


@pytest.mark.parametrize(("page", "line"), shown("python"))
def test_a_module_that_is_started_exists_and_has_its_options(page: str, line: str) -> None:
    words = shlex.split(line)
    assert words[1] == "-m"
    spec = importlib.util.find_spec(words[2])
    assert spec is not None
    assert spec.origin is not None
    text = Path(spec.origin).read_text(encoding="utf-8")
    if words[2].endswith("spark_sink.job"):
        text += (ROOT / "spark_sink/process/settings.py").read_text(encoding="utf-8")
    for option in (word for word in words if word.startswith("--")):
        assert f'"{option}"' in text, option


def test_every_line_of_a_shell_block_is_looked_at() -> None:
    others = {
        line.split()[0]
        for text in TEXTS.values()
        for line in shell_lines(text)
        if line.removeprefix(".venv/bin/").split()[0] not in WORDS
    }
    # The one call of spark-submit is made by tests/cluster.
    assert others <= {"pip", "docker", "spark-submit"}


@pytest.mark.parametrize(
    "line", ["shardmerge check --nowhere", "shardmerge command skipp --shard x"]
)
def test_a_call_that_does_not_exist_is_refused(line: str, tmp_path: Path) -> None:
    with pytest.raises(click.UsageError):
        parsed(line, tmp_path)
