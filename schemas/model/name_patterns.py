"""Regular expressions for names, as Debezium reads them: of databases, tables and columns."""

from __future__ import annotations

import re


def matches(pattern: str, name: str) -> bool:
    """Whether an expression matches the whole name, whatever the case.

    Source: Debezium's MySQL connector documentation, ``database.include.list``,
    ``table.include.list``, ``column.exclude.list``.
    """
    return re.fullmatch(pattern, name, re.IGNORECASE) is not None
