"""Every error, reason and finding has a code of the registry, and every code is used."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import pytest

from shardmerge.schemas.codes.registry import codes
from tests.unit.test_module_tests import ROOT, modules

CODE = re.compile(r"SM-\d{4}")
ROOTS = frozenset(("ShardMergeError",))
REASONS = {
    "Refusal": 2, "Conflict": 5, "CannotRender": 2, "Finding": 3, "CodedText": 1, "Fixup": 4,
    "RowEffect": 6, "TargetStatement": 7,
}  # fmt: skip
"""Classes of reasons → the index of their code among the arguments."""


@dataclass(slots=True)
class Sources:
    """What the modules of all packages say of errors and codes: they are read once for all tests.

    Attributes:
        bases: Class → the names of its bases.
        calls: Name of what is called → the calls; of names of classes, which begin with a capital.
        raised: Module and line of each ``raise NAME`` → the name.
        codes: Every text that has the form of a code.
    """

    bases: dict[str, set[str]] = field(default_factory=dict)
    calls: dict[str, list[tuple[Path, ast.Call]]] = field(default_factory=dict)
    raised: dict[str, str] = field(default_factory=dict)
    codes: set[str] = field(default_factory=set)

    def add(self, path: Path, node: ast.AST) -> None:
        match node:
            case ast.ClassDef(name=name, bases=bases):
                self.bases[name] = {base.id for base in bases if isinstance(base, ast.Name)}
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
                if name.lstrip("_")[:1].isupper():
                    self.calls.setdefault(name, []).append((path, node))
            case ast.Raise(exc=ast.Name(id=name)):
                self.raised[f"{path}:{node.lineno}"] = name
            case ast.Constant(value=str() as text) if CODE.fullmatch(text):
                self.codes.add(text)


@cache
def sources() -> Sources:
    found = Sources()
    for path in modules():
        for node in ast.walk(ast.parse((ROOT / path).read_text(encoding="utf-8"))):
            found.add(path, node)
    return found


@cache
def error_classes() -> frozenset[str]:
    """The classes of ShardMergeError in all packages, by the names of their bases."""
    found = set(ROOTS)
    while more := {name for name, of in sources().bases.items() if of & found} - found:
        found |= more
    assert all(name.lstrip("_")[:1].isupper() for name in found)
    return frozenset(found)


def calls(names: frozenset[str]) -> Iterator[tuple[Path, ast.Call, str]]:
    for name in sorted(names):
        yield from ((path, call, name) for path, call in sources().calls.get(name, ()))


def code_of(call: ast.Call, index: int | None) -> ast.expr | None:
    for keyword in call.keywords:
        if keyword.arg == "code":
            return keyword.value
    if index is not None and len(call.args) > index:
        return call.args[index]
    return None


def is_code(value: ast.expr | None) -> bool:
    """A code of the registry, a choice of such, or the code of another error or reason."""
    match value:
        case ast.Constant(value=str() as text):
            return text in codes()
        case ast.IfExp(body=body, orelse=orelse):
            return is_code(body) and is_code(orelse)
        case ast.BoolOp(values=values):
            return all(map(is_code, values))
        case ast.Name(id="EARLIER"):
            return True
        case ast.Attribute(attr="code") | ast.Name(id="code"):
            return True
        case ast.Subscript(value=ast.Name(id="_CODES")):
            return True
    return False


def without_code(names: frozenset[str], index: dict[str, int] | None = None) -> list[str]:
    return [
        f"{path}:{call.lineno}: {name}"
        for path, call, name in calls(names)
        if not is_code(code_of(call, (index or {}).get(name)))
    ]


def test_the_classes_of_errors_are_found_in_all_packages() -> None:
    known = {"WriterReplaced", "RegistryRefuses", "UnfitValue", "SkippedRecords", "ConfigError"}
    assert known <= error_classes()


def test_every_error_that_is_made_has_a_registered_code() -> None:
    assert without_code(error_classes()) == []


@pytest.mark.parametrize("name", sorted(REASONS))
def test_every_reason_and_finding_has_a_registered_code(name: str) -> None:
    assert without_code(frozenset((name,)), REASONS) == []


def test_a_row_that_holds_its_shard_has_a_code() -> None:
    assert without_code(frozenset(("RowHold",)), {"RowHold": 6}) == []


@pytest.mark.parametrize(
    ("name", "reason", "code"), [("ShardProgress", 2, 7), ("OpenStatement", 3, 4)]
)
def test_what_waits_has_a_code_where_it_has_a_reason(name: str, reason: int, code: int) -> None:
    found = [call for _, call, _ in calls(frozenset((name,))) if len(call.args) > reason]
    assert found
    assert [call.lineno for call in found if not is_code(code_of(call, code))] == []


def test_no_error_is_raised_as_a_bare_class() -> None:
    raised = sources().raised.items()
    assert [place for place, name in raised if name in error_classes()] == []


def test_every_code_in_the_sources_is_registered_and_every_registered_one_is_used() -> None:
    used = sources().codes
    assert used - codes().keys() == set()
    assert codes().keys() - used == set()


@pytest.mark.parametrize(
    ("text", "good"),
    [
        ('f(code="SM-1203")', True),
        ('f(code="SM-0000")', False),
        ("f(code=error.code)", True),
        ("f(code=other)", False),
        ('f(code="SM-1203" if a else "SM-0000")', False),
        ("f()", False),
    ],
)
def test_what_counts_as_a_code(text: str, good: bool) -> None:
    [statement] = ast.parse(text).body
    assert isinstance(statement, ast.Expr)
    assert isinstance(statement.value, ast.Call)
    assert is_code(code_of(statement.value, None)) is good
