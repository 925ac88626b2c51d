"""Statements that give texts a character set without naming it, and what must arrive of them.

Each case is one database ``{d}``, with a table ``{d}.t`` whose columns but ``id`` are texts.
Debezium's own parsers of DDL read each of them wrongly.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

TEXT = "äö"
"""Its bytes differ in utf8mb4, latin2 and utf16; latin1 and latin2 have the same for it."""

CASES: Mapping[str, tuple[str, ...]] = {
    "db_plain": ("CREATE DATABASE {d}", "CREATE TABLE {d}.t (id INT PRIMARY KEY, v VARCHAR(9))"),
    "db_collate": (
        "CREATE DATABASE {d} COLLATE utf16_bin",
        "CREATE TABLE {d}.t (id INT PRIMARY KEY, v VARCHAR(9))",
    ),
    "db_comment": (
        "CREATE DATABASE /*!32312 IF NOT EXISTS*/ `{d}` /*!40100 DEFAULT CHARACTER SET utf16 */",
        "CREATE TABLE {d}.t (id INT PRIMARY KEY, v VARCHAR(9))",
    ),
    "db_altered": (
        "CREATE DATABASE {d} CHARACTER SET utf16",
        "ALTER DATABASE {d} COLLATE latin2_bin",
        "CREATE TABLE {d}.t (id INT PRIMARY KEY, v VARCHAR(9))",
    ),
    "db_there": (
        "CREATE DATABASE {d} CHARACTER SET utf16",
        "CREATE DATABASE IF NOT EXISTS {d} CHARACTER SET latin2",
        "CREATE TABLE {d}.t (id INT PRIMARY KEY, v VARCHAR(9))",
    ),
    "db_again": (
        "CREATE DATABASE {d} CHARACTER SET utf16",
        "DROP DATABASE {d}",
        "CREATE DATABASE {d}",
        "CREATE TABLE {d}.t (id INT PRIMARY KEY, v VARCHAR(9))",
    ),
    "table_collate": (
        "CREATE DATABASE {d}",
        "CREATE TABLE {d}.t (id INT PRIMARY KEY, v VARCHAR(9)) COLLATE latin2_bin",
        "ALTER TABLE {d}.t ADD w TEXT",
    ),
    "table_comment": (
        "CREATE DATABASE {d}",
        "CREATE TABLE {d}.t (id INT PRIMARY KEY, v VARCHAR(9)) /*!40100 DEFAULT CHARSET=latin2 */",
        "ALTER TABLE {d}.t ADD w TEXT",
    ),
    "table_like": (
        "CREATE DATABASE {d} CHARACTER SET utf16",
        "CREATE TABLE {d}.o (id INT PRIMARY KEY, v VARCHAR(9)) COLLATE latin2_bin",
        "CREATE TABLE {d}.t LIKE {d}.o",
        "ALTER TABLE {d}.t ADD w TEXT",
    ),
    "table_altered": (
        "CREATE DATABASE {d}",
        "CREATE TABLE {d}.t (id INT PRIMARY KEY)",
        "ALTER TABLE {d}.t DEFAULT CHARSET latin2",
        "ALTER TABLE {d}.t ADD v VARCHAR(9)",
        "ALTER TABLE {d}.t COLLATE utf16_bin, ADD w VARCHAR(9)",
        "ALTER TABLE {d}.t DEFAULT CHARACTER SET = latin2, MODIFY w TEXT",
    ),
    "column_comment": (
        "CREATE DATABASE {d}",
        "CREATE TABLE {d}.t (id INT PRIMARY KEY, v VARCHAR(9) /*!40100 CHARACTER SET latin2 */"
        " NOT NULL, w TEXT /*!40100 COLLATE utf16_bin */, x TEXT) /*!50100 COMMENT='CHARSET x' */",
    ),
    "column": (
        "CREATE DATABASE {d}",
        "CREATE TABLE {d}.t (id INT PRIMARY KEY, v VARCHAR(9) NOT NULL COLLATE latin2_bin,"
        " w CHAR(9) DEFAULT 'x' COLLATE utf16_bin, x TEXT NULL COLLATE latin2_bin,"
        " y MEDIUMTEXT, z VARCHAR(9) COLLATE utf16_bin NOT NULL)",
    ),
}


COMMENTS = frozenset({"db_comment", "table_comment"})
"""What stands in a comment at the end, Debezium's own parser does not hand on at all."""


def play(run: Callable[[str], object], prefix: str, case: str) -> None:
    """Make a case's table in a database of its own, and insert a row with the text everywhere.

    Args:
        run: Executes a statement.
        prefix: Before the case's name, the name of its database.
        case: Its name.
    """
    database = f"{prefix}{case}"
    for sql in CASES[case]:
        run(sql.format(d=database))
    columns = [name for name in "vwxyz" if any(f" {name} " in sql for sql in CASES[case])]
    texts = "".join(f", {name} = '{TEXT}'" for name in columns)
    run(f"INSERT INTO {database}.t SET id = 1{texts}")
