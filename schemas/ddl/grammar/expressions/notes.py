"""Facts about the parts of an expression, collected while it is read."""

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
        conditions: Texts of parts whose value is true, false or unknown.
        opposites: Text of a comparison → the text of its negation.
        exclusives: Text of an XOR → its operands.
        days: Text of a TO_DAYS → its argument.
        rows: Text of a row → its values.
        chains: Text of an AND or OR → that word in lower case, and its operands.
    """

    columns: list[str] = field(default_factory=list)
    conditions: set[str] = field(default_factory=set)
    opposites: dict[str, str] = field(default_factory=dict)
    exclusives: dict[str, tuple[str, str]] = field(default_factory=dict)
    days: dict[str, str] = field(default_factory=dict)
    rows: dict[str, list[str]] = field(default_factory=dict)
    chains: dict[str, tuple[str, list[str]]] = field(default_factory=dict)

    def condition(self, text: str) -> str:
        """Note that a text is a condition, and return it."""
        self.conditions.add(text)
        return text

    def row(self, values: list[str]) -> str:
        """The text of a row, which is noted."""
        text = f"({','.join(values)})"
        self.rows[text] = values
        return text

    def either(self, head: str, negated: str, tail: str) -> str:
        """The text of a comparison with or without NOT inside; its negation is noted."""
        text = self.condition(f"{head}{negated}{tail}")
        self.opposites[text] = f"{head}{'' if negated else 'not '}{tail}"
        return text


def truth(text: str, notes: Notes) -> str:
    """The text as a condition: a value is true when it is not 0.

    Servers print this differently: MySQL from 8.0.16 on ``0 <> a``, MariaDB ``a <> 0`` for columns
    in AND and OR, older servers only ``a``.
    """
    if text in notes.conditions:
        inner = text[1 : -len(" <> 0)")]
        return inner if text.endswith(" <> 0)") and inner in notes.conditions else text
    found = notes.condition(f"({text} <> 0)")
    notes.opposites[found] = f"({text} = 0)"
    return found


Read: TypeAlias = Callable[[Cursor, Notes, int], str]
"""Reads an operand whose operators bind at least as tightly as the level says."""
