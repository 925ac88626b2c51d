"""A file of SQL is split as MySQL's client splits it."""

from __future__ import annotations

import pytest

from shardmerge.cli.planning.inputs.sql_text import pieces


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", []),
        (" ;; \n-- nothing\n", []),
        ("a; b ;\nc", [("a", 1), ("b", 1), ("c", 2)]),
        ("-- x; y\na -- b;\n;", [("a", 2)]),
        ("# x;\n/* a; */ b /* c; */ d;", [("b /* c; */ d", 2)]),
        ("/*!40101 SET x = 1 */;\na", [("/*!40101 SET x = 1 */", 1), ("a", 2)]),
        ("/*M! x */;", [("/*M! x */", 1)]),
        ("a ';' \";\" `;` b;", [("a ';' \";\" `;` b", 1)]),
        (r"a 'it\'s; ' b; c", [(r"a 'it\'s; ' b", 1), ("c", 1)]),
        ("a 'it''s; '; c", [("a 'it''s; '", 1), ("c", 1)]),
        ("a -1; b--1; c", [("a -1", 1), ("b--1", 1), ("c", 1)]),
        ("DELIMITER //\na; b //\ndelimiter ;\nc;", [("a; b", 2), ("c", 4)]),
        ("a 'open; ", [("a 'open; ", 1)]),
        ("a; /* open", [("a", 1)]),
    ],
)
def test_statements_end_outside_of_quotes_and_comments(
    text: str, found: list[tuple[str, int]]
) -> None:
    assert [(piece.sql, piece.line) for piece in pieces(text)] == found


def test_without_backslash_escapes_a_backslash_is_a_character() -> None:
    told = pieces(r"a 'x\'; b", backslash_escapes=False)
    assert [piece.sql for piece in told] == [r"a 'x\'", "b"]
