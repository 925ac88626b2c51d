"""What is remembered while one expression is read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from shardmerge.schemas.ddl.grammar.tokens.lexer import Cursor


@dataclass(slots=True)
class Notes:
    """Notes on one expression.

    Attributes:
        columns: Columns that it names, in order of appearance.
        conditions: Texts whose value is true, false or unknown.
        opposites: Text of a comparison to the text of its negation.
        exclusives: Text of an XOR to its operands.
        days: Text of a TO_DAYS to its argument.
        chains: Text of an AND or OR to that word in lower case and its operands.
    """

    columns: list[str] = field(default_factory=list)
    conditions: set[str] = field(default_factory=set)
    opposites: dict[str, str] = field(default_factory=dict)
    exclusives: dict[str, tuple[str, str]] = field(default_factory=dict)
    days: dict[str, str] = field(default_factory=dict)
    chains: dict[str, tuple[str, list[str]]] = field(default_factory=dict)

    def condition(self, text: str) -> str:
        """The text, which is noted to be a condition."""
        self.conditions.add(text)
        return text

    def either(self, head: str, negated: str, tail: str) -> str:
        """A comparison with or without NOT inside; its negation is noted."""
        text = self.condition(f"{head}{negated}{tail}")
        self.opposites[text] = f"{head}{'' if negated else 'not '}{tail}"
        return text


def truth(text: str, notes: Notes) -> str:
    """A text where a condition is wanted: a value is one when it is not 0.

    Servers differ in where they write that: MySQL from 8.0.16 on ``0 <> a``, MariaDB ``a <> 0``
    for columns in AND and OR, older ones nothing.
    """
    if text in notes.conditions:
        inner = text[1 : -len(" <> 0)")]
        return inner if text.endswith(" <> 0)") and inner in notes.conditions else text
    found = notes.condition(f"({text} <> 0)")
    notes.opposites[found] = f"({text} = 0)"
    return found


Read: TypeAlias = Callable[[Cursor, Notes, int], str]
"""Reads an operand whose operators bind at least as tightly as the level says."""
