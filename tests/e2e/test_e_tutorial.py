"""The tutorial about moving away from shards: its page is played, block by block.

It goes on where the demo ended, as the page does.
"""

from __future__ import annotations

import re
import shlex
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from shardmerge.cli.main import main
from shardmerge.local.line import Line
from tests.line_sql import execute
from tests.unit.docs.documents import DOCS

PAGE = (DOCS / "tutorial" / "move-away-from-shards.md").read_text(encoding="utf-8")
PROGRAM = ".venv/bin/shardmerge"
PATIENCE_S = 60.0
_BLOCK = re.compile(r"(?:<!-- ([^>]+) -->\n)?```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


class Reader:
    """Does what the page says, in a folder of its own."""

    def __init__(self, line: Line, folder: Path) -> None:
        self.line, self.folder = line, folder
        self.shown = ""
        self._again: Callable[[], str] = str

    def do(self, mark: str, kind: str, text: str) -> None:
        match kind, mark.partition(": ")[::2]:
            case "sh", ("" | "ends", code):
                *others, last = text.splitlines()
                for command in others:
                    self._run(command, 0)
                self._again = lambda: self._run(last, int(code or 0))
                self.shown = self._again()
            case "text", ("file", name):
                (self.folder / name).write_text(text, encoding="utf-8")
            case "sql", ("on", "target"):
                with self.line.connect_target() as connection, connection.cursor() as cursor:
                    for statement in text.splitlines():
                        cursor.execute(statement)
            case "sql", ("on", source):
                execute(self.line, source, *text.splitlines())
            case "text", ("shows", _):
                deadline = time.monotonic() + PATIENCE_S
                while missing := _missing(text.splitlines(), self.shown):
                    assert time.monotonic() < deadline, f"{missing!r} is not in:\n{self.shown}"
                    self.shown = self._again()
            case _:
                pytest.fail(f"a block that is not played: {kind} {mark}")

    def _run(self, command: str, code: int) -> str:
        program, *words = shlex.split(command)
        if program == "make":
            assert words in (["demo", "KEEP=1"], ["down"])  # the demo was played, the line goes on
            return ""
        assert program == PROGRAM
        paths = {"FILE": str(self.line.pipeline_path)}
        found = CliRunner().invoke(main, [paths.get(word, word) for word in words])
        assert found.exit_code == code, f"{command}\n{found.output}"
        return f"\n{found.stdout}"


def _missing(lines: list[str], shown: str) -> str:
    """The first line that is not shown behind the lines before it; "" if all are."""
    at = 0
    for line in lines:
        at = shown.find(f"\n{line}", at)
        if at < 0:
            return line
    return ""


@pytest.mark.timeout(900)
def test_the_page_says_what_happens(
    line: Line, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    reader = Reader(line, tmp_path)
    for mark, kind, text in _BLOCK.findall(PAGE):
        reader.do(mark, kind, text)
