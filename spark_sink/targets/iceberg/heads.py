"""What a task hands on: lines, and beside them values, as texts of their own kind."""

from __future__ import annotations

import base64
import pickle
from typing import Any

from shardmerge.spark_sink.targets.iceberg.texts.merge import SOURCE

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


def line_rows(session: Any, texts: Any) -> Any:
    """A frame of the texts of an RDD, as the statements of ``texts.merge`` read them."""
    return session.createDataFrame(texts.map(_as_row), f"{SOURCE} string", verifySchema=False)


def _as_row(text: str) -> tuple[str]:
    return (text,)
