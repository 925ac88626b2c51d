"""Differences between tracker and server that are known: each with its reason, none silently.

Both lists are strict: an entry whose statement makes no difference any more must leave them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from shardmerge.schemas.grammar import ServerContext


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
        "mysql", ((8,), (99,)), (),
        "CREATE TABLE t0 (b VARCHAR(20), KEY k ((COALESCE(b, 'x')))) DEFAULT CHARSET=latin1",
        r"expression: tracked .*(_\w+'|\\0)",
        "MySQL shows a literal of another charset with an introducer; the tracker keeps the text",
    ),
    Known(
        "mysql", ((8, 0, 13), (8, 0, 16)),
        ("CREATE TABLE t0 (a INT, b INT, KEY k ((a + 1)))",),
        "ALTER TABLE t0 RENAME COLUMN a TO b, RENAME COLUMN b TO a",
        r"indexes .*\.expression: tracked",
        "MySQL 8.0.15 keeps the text of a functional index when columns are renamed",
    ),
    Known(
        "mariadb", _ALWAYS, (),
        "CREATE TABLE t0 (b VARCHAR(20), a INT NOT NULL, UNIQUE KEY k USING HASH (b, a DESC))",
        r"descending: tracked True, server False",
        "MariaDB's HASH keys have no order; the tracker keeps DESC",
    ),
    Known(
        "mysql", ((8, 0, 16), (99,)), (),
        "CREATE TABLE t0 (a INT, CHECK (a IS TRUE))",
        r"expression: tracked .*, server .*\(0 (<>|=) ",
        "MySQL writes 0 <> a for a value that stands as a condition, and 0 = a for its negation",
    ),
    Known(
        "mariadb", _ALWAYS, ("CREATE TABLE p (a INT PRIMARY KEY)",),
        "CREATE TABLE t0 (b INT, INDEX i3 USING HASH (b), FOREIGN KEY (b) REFERENCES p (a))",
        r"indexes .*: server only, under a foreign key",
        "MariaDB wants an index of its own for a foreign key where there is only a HASH key",
    ),
    Known(
        "mariadb", _ALWAYS, (),
        "CREATE TABLE t0 (a INT, CHECK (a && 1))",
        r"expression: tracked .*, server .* <> 0\)? ",
        "MariaDB writes a <> 0 for a column that stands as a condition",
    ),
    Known(
        "mysql", ((8, 0, 13), (99,)), ("CREATE TABLE t0 (a INT PRIMARY KEY)",),
        "ALTER TABLE t0 ALTER a SET DEFAULT (ABS(-3))",
        r"default: tracked Default\(kind=<DefaultKind.EXPRESSION.*, server None",
        "MySQL forgets the expression default of a column of the primary key",
    ),
    Known(
        "mysql", ((8, 0, 16), (99,)), ("CREATE TABLE t0 (a INT) DEFAULT CHARSET=ucs2",),
        "ALTER TABLE t0 CONVERT TO CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, CHARSET = utf8mb4",
        r"\) collation: ",
        "a charset that is said again keeps the collation that was said before",
    ),
    Known(
        "mysql", _ALWAYS, ("CREATE TABLE p (a INT PRIMARY KEY)",),
        "CREATE TABLE t0 (b INT, c INT, FOREIGN KEY (b) REFERENCES p (a));"
        "CREATE INDEX x ON t0 (b, c)",
        r"indexes .*: (tracker|server) only, (under|perhaps made for) a foreign key",
        "MySQL drops a foreign key's implicit index when another one covers it",
    ),
    Known(
        "mysql", _ALWAYS, (),
        "CREATE TABLE t0 (e ENUM('v','z ')) CHARACTER SET binary",
        r"-column .* \| (enum|set)\(.*\| binary \| binary \|",
        "an ENUM of charset binary keeps trailing spaces",
    ),
    Known(
        "mariadb", _ALWAYS, (),
        "CREATE TABLE t0 (e ENUM('v','z ')) CHARACTER SET binary",
        r"-column .* \| (enum|set)\(.*\| binary \| binary \|",
        "an ENUM of charset binary keeps trailing spaces",
    ),
    Known(
        "mysql", ((8,), (8, 0, 16)),
        ("CREATE TABLE t0 (d INT, b VARCHAR(20), e INT AS (CHAR_LENGTH(b)) STORED)",),
        "ALTER TABLE t0 RENAME COLUMN d TO b, RENAME COLUMN b TO d",
        r"generated\.expression: tracked",
        "8.0.15 keeps the text of a generated column when two columns swap their names",
    ),
    Known(
        "mysql", ((8, 0, 16), (99,)), ("CREATE TABLE t0 (a INT, CHECK (1 < a))",),
        "ALTER TABLE t0 MODIFY a TIME;ALTER TABLE t0 ADD b INT",
        r"expression: tracked .*, server .*(TIME|DATE|TIMESTAMP)'",
        "MySQL writes literals in the form of the column that they are compared with",
    ),
    Known(
        "mariadb", _ALWAYS, ("CREATE TABLE t0 (g TEXT, h INT, KEY k (g(5)))",),
        "ALTER TABLE t0 DROP g, ADD g LINESTRING",
        r"\+index .* \d+ [AD] ",
        "MariaDB keeps the prefix of a spatial column's key",
    ),
    Known(
        "mariadb", _ALWAYS, ("CREATE TABLE p (a INT PRIMARY KEY)",),
        "CREATE TABLE t0 (b INT, c INT, FOREIGN KEY (b) REFERENCES p (a));"
        "CREATE INDEX x ON t0 (b, c)",
        r"indexes .*: (tracker|server) only, (under|perhaps made for) a foreign key",
        "MariaDB drops a foreign key's implicit index when another one covers it",
    ),
    Known(
        "mysql", ((5,), (8,)),
        ("CREATE TABLE t0 (f TIMESTAMP NOT NULL DEFAULT NOW() ON UPDATE NOW())",),
        "ALTER TABLE t0 ALTER f DROP DEFAULT",
        r"default: tracked None, server .*'0000-00-00 00:00|-column .*timestamp.*'0000-00-00 00:00",
        "what MySQL 5.7 shows of such a column has a default when it is executed",
    ),
    Known(
        "mysql", ((5,), (8,)), ("CREATE TABLE p (a INT PRIMARY KEY)",),
        "CREATE TABLE t0 (b INT, FOREIGN KEY ix (b) REFERENCES p (a))",
        r"foreign_keys .*: server only",
        "MySQL 5.7 does not name a foreign key after its index",
    ),
    Known(
        "mariadb", _ALWAYS, (), "CREATE TABLE t0 (d DOUBLE DEFAULT (PI()))",
        r"default\.kind: tracked <DefaultKind.EXPRESSION.*, server <DefaultKind.LITERAL",
        "MariaDB computes a constant default",
    ),
    Known(
        "mariadb", _ALWAYS, ("CREATE TABLE t0 (a INT PRIMARY KEY)",),
        "ALTER TABLE t0 DROP a, ADD a TIMESTAMP DEFAULT NULL ON UPDATE NOW()",
        r"default: tracked None, server .*'0000-00-00 00:00",
        "MariaDB gives a TIMESTAMP of the primary key the zero default where NULL was said",
    ),
    Known(
        "mysql", ((5,), (8,)),
        ("CREATE TABLE t0 (g TEXT CHARSET ucs2, c INT AS (LOCATE('x', g)))",),
        "ALTER TABLE t0 FORCE",
        r"expression: tracked .*\\0",
        "MySQL 5.7 shows the bytes of a literal of a wide charset",
    ),
    Known(
        "mysql", _ALWAYS, ("CREATE TABLE p (a INT PRIMARY KEY)",),
        "CREATE TABLE t0 (b INT, FOREIGN KEY (b) REFERENCES p (a));"
        "ALTER TABLE t0 ADD CONSTRAINT b UNIQUE (b)",
        r"already has an index",
        "MySQL lets an index replace a foreign key's implicit one of the same name",
    ),
    Known(
        "mariadb", _ALWAYS, ("CREATE TABLE p (a INT PRIMARY KEY)",),
        "CREATE TABLE t0 (b INT, FOREIGN KEY (b) REFERENCES p (a));"
        "ALTER TABLE t0 ADD CONSTRAINT b UNIQUE (b)",
        r"already has an index",
        "MariaDB lets an index replace a foreign key's implicit one of the same name",
    ),
    Known(
        "mariadb", _ALWAYS, ("CREATE TABLE t0 (a INT) DEFAULT CHARSET=utf8",),
        "ALTER TABLE t0 ADD s LONG COLLATE utf8_bin, CONVERT TO CHARACTER SET utf8mb4",
        r"type\.name: tracked '(medium|long)?text', server '(tiny|medium)?text'",
        "MariaDB does not widen a text column that the converting statement itself adds",
    ),
    Known(
        "mysql", ((5,), (8,)), ("CREATE TABLE t0 (s TIMESTAMP)",),
        "ALTER TABLE t0 ADD COLUMN x TIMESTAMP",
        r"default\.text: tracked 'CURRENT_TIMESTAMP.*', server '0000-00-00",
        "only the first TIMESTAMP of a table is given the current time, not that of a statement",
    ),
    Known(
        "mariadb", _ALWAYS, (), "CREATE TABLE t0 (s TINYTEXT, KEY (s)) DEFAULT CHARSET=utf8mb4",
        r"parts\[\d+\]\.length: tracked 255, server \d+",
        "MariaDB counts a TINYTEXT key's length in characters",
    ),
    Known(
        "mariadb", _ALWAYS,
        ("CREATE TABLE t0 (h DATETIME DEFAULT NOW() ON UPDATE NOW())",),
        "ALTER TABLE t0 ALTER h DROP DEFAULT",
        r"on_update: tracked '.+', server ''",
        "MariaDB takes ON UPDATE away with the default",
    ),
    Known(
        "mariadb", _ALWAYS,
        (
            "CREATE TABLE p (a INT PRIMARY KEY)",
            "CREATE TABLE t0 (b INT, FOREIGN KEY (b) REFERENCES p (a))",
        ),
        "ALTER TABLE t0 ADD KEY i2 (b DESC)",
        r"-index \S+ 1 1 .+  A|indexes .*: (tracker|server) only",
        "MariaDB drops a foreign key's implicit index for a descending one, too",
    ),
)  # fmt: skip

CORPUS: Mapping[tuple[str, str], str] = {
    (
        "mysql97",
        "CREATE TABLE n1 (a INT, b BOOLEAN AS (a IS NOT NULL AND NOT a = 3), c BOOL AS (a <=> 3),"
        " d INT AS (a > 1 OR a < -1), e BOOL AS (a NOT IN (1,2)), f BOOL AS (!a),"
        " g BOOL AS (a NOT BETWEEN 1 AND 2))",
    ): "MySQL writes 0 = a for the negation of a value",
    (
        "mysql57",
        "CREATE TABLE n1 (id INT PRIMARY KEY, pid INT, FOREIGN KEY idxname (pid)"
        " REFERENCES c.parent (id) ON UPDATE NO ACTION ON DELETE RESTRICT)",
    ): "5.7 does not name a foreign key after its index",
    (
        "mysql57",
        "CREATE TABLE n1 (id INT PRIMARY KEY, pid INT, CONSTRAINT fk1 FOREIGN KEY ix1 (pid)"
        " REFERENCES `parent` (`id`) MATCH FULL ON DELETE CASCADE)",
    ): "5.7 forgets the ON DELETE behind a MATCH",
    (
        "mariadb1011",
        "CREATE TABLE n1 (id INT PRIMARY KEY, rs TIMESTAMP(6) GENERATED ALWAYS AS ROW START,"
        " re TIMESTAMP(6) GENERATED ALWAYS AS ROW END, PERIOD FOR SYSTEM_TIME (rs, re))"
        " WITH SYSTEM VERSIONING",
    ): "information_schema adds the row's end to the primary key, SHOW CREATE TABLE does not",
    (
        "mariadb1011",
        "CREATE TABLE n1 (id INT, d1 DATE, d2 DATE, PERIOD FOR p (d1, d2),"
        " UNIQUE (id, p WITHOUT OVERLAPS))",
    ): "WITHOUT OVERLAPS is one part to the tracker, both of the period's columns to the server",
}
"""(server, statement of the shared files) → why it differs."""


def known_reason(context: ServerContext, wrong: Sequence[str]) -> str:
    """Why this difference is known; "" when it is not."""
    for known in RANDOM:
        if known.is_on(context) and any(re.search(known.difference, line) for line in wrong):
            return known.reason
    return ""
