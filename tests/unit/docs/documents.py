"""The project's documents, and what can be read off their text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
DOCS = ROOT / "docs"
DOCUMENTS = sorted(
    [
        *(ROOT / f"{name}.md" for name in ("README", "ARCHITECTURE", "CONTRIBUTING", "GLOSSARY")),
        ROOT / "CHANGELOG.md",
        ROOT / "tests" / "README.md",
        *DOCS.rglob("*.md"),
    ]
)
_FENCE = re.compile(r"^( *)```(\w*)[^\n]*\n(.*?)^\1```$", re.DOTALL | re.MULTILINE)
_CODE = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")


@dataclass(frozen=True, slots=True)
class Fence:
    """A fenced block.

    Attributes:
        kind: The word behind the opening fence.
    """

    kind: str
    text: str


def name_of(document: Path) -> str:
    """A document's path in the project: the name of its test."""
    return document.relative_to(ROOT).as_posix()


def fences(text: str, *kinds: str) -> list[Fence]:
    """The fenced blocks of some kinds; without kinds, all."""
    found = [Fence(m[2], re.sub(rf"(?m)^{m[1]}", "", m[3])) for m in _FENCE.finditer(text)]
    return [fence for fence in found if not kinds or fence.kind in kinds]


def prose(text: str) -> str:
    """A document without its fenced blocks."""
    return _FENCE.sub("", text)


def code_words(text: str) -> list[str]:
    """What stands in backticks outside of fenced blocks."""
    return _CODE.findall(prose(text))


def shell_lines(text: str) -> Iterator[str]:
    """The commands of the ``sh`` blocks, one a line, without comments."""
    for fence in fences(text, "sh"):
        for line in fence.text.replace("\\\n", " ").splitlines():
            command = re.sub(r"(^|\s)#.*", "", line).strip()
            if command:
                yield command
