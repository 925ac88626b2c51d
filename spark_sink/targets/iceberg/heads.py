"""Values that a task hands on beside its lines, as texts of their own kind."""

from __future__ import annotations

import base64
import pickle
from typing import Any

MARK_OF_HEADS = "#"
"""The first character of a head; lines begin otherwise (``texts.lines``)."""


def head_of(value: object) -> str:
    """The text of a picklable value."""
    return MARK_OF_HEADS + base64.b64encode(pickle.dumps(value)).decode()


def read_head(text: str) -> Any:
    """The value in a head that our own workers have made in this job; None for a line."""
    if not text.startswith(MARK_OF_HEADS):
        return None
    return pickle.loads(base64.b64decode(text[len(MARK_OF_HEADS) :]))  # noqa: S301  # our own
