"""A text for people, with the code that stands for it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CodedText:
    """A reason or a warning.

    Attributes:
        text: A clause or a sentence for people.
        code: Such as ``SM-1203``, see ``schemas.codes``; "" in what has none yet.
    """

    text: str
    code: str
