"""The registry of codes, as data: one TOML file per family, read when it is first asked for.

An error, a hold, a wait, a warning, a fix-up, a statement and a finding of ``shardmerge check``
each carry a code such as ``SM-1203``. A code keeps its meaning for ever: ``published.txt`` lists
every code that was ever published with its title, and a code that is no longer used is marked there
and not given again.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib import resources

FILES = (
    "sources", "conflicts", "commands", "rows", "waits", "warnings", "existing_rows", "statements",
    "contracts", "target", "stack", "config", "findings", "rebuild", "failover", "cutover", "drift",
    "pages", "deployment", "internal",
)  # fmt: skip
"""The names of the families' files, in the order of their numbers."""


@dataclass(frozen=True, slots=True)
class Code:
    """What a code stands for, in sentences for people.

    Attributes:
        code: Such as ``SM-1203``.
        title: What happened, in a few words.
        seen: What shardmerge saw.
        cause: Why that happens.
        remedy: What the operator can do; commands stand in backticks.
    """

    code: str
    title: str
    seen: str
    cause: str
    remedy: str

    def __str__(self) -> str:
        return (
            f"{self.code}: {self.title}\n\n"
            f"Seen:   {self.seen}\nCause:  {self.cause}\nRemedy: {self.remedy}"
        )


@dataclass(frozen=True, slots=True)
class Family:
    """Codes about one thing.

    Attributes:
        digits: The digits with which the numbers of its codes begin.
        about: One or two sentences about all of its codes.
    """

    digits: str
    title: str
    about: str
    codes: tuple[Code, ...]


@cache
def families() -> tuple[Family, ...]:
    """Every family with its codes, in the order of their numbers."""
    return tuple(map(_family, FILES))


@cache
def codes() -> dict[str, Code]:
    """Every code by its name, in the order of the numbers."""
    return {each.code: each for family in families() for each in family.codes}


def coded(code: str, text: str) -> str:
    """A text for people with its code before it; the text alone without a code."""
    return f"{code}: {text}" if code else text


def _family(name: str) -> Family:
    text = resources.files(__package__).joinpath(f"{name}.toml").read_text(encoding="utf-8")
    plain = tomllib.loads(text)
    digits, title, about = (plain.pop(key) for key in ("family", "title", "about"))
    return Family(digits, title, about, tuple(Code(code, **plain[code]) for code in sorted(plain)))
