"""NOT, AND, OR and XOR in the form in which servers store them."""

from __future__ import annotations

from shardmerge.schemas.ddl.grammar.tokens.lexer import Cursor

from .notes import Notes, truth


def negated(cursor: Cursor, text: str, notes: Notes) -> str:
    """The negation as servers store it: the opposite comparison, AND for OR, ``value = 0``."""
    operands = notes.chains.get(text)
    if operands is not None:
        word, parts = operands
        opposites = [negated(cursor, part, notes) for part in parts]
        return chain("or" if word == "and" else "and", opposites, notes)
    pair = notes.exclusives.get(text)
    if pair is not None:
        return exclusive(negated(cursor, pair[0], notes), pair[1], notes)
    opposite = notes.opposites.get(text)
    if opposite is None and text in notes.conditions and not cursor.context.is_mariadb:
        opposite = f"(not({text}))"
    elif opposite is None:
        opposite = f"({text} = 0)"
    notes.opposites[opposite] = text if text in notes.conditions else f"({text} <> 0)"
    return notes.condition(opposite)


def exclusive(left: str, right: str, notes: Notes) -> str:
    """``left XOR right``."""
    operands = truth(left, notes), truth(right, notes)
    text = notes.condition(f"({operands[0]} xor {operands[1]})")
    notes.exclusives[text] = operands
    return text


def chain(word: str, operands: list[str], notes: Notes) -> str:
    """The operands joined by AND or OR. Servers flatten: ``(a and b) and c`` is one chain."""
    parts: list[str] = []
    for operand in operands:
        found = notes.chains.get(operand)
        if found is not None and found[0] == word:
            parts += found[1]
        else:
            parts.append(truth(operand, notes))
    text = notes.condition("(" + f" {word} ".join(parts) + ")")
    notes.chains[text] = (word, parts)
    return text
