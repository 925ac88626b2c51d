"""Every path, module, function and link that a document names exists."""

from __future__ import annotations

import importlib.util
import re
from functools import cache
from pathlib import Path

import pytest

from tests.unit.docs.documents import DOCS, DOCUMENTS, ROOT, code_words, name_of, prose

PACKAGES = ("agents", "schemas", "connectors", "spark_sink", "local", "cli")
FOLDERS = (*PACKAGES, "tests", "docs", "docker", "benchmarks")
BUILT = ("build", ".venv", ".local")
"""Folders that commands make."""
_PATH = re.compile(
    rf"(?:{'|'.join(FOLDERS)}|\.ci)/[\w./*-]*"
    r"|[A-Z]+\.md|pyproject\.toml|requirements\.lock|mkdocs\.yml|Makefile"
)
_LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
_CALL = re.compile(r"(?:([A-Z]\w*)\.)?(\w+)\(\)")
_OF_MYSQL = ("rand()", "uuid()")
_CLASS = re.compile(r"[A-Z][a-z]+(?:[A-Z][a-z]+)+")
_MODULE = re.compile(rf"(?:shardmerge\.)?({'|'.join(PACKAGES)})((?:\.\w+)+)")


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as MkDocs and GitHub make them."""
    found = set()
    for line in prose(page.read_text(encoding="utf-8")).splitlines():
        if line.startswith("#"):
            title = re.sub(r"[`\[\]()]|\([^)]*\)$", "", line.lstrip("# ")).lower()
            found.add(re.sub(r"[\s-]+", "-", re.sub(r"[^\w\s-]", "", title)).strip("-"))
    return found


def faulty_links(document: Path) -> list[str]:
    faults = []
    for link in _LINK.findall(prose(document.read_text(encoding="utf-8"))):
        if link.startswith(("https://", "http://")):
            continue
        path, _, anchor = link.partition("#")
        page = (document.parent / path).resolve() if path else document
        if not page.exists() or (anchor and anchor not in anchors(page)):
            faults.append(link)
    return faults


@cache
def definitions() -> tuple[frozenset[str], dict[str, frozenset[str]]]:
    """Names of functions and classes, and the methods of each class, of all packages."""
    names: set[str] = set()
    methods: dict[str, set[str]] = {}
    for folder in PACKAGES:
        for path in (ROOT / folder).rglob("*.py"):
            owner = ""
            for found in re.finditer(
                r"^( *)(?:async )?(def|class) (\w+)", path.read_text(encoding="utf-8"), re.MULTILINE
            ):
                indent, kind, name = found.groups()
                names.add(name)
                if kind == "class":
                    owner = name
                elif indent and owner:
                    methods.setdefault(owner, set()).add(name)
    return frozenset(names), {name: frozenset(found) for name, found in methods.items()}


def is_there(word: str) -> bool:
    """Whether a path of the project exists; it may have wildcards."""
    path = word.rstrip("/").partition(":")[0]
    if path.startswith(BUILT):
        return True
    return bool(list(ROOT.glob(path))) if "*" in path else (ROOT / path).exists()


def missing_names(text: str) -> list[str]:
    names, methods = definitions()
    missing = []
    for word in code_words(text):
        if _PATH.fullmatch(word):
            if not is_there(word):
                missing.append(word)
        elif found := _MODULE.fullmatch(word):
            if word.startswith("docs"):
                continue
            if importlib.util.find_spec(f"shardmerge.{found[1]}{found[2]}") is None:
                missing.append(word)
        elif (found := _CALL.fullmatch(word)) and word not in _OF_MYSQL:
            owner, name = found.groups()
            known = methods.get(owner, frozenset()) if owner else names
            if name not in known:
                missing.append(word)
        elif re.fullmatch(r"\w+\.java", word) and not (ROOT / "connectors/java" / word).exists():
            missing.append(word)
    return missing


@pytest.mark.parametrize("document", DOCUMENTS, ids=name_of)
def test_every_link_leads_somewhere(document: Path) -> None:
    assert faulty_links(document) == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=name_of)
def test_every_path_module_and_function_exists(document: Path) -> None:
    assert missing_names(document.read_text(encoding="utf-8")) == []


def test_every_class_that_the_architecture_names_exists() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    named = {word for word in code_words(text) if _CLASS.fullmatch(word)}
    assert {"RangeTask", "SchemaChange"} <= named
    assert named - definitions()[0] == set()


def test_the_architecture_names_every_room() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    words = set(code_words(text))
    rooms = {
        ".".join(path.relative_to(ROOT).parts)
        for package in ("schemas", "agents", "spark_sink", "connectors", "local", "cli")
        for path in (ROOT / package).iterdir()
        if (path / "__init__.py").exists()
    }
    assert rooms - words == set()


def test_every_page_is_in_the_navigation() -> None:
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")[2]
    listed = re.findall(r"(?:: |- )([\w/-]+\.md)$", navigation, re.MULTILINE)
    assert sorted(listed) == sorted(p.relative_to(DOCS).as_posix() for p in DOCS.rglob("*.md"))


def test_a_name_that_does_not_exist_is_found() -> None:
    text = "`schemas/nowhere.py`, `shardmerge.schemas.nowhere`, `nowhere_at_all()`, `RowFold.no()`"
    assert len(missing_names(text)) == 4


def test_the_site_loads_nothing_from_elsewhere() -> None:
    """A Mermaid block would make the theme load a script from another host."""
    settings = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    assert "font: false" in settings
    for page in DOCS.rglob("*.md"):
        text = page.read_text(encoding="utf-8")
        assert "```mermaid" not in text
        assert not re.search(r"!\[[^\]]*\]\(https?:", text)
    for picture in DOCS.rglob("*.svg"):
        assert not re.search(r"(?:href|src|url)\W+https?:", picture.read_text(encoding="utf-8"))
