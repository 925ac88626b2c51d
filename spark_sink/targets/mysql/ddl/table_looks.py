"""Compares all tables of a MySQL target again and again, at little cost.

One query for each database reads a fingerprint of every table from ``information_schema``. A table
is compared in detail only if its fingerprint changed, or a statement was begun on it. Some changes
do not change the fingerprint: a check may have another text under its old name. So each look also
compares one part of all tables in detail, in turn.

A table whose comparison fails (the user may not read it, or somebody keeps it locked) is told of
apart, and tried again in each look. The others are compared.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from shardmerge.schemas.model.errors import TargetError
from shardmerge.schemas.model.names import TargetTable
from shardmerge.schemas.model.server_context import ServerContext
from shardmerge.schemas.records.drift import Difference
from shardmerge.spark_sink.targets.drift_interface import Look
from shardmerge.spark_sink.targets.mysql.session import MySqlSession

from .compared_tables import TableComparer
from .introspection import server_context

MOST_TOGETHER = 50
"""So many changed tables one look compares in detail; the next look goes on with the others."""
ANEW = 60
"""Within so many looks each table is compared in detail, whatever its fingerprint."""
Fingerprint: TypeAlias = tuple[int, int]
_NONE = (0, 0)

_PARTS = (
    (
        "COLUMNS",
        "TABLE_NAME",
        "'c', COLUMN_NAME, IFNULL(COLUMN_DEFAULT, 'NULL'), IS_NULLABLE, COLUMN_TYPE,"
        " COLLATION_NAME, EXTRA, GENERATION_EXPRESSION",
        "TABLE_SCHEMA",
    ),
    (
        "STATISTICS",
        "TABLE_NAME",
        "'i', INDEX_NAME, SEQ_IN_INDEX, NON_UNIQUE, IFNULL(COLUMN_NAME, ''), IFNULL(SUB_PART, ''),"
        " IFNULL(COLLATION, ''), INDEX_TYPE",
        "TABLE_SCHEMA",
    ),
    ("TABLE_CONSTRAINTS", "TABLE_NAME", "'k', CONSTRAINT_NAME, CONSTRAINT_TYPE", "TABLE_SCHEMA"),
    (
        "TRIGGERS",
        "EVENT_OBJECT_TABLE",
        "'t', TRIGGER_NAME, ACTION_TIMING, EVENT_MANIPULATION, ACTION_STATEMENT",
        "EVENT_OBJECT_SCHEMA",
    ),
    (
        "TABLES",
        "TABLE_NAME",
        "'o', TABLE_TYPE, IFNULL(TABLE_COLLATION, ''), IFNULL(CREATE_OPTIONS, '')",
        "TABLE_SCHEMA",
    ),
)
"""View of ``information_schema``, its column with the table's name, what the fingerprint covers,
and its column with the database's name."""


def fingerprints(session: MySqlSession, database: str) -> dict[str, Fingerprint]:
    """Table of a database → a value that changes with most changes of its definition."""
    # MySQL from 9.6 on has no MD5() unless a component is installed (measured on 9.7).
    parts = " UNION ALL ".join(
        f"SELECT {name} AS t, SHA2(CONCAT_WS('|', {what}), 256) AS h"
        f" FROM information_schema.{view} WHERE {schema} = %s"
        for view, name, what, schema in _PARTS
    )
    rows = session.query(
        "SELECT t, COUNT(*), BIT_XOR(CAST(CONV(LEFT(h, 16), 16, 10) AS UNSIGNED))"
        f" FROM ({parts}) AS parts GROUP BY t",
        (database,) * len(_PARTS),
    )
    return {str(table): (int(count), int(value)) for table, count, value in rows}


class MySqlLooks:
    """See ``interface.TableLooks``."""

    def __init__(self, session: MySqlSession, comparer: TableComparer) -> None:
        self._session, self._comparer = session, comparer
        self._known: dict[TargetTable, tuple[int, Fingerprint]] = {}
        self._failed: set[TargetTable] = set()
        self._turn = 0

    def look(self, tables: Mapping[TargetTable, int]) -> Look:
        """See ``interface.TableLooks``."""
        now = {}
        for database in sorted({target.database for target in tables}):
            found = fingerprints(self._session, database)
            for target in tables:
                if target.database == database:
                    # Some servers store all names in lower case.
                    value = found.get(target.table) or found.get(target.table.lower(), _NONE)
                    now[target] = tables[target], value
        unchanged = {target for target in now if self._known.get(target) == now[target]}
        # Tables that failed in the look before come last, so that they keep no other one waiting.
        due = sorted(now.keys() - unchanged, key=lambda t: (t in self._failed, t))
        compared, left = due[:MOST_TOGETHER], max(0, len(due) - MOST_TOGETHER)
        if not left:
            compared += [t for t in self._in_turn(sorted(now)) if t not in compared]
        contexts: dict[str, ServerContext] = {}
        result: dict[TargetTable, tuple[Difference, ...]] = {}
        failed: dict[TargetTable, Exception] = {}
        for target in compared:
            try:
                result[target] = self._compare(target, contexts)
            except Exception as error:  # It is told of this table; the others are compared.
                self._check_server(error)
                failed[target] = error
                self._known.pop(target, None)
            else:
                self._known[target] = now[target]
        self._failed = set(failed)
        return Look(result, left, frozenset(unchanged - failed.keys()), failed)

    def _compare(
        self, target: TargetTable, contexts: dict[str, ServerContext]
    ) -> tuple[Difference, ...]:
        if target.database not in contexts:
            contexts[target.database] = server_context(self._session, target.database)
        return self._comparer.compare(target, contexts[target.database]).differences

    def _check_server(self, error: Exception) -> None:
        """Raise the error of a comparison again if the server answers nothing else either."""
        try:
            self._session.query("SELECT 1")
        except TargetError:
            self._known.clear()  # What was compared in this look is not told, so it is due again.
            raise error from None

    def close(self) -> None:
        """See ``interface.TableLooks``."""
        self._session.close()

    def _in_turn(self, tables: Sequence[TargetTable]) -> Iterator[TargetTable]:
        self._turn = (self._turn + 1) % ANEW
        yield from tables[self._turn :: ANEW]
