"""What is remembered while one expression is read."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class Notes:
    """Notes on one expression.

    Attributes:
        columns: Columns that it names, in order of appearance.
        opposites: Text of a comparison to the text of its negation.
    """

    columns: list[str] = field(default_factory=list)
    opposites: dict[str, str] = field(default_factory=dict)

    def either(self, head: str, negated: str, tail: str) -> str:
        """A comparison with or without NOT inside; its negation is noted."""
        text = f"{head}{negated}{tail}"
        self.opposites[text] = f"{head}{'' if negated else 'not '}{tail}"
        return text
