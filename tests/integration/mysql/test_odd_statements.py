"""Statements whose effect was tracked wrongly once: the servers say what each one does."""

from __future__ import annotations

import pytest

from .shrink import outcome
from .twin import Twin

_DEEP = f"{'(' * 400}1{')' * 400}"
_PARENT = ("CREATE TABLE p (id INT PRIMARY KEY, up INT, FOREIGN KEY (up) REFERENCES p (id))",)
_CHILD = "CREATE TABLE c (p INT, FOREIGN KEY (p) REFERENCES p (id))"
_CONVERTED = [
    ((f"CREATE TABLE t (a {before}) CHARSET=latin1",),
     f"ALTER TABLE t CONVERT TO CHARACTER SET {charset}, MODIFY a {text}")
    for before in ("INT", "DECIMAL(65,30)", "BIT(64)", "CHAR(64)", "CHAR(127) CHARSET ucs2",
                   "CHAR(128) CHARSET ucs2", "TINYTEXT CHARSET utf8", "TEXT", "BLOB", "JSON")
    for charset, text in (("utf8mb4", "TEXT"), ("latin1", "MEDIUMTEXT CHARSET utf8"))
]  # fmt: skip
CASES = [
    *(((f"CREATE TABLE t (a INT {key})",), f"ALTER TABLE t ALTER a SET DEFAULT {written}")
      for key in ("", "PRIMARY KEY")
      for written in ("(2)", "((2))", "(+2)", "(-2)", "(NULL)", "(0x5)", "(1 + 2)")),
    *_CONVERTED,
    *((("CREATE TABLE t (a INT, b INT, CHECK (1 < 2), CHECK (a > 1))",), f"ALTER TABLE t {action}")
      for action in ("DROP b", "DROP b, ADD CHECK (3 < 4)", "ADD c INT")),
    *(((), f"CREATE TABLE t (a {definition})")
      for definition in ("VARCHAR(64) BINARY COLLATE utf8_bin", "TEXT BINARY COLLATE latin1_bin",
                         "CHAR(3) CHARSET utf8 BINARY COLLATE utf8_general_ci")),
    *(((), f"CREATE TABLE t (a {kind} DEFAULT '{written}')")
      for kind in ("TIMESTAMP NULL", "DATETIME", "DATE")
      for written in ("0:0:0", "2/2/2", "2.2.2", "0/0/0", "0:0:1", "70:1:1", "002/2/2")),
    *(((*_PARENT, _CHILD), action)
      for action in ("RENAME TABLE p TO q", "ALTER TABLE p RENAME q", "RENAME TABLE p TO q, q TO r",
                     "ALTER TABLE p CHANGE id ident INT")),
    *(((f"CREATE TABLE t (a {kind} NOT NULL, KEY k (a{prefix}))",), "ALTER TABLE t ADD b INT")
      for kind in ("POINT", "GEOMETRY", "LINESTRING") for prefix in ("", "(10)", "(32)")),
    *((("CREATE TABLE t (a VARBINARY(50), KEY k (a(20)))",), f"ALTER TABLE t MODIFY a {kind}")
      for kind in ("POINT", "GEOMETRY")),
    ((), f"CREATE TABLE t (a INT, b INT AS (a + {_DEEP}), CHECK (a > {_DEEP}))"),
    *((("CREATE TABLE t (id INT PRIMARY KEY, a INT, KEY k (a))",), f"ALTER TABLE t {action}")
      for action in (
          "RENAME COLUMN IF EXISTS no TO y", "RENAME COLUMN IF EXISTS a TO y",
          "RENAME INDEX IF EXISTS no TO y", "RENAME KEY IF EXISTS k TO y",
          "ALTER COLUMN IF EXISTS no SET DEFAULT 5", "ALTER IF EXISTS a SET DEFAULT 5",
          "ALTER INDEX IF EXISTS no IGNORED", "ALTER KEY IF EXISTS k IGNORED",
          "ALTER COLUMN IF EXISTS no SET DEFAULT 5, ADD no INT",
          "RENAME COLUMN IF EXISTS no TO y, ADD no INT",
          "RENAME INDEX IF EXISTS no TO y, ADD INDEX no (a)",
          "ALTER INDEX IF EXISTS no IGNORED, ADD INDEX no (a)",
      )),
    *(((), f"CREATE TABLE t (a {kind}{charset})")
      for kind in ("ENUM(0xC3A9, 'x')", "SET(b'1100001', 0x7A)", "ENUM(0x8341, 0x41)")
      for charset in ("", *(f" CHARACTER SET {name}"
                            for name in ("latin1", "utf8mb4", "sjis", "cp1251", "ucs2")))
      if not (kind.startswith("ENUM(0x8341") and charset in ("", " CHARACTER SET utf8mb4"))),
    ((), "CREATE TABLE t (a ENUM(0xC3A9)) CHARSET=latin1"),
    *((("CREATE TABLE t (a INT)",), f"SET STATEMENT {setting} FOR ALTER TABLE t ADD b REAL")
      for setting in ("max_statement_time = 9", "sql_mode = '', lock_wait_timeout = 9")),
    *((("CREATE TABLE t (id INT, a INT)",), f"ALTER IGNORE TABLE t {action}")
      for action in ("ADD UNIQUE (a)", "ADD PRIMARY KEY (id)", "ADD CHECK (a > 0)")),
    *(((), f"CREATE TABLE t (a {kind} {words}) CHARSET=latin1 COLLATE=latin1_bin")
      for kind in ("VARCHARACTER(4)", "LONG CHAR VARYING", "TEXT(9)", "ENUM('a')")
      for words in ("COLLATE DEFAULT", "CHARACTER SET utf8mb4 COLLATE DEFAULT", "BYTE",
                    "UNICODE BINARY", "BINARY ASCII")
      if (kind, words) != ("ENUM('a')", "BYTE")),
    (("CREATE TABLE t (a CHAR(4)) COLLATE=latin1_bin",),
     "ALTER TABLE t CONVERT TO CHARACTER SET latin1 COLLATE DEFAULT"),
    *((_PARENT, f"CREATE TABLE t (a INT CONSTRAINT {name} REFERENCES p (id))")
      for name in ("", "k")),
]  # fmt: skip
_LEAST_TAKEN = 50


def test_statements_that_were_tracked_wrongly_leave_tracker_and_server_equal(twin: Twin) -> None:
    wrong: list[str] = []
    taken = 0
    for setup, statement in CASES:
        twin.reset([])
        if not all(twin.execute(sql) for sql in setup):
            continue
        is_taken, found = outcome(twin, statement)
        taken += is_taken
        if found:
            wrong.append("\n    ".join([*setup, statement, *found]))
    assert not wrong, "\n".join(wrong)
    assert taken >= _LEAST_TAKEN


@pytest.mark.parametrize("depth", [300])
def test_what_is_nested_too_deeply_is_refused_in_words(twin: Twin, depth: int) -> None:
    sql = f"CREATE TABLE t (a INT, b INT AS ({'abs(' * depth}a{')' * depth}))"
    assert twin.is_taken(sql)
    _, found = outcome(twin, sql.replace(" t ", " u "))
    assert any("nested too deeply" in line for line in found)
