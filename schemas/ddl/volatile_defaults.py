"""Defaults whose values in existing rows are not in the binlog.

ADD COLUMN fills existing rows with the default. If it is a constant, the target's own ADD COLUMN
fills in the same value. If it is the time, a random number or a UUID, the shard's rows hold values
that no row event contains and that the target cannot compute: see ``row_effects``.

Source: MySQL Reference Manual, "Data Type Default Values", "Replication and Default Values".
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from shardmerge.schemas.ddl.grammar.tokens.words import words
from shardmerge.schemas.model.tables import Column, DefaultKind

_EACH_ROW = words(
    """
    uuid uuid_short uuid_v4 uuid_v7 rand random_bytes sys_guid sysdate nextval gen_random_uuid
    """
)
"""Functions with another value for each row."""
_EACH_STATEMENT = words(
    """
    now current_timestamp localtime localtimestamp curdate current_date curtime current_time
    utc_date utc_time utc_timestamp connection_id current_user user session_user system_user
    current_role database schema version last_insert_id row_count found_rows
    """
)
"""Functions whose value depends on when, where or by whom the ALTER was executed."""
_CURRENT_UNIX_TIME = "unix_timestamp()"
_WORDS = re.compile(r"'(?:[^'\\]|\\.|'')*'|`(?:[^`]|``)*`|([A-Za-z_][A-Za-z_0-9]*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class VolatileDefault:
    """A default that filled existing rows of a shard with values that cannot be computed again.

    Attributes:
        column: The column's name on the shard.
        expression: Canonical text of the default.
        function: The function that makes it volatile, in lower case.
        differs_by_row: Whether two rows of one statement have different values.
    """

    column: str
    expression: str
    function: str
    differs_by_row: bool


def volatile_default(column: Column) -> VolatileDefault | None:
    """The volatile part of a column's default; None when the default is not volatile."""
    default = column.default
    if default is None or default.kind is not DefaultKind.EXPRESSION:
        return None
    function = _volatile_function(default.text)
    if not function:
        return None
    return VolatileDefault(column.name, default.text, function, function in _EACH_ROW)


def _volatile_function(expression: str) -> str:
    if _CURRENT_UNIX_TIME in expression:
        return "unix_timestamp"
    found = (m[1].lower() for m in _WORDS.finditer(expression) if m[1])
    return next((w for w in found if w in _EACH_ROW or w in _EACH_STATEMENT), "")
