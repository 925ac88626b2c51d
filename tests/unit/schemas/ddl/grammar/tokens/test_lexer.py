"""Tokens, quoting, comments, and errors with their place."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from shardmerge.schemas.ddl.grammar import ServerContext, parse
from shardmerge.schemas.ddl.grammar.tokens.comments import execute_version_comments
from shardmerge.schemas.ddl.grammar.tokens.lexer import Cursor
from shardmerge.schemas.model.errors import UnparsableDDL

MYSQL = ServerContext()
MARIADB = ServerContext("mariadb", (10, 11))
ANSI = ServerContext(sql_mode=frozenset({"ANSI_QUOTES"}))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (r"'it''s'", "it's"),
        (r"'a\'b'", "a'b"),
        (r'"say ""hi"""', 'say "hi"'),
        (r"'tab\tnew\nline'", "tab\tnew\nline"),
        (r"'back\\slash'", "back\\slash"),
        (r"'100\%'", r"100\%"),
        (r"'\q'", "q"),
        ("'con' 'cat'", "concat"),
        ("N'national'", "national"),
        ("''", ""),
        ('"\'"', "'"),
    ],
)
def test_a_string_has_the_value_that_mysql_reads(text: str, value: str) -> None:
    assert Cursor(text, MYSQL).string() == value


def test_without_backslash_escapes_a_backslash_is_a_character() -> None:
    context = ServerContext(sql_mode=frozenset({"NO_BACKSLASH_ESCAPES"}))
    assert Cursor(r"'c:\new'", context).string() == r"c:\new"


@pytest.mark.parametrize(
    ("modes", "before", "is_executed"),
    [
        ({"NO_BACKSLASH_ESCAPES"}, r"'\'", True),
        ({"NO_BACKSLASH_ESCAPES"}, r'"\"', True),
        ({"NO_BACKSLASH_ESCAPES"}, r"'it''s \'", True),
        ({"NO_BACKSLASH_ESCAPES"}, r"'\''", False),
        (set(), r"'\'", False),
        (set(), r"'\\'", True),
        (set(), r"'\''", True),
    ],
)
def test_a_backslash_before_a_version_comment_means_what_the_sql_mode_says(
    modes: set[str], before: str, is_executed: bool
) -> None:
    context = ServerContext(sql_mode=frozenset(modes))
    written = f"({before} /*!50606 , 'x' */)"
    read = f"({before}          , 'x'   )"
    found = execute_version_comments(written, context)
    assert found == (read if is_executed else written)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("`a b`", "a b"),
        ("`a``b`", "a`b"),
        ("1n", "1n"),
        ("$x", "$x"),
        ("имя", "имя"),
        ("any", "any"),
    ],
)
def test_a_name_is_read_as_mysql_reads_it(text: str, name: str) -> None:
    assert Cursor(text, MYSQL).identifier() == name


def test_ansi_quotes_make_double_quotes_names() -> None:
    assert Cursor('"select"', ANSI).identifier() == "select"
    with pytest.raises(UnparsableDDL):
        Cursor('"select"', MYSQL).identifier()


def test_a_reserved_word_is_no_name_without_quotes() -> None:
    with pytest.raises(UnparsableDDL):
        Cursor("select", MYSQL).identifier()


@pytest.mark.parametrize(
    ("context", "executed"),
    [
        (ServerContext(version=(8, 0, 15)), False),
        (ServerContext(version=(8, 0, 23)), True),
        (ServerContext(version=(8, 0)), True),
        (ServerContext(version=(9, 7)), True),
        (ServerContext(version=(5, 7)), False),
        (MARIADB, False),
    ],
)
def test_a_version_comment_is_executed_by_the_servers_it_names(
    context: ServerContext, executed: bool
) -> None:
    text = execute_version_comments("a /*!80023 INVISIBLE */ b", context)
    assert ("INVISIBLE" in text) is executed
    assert len(text) == len("a /*!80023 INVISIBLE */ b")


def test_mariadb_comments_are_mariadbs_alone() -> None:
    sql = "a /*M!100301 x */ b"
    assert "x" in execute_version_comments(sql, MARIADB)
    assert "x" not in execute_version_comments(sql, MYSQL)


def test_a_sixth_digit_is_mysqls_only_before_a_blank() -> None:
    assert execute_version_comments("a(/*!506012*/)", MYSQL) == "a(        2  )"
    assert execute_version_comments("a /*!080000 x */", MYSQL).split() == ["a", "x"]
    assert execute_version_comments("a(/*!506012*/)", MARIADB).replace(" ", "") == "a()"


def test_a_comment_inside_a_string_is_text() -> None:
    sql = "'/*!50000 x */' \"/*! y */\" `/*! z */` /*!50000 yes */"
    text = execute_version_comments(sql, MYSQL)
    assert text.startswith("'/*!50000 x */' \"/*! y */\" `/*! z */`")
    assert "/*!50000 yes" not in text


def test_a_version_comment_that_is_cut_off_counts_as_closed() -> None:
    assert execute_version_comments("t /*!50100 x", MYSQL).split() == ["t", "x"]


def test_a_skipped_version_comment_may_hold_other_comments() -> None:
    assert execute_version_comments("a /*!99999 x /* y */ z */ b", MYSQL).split() == ["a", "b"]


def test_an_error_names_its_place() -> None:
    sql = "ALTER TABLE t\n  ADD COLUMN x INT BOGUS 5"
    with pytest.raises(UnparsableDDL) as caught:
        parse(sql, MYSQL)
    assert sql[caught.value.offset :] == "BOGUS 5"
    assert caught.value.caret() == "  ADD COLUMN x INT BOGUS 5\n                   ^"
    assert "'BOGUS'" in caught.value.message


def test_an_error_at_the_end_says_so() -> None:
    with pytest.raises(UnparsableDDL, match="end of the statement"):
        parse("ALTER TABLE t ADD COLUMN", MYSQL)


def test_an_open_string_is_an_error() -> None:
    with pytest.raises(UnparsableDDL, match="unreadable text"):
        parse("ALTER TABLE t COMMENT 'x", MYSQL)


@pytest.fixture
def _eager_threads() -> Iterator[None]:
    """Threads take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("_eager_threads")
def test_threads_parse_beside_each_other() -> None:
    def text(number: int) -> str:
        columns = ", ".join(f"c{i} VARCHAR({number}) DEFAULT 'v{number}'" for i in range(number))
        return f"CREATE TABLE t{number} (id INT, {columns})"

    texts = [text(number) for number in range(1, 30)] * 10
    alone = [parse(sql, MYSQL) for sql in texts]
    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(lambda sql: parse(sql, MYSQL), texts)) == alone
