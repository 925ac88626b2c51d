"""The SQL that the documents show: it is read, and comes out as shown."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from shardmerge.schemas.ddl.grammar import ServerContext, parse
from shardmerge.schemas.pipeline.file import parse_pipeline
from tests.unit.docs.documents import DOCUMENTS, ROOT, fences, name_of
from tests.unit.docs.played import Played

_EXAMPLE = re.compile(
    r"<!-- played: (?P<target>[\w.]+); (?P<shards>[^;]*);(?P<settings>[^;]*)"
    r"(?:; (?P<kind>[^;]+))? -->\n"
    r"(?:```sql\n(?P<create>.*?);\n```\n.*?)?(?P<rows>\| on \|.*?)\n(?:\n|\Z)",
    re.DOTALL,
)
_HEAD = "| on | SQL in | SQL out, on the target | why |"


@dataclass(frozen=True, slots=True)
class Example:
    """Statements of shards, one after the other, and what a document says comes out.

    Attributes:
        steps: The source, its statement, and the text of the cell of the target's statements.
    """

    page: str
    target: str
    shards: tuple[str, ...]
    settings: str
    kind: str
    create: str
    steps: tuple[tuple[str, str, str], ...]


def examples_of(document: Path) -> Iterator[Example]:
    for found in _EXAMPLE.finditer(document.read_text(encoding="utf-8")):
        steps = []
        for line in found["rows"].splitlines()[2:]:
            on, sql, out, _ = (cell.strip() for cell in line.strip("|").split(" | "))
            steps.append((on, sql.strip("`"), out))
        yield Example(
            name_of(document),
            found["target"],
            tuple(shard.strip() for shard in found["shards"].split(",") if shard.strip()),
            found["settings"].strip(),
            (found["kind"] or "mysql 8.0.40").strip(),
            found["create"] or "",
            tuple(steps),
        )


EXAMPLES = [example for document in DOCUMENTS for example in examples_of(document)]


def statements() -> list[tuple[str, str]]:
    found = []
    for document in DOCUMENTS:
        for fence in fences(document.read_text(encoding="utf-8"), "sql"):
            texts = (text.strip() for text in fence.text.split(";\n"))
            found += [(name_of(document), text.rstrip(";")) for text in texts if text]
    return found


@pytest.mark.parametrize(("page", "sql"), statements())
def test_a_statement_is_read(page: str, sql: str) -> None:
    parse(sql, ServerContext())


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda e: f"{e.page}-{e.settings or e.kind}")
def test_the_target_gets_what_the_document_shows(example: Example) -> None:
    played = Played(example.target, tomllib.loads(example.settings), example.kind)
    played.create(example.shards, example.create)
    for source, sql, out in example.steps:
        answer = played.run(source, sql)
        shown = () if out in ("nothing", "held") else tuple(re.findall("`([^`]+)`", out))
        assert answer.statements == shown, sql
        assert (answer.outcome == "hold") == (out == "held"), sql


def test_every_table_of_statements_is_an_example_that_is_played() -> None:
    tables = sum(document.read_text(encoding="utf-8").count(_HEAD) for document in DOCUMENTS)
    assert len(EXAMPLES) == tables > 8
    assert all(example.steps for example in EXAMPLES)


def test_the_readme_shows_three_shards() -> None:
    [example] = [e for e in EXAMPLES if e.page == "README.md"]
    assert len(example.shards) == 3
    assert len(example.steps) == 6


HEAD = """
[pipeline]
name = "p"
[[sources]]
name = "s1"
host = "h"
port = 3306
user = "u"
password = "p"
server_id = 1
"""
PARTS = {
    "[connect]": '[connect]\nurl = "http://connect:8083"\n',
    "[kafka]": '[kafka]\nbootstrap_servers = "kafka:9092"\n',
    "[[routes]]": '[[routes]]\ndatabase = "app"\ntable = "t"\ntarget = "merged.t"\n',
    "[target]": '[target]\nhost = "h"\nport = 3306\nuser = "u"\npassword = "p"\n',
}


def pieces() -> list[tuple[str, str]]:
    return [
        (name_of(document), fence.text)
        for document in DOCUMENTS
        for fence in fences(document.read_text(encoding="utf-8"), "toml")
    ]


@pytest.mark.parametrize(("page", "toml"), pieces())
def test_a_piece_of_a_pipeline_file_is_one(page: str, toml: str) -> None:
    """With the tables that it does not show."""
    missing = "".join(part for head, part in PARTS.items() if head not in toml)
    env = dict.fromkeys(re.findall(r"\$\{(\w+)\}", toml), "x")
    assert parse_pipeline(HEAD + missing + toml, env)


def test_the_readme_and_the_architecture_are_short() -> None:
    for name, bound in (("README.md", 150), ("ARCHITECTURE.md", 200)):
        assert len((ROOT / name).read_text(encoding="utf-8").splitlines()) <= bound


def test_the_glossary_has_at_most_35_words() -> None:
    rows = (ROOT / "GLOSSARY.md").read_text(encoding="utf-8").splitlines()
    words = [row.split("|")[1].strip() for row in rows if row.startswith("| ")][1:]
    assert 0 < len(words) <= 35
    assert len(set(words)) == len(words)
