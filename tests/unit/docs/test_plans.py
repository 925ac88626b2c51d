"""The page about plans: its files are read, its commands run, its output is what comes out."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from shardmerge.cli.main import main
from tests.unit.cli.planning.pipelines import PIPELINE
from tests.unit.docs.documents import DOCS, shell_lines

PAGE = (DOCS / "how-to" / "plan-a-rollout.md").read_text(encoding="utf-8")
LINES = list(shell_lines(PAGE))
CREATE = "CREATE TABLE t_1 (id BIGINT PRIMARY KEY, a INT);\n"


def marked(mark: str) -> list[str]:
    """The fenced blocks behind a mark."""
    return re.findall(rf"<!-- {mark} -->\n```\w+\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project as the page supposes it."""
    (tmp_path / "pipeline.toml").write_text(PIPELINE, encoding="utf-8")
    [rollout] = marked("file: rollout.yaml")
    (tmp_path / "rollout.yaml").write_text(rollout, encoding="utf-8")
    (tmp_path / "table.sql").write_text(CREATE, encoding="utf-8")
    (tmp_path / "change.sql").write_text("ALTER TABLE t_1 ADD COLUMN n INT;\n", encoding="utf-8")
    for source in ("s1", "s2"):
        (tmp_path / "schema" / source / "app").mkdir(parents=True)
        (tmp_path / "schema" / source / "app" / "t_1.sql").write_text(CREATE, encoding="utf-8")
    (tmp_path / "migrations").mkdir()
    (tmp_path / "migrations" / "V1__begin.sql").write_text(CREATE, encoding="utf-8")
    (tmp_path / "migrations" / "V2__add.sql").write_text(
        "ALTER TABLE t_1 ADD COLUMN n INT;\n", encoding="utf-8"
    )
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(line: str) -> Result:
    program, *words = shlex.split(line)
    assert program == "shardmerge"
    return CliRunner().invoke(main, words)


def test_the_output_is_what_comes_out(folder: Path) -> None:
    found = run(LINES[0])
    assert found.exit_code == 1, found.stderr
    [shown] = marked("output: 1")
    assert found.stdout.startswith(shown)
    assert "`1, 3, 2, 4`" in PAGE
    assert found.stdout.endswith("  1, 3, 2, 4\n")


@pytest.mark.parametrize("line", LINES[1:])
def test_the_other_commands_run(line: str, folder: Path) -> None:
    found = run(line)
    assert found.exit_code in (0, 1), found.stderr
    assert ("NOT CLEAN" in found.stdout) == (found.exit_code == 1)


def test_what_the_ci_examples_run_writes_a_comment(folder: Path) -> None:
    examples = marked("ci")
    assert len(examples) == 2
    for text in examples:
        yaml.safe_load(text)
        [line] = [each.strip() for each in text.splitlines() if "shardmerge plan" in each]
        call, _, file = line.partition(" > ")
        found = run(call)
        assert (found.exit_code, file) == (0, "plan.md"), found.stderr
        assert found.stdout.startswith("### ✅ shardmerge plan: shop")
