"""Differences between tracker and server that are known: each with its reason, none silently.

Both lists are strict: an entry whose statement makes no difference any more must leave them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from shardmerge.schemas.ddl.grammar import ServerContext


@dataclass(frozen=True, slots=True)
class Known:
    """A known difference of random statements.

    Attributes:
        flavour: Of the servers it is known on.
        versions: From the first up to, not including, the second.
        setup, statement: An example: the difference comes after ``statement``.
        difference: A regular expression that a line of the difference matches.
        reason: Why it is there, and what would mend it.
    """

    flavour: str
    versions: tuple[tuple[int, ...], tuple[int, ...]]
    setup: tuple[str, ...]
    statement: str
    difference: str
    reason: str

    def is_on(self, context: ServerContext) -> bool:
        """Whether it is known on that server."""
        first, end = self.versions
        return self.flavour == context.flavour and first <= context.version < end


_ALWAYS = ((0,), (99,))
RANDOM: tuple[Known, ...] = (
    Known(
        "mysql", ((8, 0, 16), (99,)), ("CREATE TABLE t0 (a INT, CHECK (1 < a))",),
        "ALTER TABLE t0 MODIFY a TIME;ALTER TABLE t0 ADD b INT",
        r"expression: tracked .*, server .*(TIME|DATE|TIMESTAMP)'",
        "MySQL writes literals in the form of the column that they are compared with",
    ),
    Known(
        "mysql", ((8, 0, 16), (99,)),
        ("CREATE TABLE t0 (b VARCHAR(20), CHECK (b <> 'x')) CHARSET=binary",),
        "ALTER TABLE t0 ADD c INT",
        r"expression: tracked .*, server .*_binary'",
        "MySQL marks literals that meet bytes, as if the statement had said _binary",
    ),
    Known(
        "mysql", ((5,), (8,)),
        ("CREATE TABLE t0 (g TEXT CHARSET ucs2, c INT AS (LOCATE('x', g)))",),
        "ALTER TABLE t0 FORCE",
        r"expression: tracked .*\\0",
        "MySQL 5.7 shows the bytes of a literal of a wide charset",
    ),
    Known(
        "mariadb", _ALWAYS, (),
        "CREATE TABLE t0 (e INT, CHECK (e LIKE 'x%')) DEFAULT CHARSET=utf16",
        r"expression: tracked .*, server .*convert\(.* using (utf16|ucs2)\)",
        "MariaDB writes that a number is converted to the table's charset where that is a wide one",
    ),
    Known(
        "mariadb", _ALWAYS, ("CREATE TABLE t0 (c CHAR(9) CHARACTER SET ucs2) CHARSET=binary",),
        "ALTER TABLE t0 ADD CHECK (c LIKE 'a|%' ESCAPE '|')",
        r"expression: tracked .* like .*, server .* like '[^']*[^\x00-\x7f]",
        "MariaDB takes the bytes of a pattern in a binary table for text of the column's charset,"
        " and again when what it shows is executed: the text alone does not tell which of the two",
    ),
    Known(
        "mariadb", _ALWAYS, ("CREATE TABLE t0 (a INT, KEY a (a))",),
        "ALTER TABLE t0 ADD a LINESTRING FIRST, DROP a",
        r"\.length: tracked 4, server (None|8|3072)\Z",
        "MariaDB shows a prefix of four bytes of a geometry as if it were the whole column",
    ),
    Known(
        "mariadb", _ALWAYS, (), "CREATE TABLE t0 (a YEAR, CHECK (a IN (1, 2, 3)))",
        r"expression: tracked .*, server .*\b(19[7-9]\d|20[0-6]\d)\b",
        "MariaDB writes the years that short ones mean where it compares a YEAR with them",
    ),
    Known(
        "mariadb", _ALWAYS, ("CREATE TABLE t0 (a INT)",),
        "ALTER TABLE t0 CONVERT TO CHARACTER SET binary, ADD b SET('v', 'z ') CHARACTER SET cp1251",
        r"\.elements\[\d+\]: tracked '(.*)', server '\1 +'\Z",
        "MariaDB keeps blanks at the end of elements that the same statement converts to bytes",
    ),
)  # fmt: skip

_VERSIONED = (
    "CREATE TABLE n1 (id INT PRIMARY KEY, rs TIMESTAMP(6) GENERATED ALWAYS AS ROW START,"
    " re TIMESTAMP(6) GENERATED ALWAYS AS ROW END, PERIOD FOR SYSTEM_TIME (rs, re))"
    " WITH SYSTEM VERSIONING"
)
_OVERLAPS = (
    "CREATE TABLE n1 (id INT, d1 DATE, d2 DATE, PERIOD FOR p (d1, d2),"
    " UNIQUE (id, p WITHOUT OVERLAPS))"
)
_BOTH = (
    "CREATE TABLE per (id INT, d1 DATE, d2 DATE, PERIOD FOR p (d1, d2),"
    " UNIQUE (id, p WITHOUT OVERLAPS)) WITH SYSTEM VERSIONING"
)
CORPUS: Mapping[tuple[str, str], str] = {
    (server, statement): reason
    for server in ("mariadb1011", "mariadb118")
    for statement, reason in (
        (
            _VERSIONED,
            "information_schema adds the row's end to the primary key, SHOW CREATE TABLE does not;"
            " 11.8 shows it, too",
        ),
        (
            _OVERLAPS,
            "WITHOUT OVERLAPS is one part to the tracker, both of the period's columns to the"
            " server",
        ),
        (_BOTH, "the same, in a table with row versions"),
    )
}
"""(server, statement of a file) → why it differs."""


def known_reason(context: ServerContext, wrong: Sequence[str]) -> str:
    """Why this difference is known; "" when it is not."""
    for known in RANDOM:
        if known.is_on(context) and any(re.search(known.difference, line) for line in wrong):
            return known.reason
    return ""
