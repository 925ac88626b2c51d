"""What tables inherit from their database: tracker = server, statement by statement."""

from __future__ import annotations

from .shrink import outcome
from .twin import Twin

TABLE = "CREATE TABLE other.t (a CHAR(5), b TEXT)"
EVERYWHERE = (
    (
        "ALTER DATABASE c CHARSET latin1",
        "CREATE TABLE t (a CHAR(5))",
        "ALTER TABLE t CHARACTER SET ucs2, ADD b CHAR(3)",
        "ALTER TABLE t CONVERT TO CHARACTER SET DEFAULT",
        "ALTER TABLE t ADD d CHAR(3)",
    ),
    (
        "ALTER DATABASE c COLLATE latin1_bin",
        "CREATE TABLE t (a CHAR(5)) CHARSET ucs2",
        "ALTER TABLE t CONVERT TO CHARACTER SET DEFAULT",
        "ALTER TABLE t CONVERT TO CHARACTER SET DEFAULT COLLATE latin1_german1_ci",
    ),
    (
        "CREATE DATABASE other COLLATE latin1_bin",
        "CREATE DATABASE IF NOT EXISTS other CHARSET ucs2",
        TABLE,
        "ALTER DATABASE other CHARSET latin1",
        "CREATE TABLE other.u (a CHAR(5))",
        "ALTER TABLE other.u ADD b CHAR(3)",
    ),
    ("CREATE DATABASE other COLLATE latin1_bin CHARSET latin1", TABLE),
    ("CREATE DATABASE other CHARSET latin1 COLLATE latin1_bin", TABLE),
    ("CREATE DATABASE other CHARSET ucs2", "ALTER DATABASE other COLLATE utf32_bin", TABLE),
    ("CREATE DATABASE other CHARSET ucs2", "DROP DATABASE other", "CREATE SCHEMA other", TABLE),
    ("CREATE DATABASE IF NOT EXISTS c CHARSET ucs2", "CREATE TABLE t (a CHAR(5))"),
)
NOT_MYSQL_8 = (
    (
        "ALTER DATABASE c CHARSET latin1",
        "CREATE TABLE t (a CHAR(5)) CHARSET ucs2",
        "ALTER TABLE t CHARACTER SET DEFAULT, ADD b CHAR(3)",
        "CREATE TABLE u (a CHAR(5)) CHARSET DEFAULT",
    ),
    ("CREATE DATABASE other CHARSET ucs2", "ALTER DATABASE other CHARSET DEFAULT", TABLE),
    ("CREATE DATABASE other CHARSET DEFAULT", TABLE),
    (
        "ALTER DATABASE c COLLATE latin1_bin",
        "CREATE TABLE t (a CHAR(5)) CHARSET DEFAULT",
        "CREATE TABLE u (a CHAR(5)) COLLATE DEFAULT",
        "CREATE TABLE v (a CHAR(5)) CHARSET ucs2",
        "ALTER TABLE v CHARACTER SET DEFAULT, ADD b CHAR(5)",
    ),
    ("CREATE DATABASE other COLLATE latin1_bin", "ALTER DATABASE other COLLATE DEFAULT", TABLE),
)
ONLY_MARIADB = (
    ("CREATE DATABASE other", TABLE, "CREATE OR REPLACE DATABASE other CHARSET latin1", TABLE),
    ("CREATE DATABASE other CHARSET ucs2", "ALTER DATABASE other COLLATE uca1400_ai_ci", TABLE),
)


def test_tables_inherit_what_their_database_has(twin: Twin) -> None:
    own = ONLY_MARIADB if twin.context.is_mariadb else ()
    others = () if twin.context.at_least(80000, None) else NOT_MYSQL_8
    for statements in (*EVERYWHERE, *others, *own):
        twin.reset([])
        for sql in statements:
            assert outcome(twin, sql) == (True, []), (statements, sql)
