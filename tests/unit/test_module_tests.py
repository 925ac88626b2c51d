"""A module has a unit test of its name, or tests/README.md says which tests hold it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
UNIT = ROOT / "tests" / "unit"
PACKAGES = ("agents", "schemas", "connectors", "spark_sink", "local", "cli")


@cache
def modules() -> tuple[Path, ...]:
    """Every module of the packages, relative to the root."""
    found = (path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
    return tuple(sorted(path.relative_to(ROOT) for path in found if path.name != "__init__.py"))


@cache
def without_namesake() -> dict[str, list[Path]]:
    """Room → its modules without a unit test of their name."""
    rooms: dict[str, list[Path]] = {}
    for module in modules():
        if not (UNIT / module.parent / f"test_{module.name}").exists():
            rooms.setdefault(module.parent.as_posix(), []).append(module)
    return rooms


@cache
def told() -> dict[str, list[Path]]:
    """Room → tests, as tests/README.md says."""
    text = (ROOT / "tests" / "README.md").read_text(encoding="utf-8")
    rows = text.partition("held by |\n")[2].splitlines()[1:]
    cells = (re.findall(r"`([^`]+)`", row) for row in rows)
    return {room: [ROOT / test for test in tests] for room, *tests in cells}


def named(path: Path) -> Iterator[str]:
    """The project's modules that a file imports, or names in a text, with dots."""
    text = path.read_text(encoding="utf-8")
    package = ["shardmerge", *path.relative_to(ROOT).parts[:-1]]
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            base = ".".join([*above, *filter(None, [node.module])])
            yield base
            yield from (f"{base}.{alias.name}" for alias in node.names)
    yield from re.findall(r"\bshardmerge(?:\.\w+)+", text)


@cache
def imported(path: Path) -> frozenset[Path]:
    """The files of the project that a file imports."""
    found = set()
    for name in named(path):
        parts = name.removeprefix("shardmerge.").split(".")
        for place in (ROOT.joinpath(*parts), *ROOT.joinpath(*parts).parents):
            if place == ROOT:
                break
            found |= {f for f in (place.with_suffix(".py"), place / "__init__.py") if f.exists()}
    return frozenset(found)


def reached(tests: Iterable[Path]) -> set[Path]:
    """What some tests import, what that imports, and so on."""
    waiting = [f for test in tests for f in ([test] if test.is_file() else test.rglob("*.py"))]
    seen: set[Path] = set()
    while waiting:
        path = waiting.pop()
        if path not in seen:
            seen.add(path)
            waiting += imported(path)
    return seen


def test_the_table_has_the_rooms_with_such_modules() -> None:
    assert sorted(told()) == sorted(without_namesake())


def test_the_tests_of_the_table_exist() -> None:
    assert [test for tests in told().values() for test in tests if not test.exists()] == []


@pytest.mark.parametrize("room", without_namesake())
def test_a_test_of_the_table_reaches_each_module(room: str) -> None:
    reach = reached(told().get(room, []))
    assert [m.as_posix() for m in without_namesake()[room] if ROOT / m not in reach] == []
