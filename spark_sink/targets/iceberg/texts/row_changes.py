"""Statements that change rows of an Iceberg table where no row event does, as MERGEs. Pure.

They are ``DELETE FROM … [WHERE …]`` and ``UPDATE … SET … WHERE …`` whose conditions compare
columns with literals or ask for NULL, and nothing else (``schemas.target.row_statements``,
``truncations``). A MERGE can
be staged, so that its rows and the state that tells of it are one commit; see ``staging``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from shardmerge.schemas.model.errors import UnparsableDDL
from shardmerge.schemas.model.names import TargetTable

_NAME = r"`((?:[^`]|``)+)`"
_STRING = r"'(?:[^'\\]|\\.|'')*'"
_LITERAL = rf"(NULL|-?\d+(?:\.\d+)?|(?:DATE |TIMESTAMP_NTZ )?{_STRING})"
_DELETE = re.compile(rf"DELETE FROM {_NAME}\.{_NAME}( WHERE )?", re.DOTALL)
_UPDATE = re.compile(rf"UPDATE {_NAME}\.{_NAME} SET ", re.DOTALL)
_ASSIGNMENT = re.compile(rf"{_NAME} = (?:{_LITERAL}|{_NAME})", re.DOTALL)
_NULL = re.compile(rf"{_NAME} IS (NOT )?NULL", re.DOTALL)
_COMPARISON = re.compile(rf"{_NAME} (=|<=>) {_LITERAL}", re.DOTALL)


@dataclass(frozen=True, slots=True)
class RowChange:
    """A statement, in Spark SQL on the table ``t``.

    Attributes:
        condition: Which rows.
        assignments: What they get; "" when they are deleted.
    """

    table: TargetTable
    condition: str
    assignments: str = ""

    def merge_sql(self, name: str) -> str:
        """The MERGE into the table of that quoted name."""
        then = f"UPDATE SET {self.assignments}" if self.assignments else "DELETE"
        head = f"MERGE INTO {name} t USING (SELECT 1) s ON {self.condition}"
        return f"{head} WHEN MATCHED THEN {then}"


def read_row_change(sql: str) -> RowChange:
    """Read a statement.

    Raises:
        UnparsableDDL: It is none that Iceberg targets get.
    """
    if found := _DELETE.match(sql):
        condition, end = ("true", found.end()) if not found[3] else _all(sql, found.end())
        change = RowChange(_table(found), condition)
    elif found := _UPDATE.match(sql):
        assignments, end = _assignments(sql, found.end())
        if not sql.startswith(" WHERE ", end):
            raise _unread(sql, end)
        condition, end = _all(sql, end + len(" WHERE "))
        change = RowChange(_table(found), condition, assignments)
    else:
        raise _unread(sql, 0)
    if end != len(sql):
        raise _unread(sql, end)
    return change


def _assignments(sql: str, place: int) -> tuple[str, int]:
    found: list[str] = []
    while one := _ASSIGNMENT.match(sql, place):
        # All columns mean the row before: nothing here is assigned and read after that.
        value = f"t.`{one[3]}`" if one[3] is not None else _literal(one[2])
        found.append(f"t.`{one[1]}` = {value}")
        place = one.end()
        if not sql.startswith(", ", place):
            return ", ".join(found), place
        place += 2
    raise _unread(sql, place)


def _all(sql: str, place: int) -> tuple[str, int]:
    """Conditions that are joined by AND, and where they end."""
    found: list[str] = []
    while True:
        if sql.startswith("NOT (", place):
            inner, place = _all(sql, place + len("NOT ("))
            if not sql.startswith(")", place):
                raise _unread(sql, place)
            found.append(f"NOT ({inner})")
            place += 1
        elif one := _COMPARISON.match(sql, place):
            found.append(f"t.`{one[1]}` {one[2]} {_literal(one[3])}")
            place = one.end()
        elif one := _NULL.match(sql, place):
            found.append(f"t.`{one[1]}` IS {one[2] or ''}NULL")
            place = one.end()
        else:
            raise _unread(sql, place)
        if not sql.startswith(" AND ", place):
            return " AND ".join(found), place
        place += len(" AND ")


def _literal(text: str) -> str:
    """A quote is doubled in MySQL; whether Spark reads that as one depends on its settings."""
    head, quote, rest = text.partition("'")
    if not quote:
        return text
    body = re.sub(r"\\.|''", lambda m: "\\'" if m[0] == "''" else m[0], rest[:-1], flags=re.DOTALL)
    return f"{head}'{body}'"


def _table(found: re.Match[str]) -> TargetTable:
    return TargetTable(found[1].replace("``", "`"), found[2].replace("``", "`"))


def _unread(sql: str, place: int) -> UnparsableDDL:
    return UnparsableDDL(
        "this is no change of rows that Iceberg targets get: DELETE or UPDATE, columns compared"
        f" with literals or NULL; {sql[place : place + 60]!r} is not understood",
        sql,
        place,
    )
