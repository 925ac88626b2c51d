"""Liquibase's formatted SQL."""

from __future__ import annotations

import pytest

from shardmerge.cli.planning.inputs.liquibase import changesets, is_formatted
from shardmerge.schemas.model.errors import ConfigError
from shardmerge.schemas.model.server_context import ServerContext

HEAD = "--liquibase formatted sql\n"


def read(text: str, flavour: str = "mysql") -> list[tuple[str, list[tuple[str, int]]]]:
    found = changesets(HEAD + text, ServerContext(flavour=flavour), "f.sql")
    return [(each.name, [(p.sql, p.line) for p in each.pieces]) for each in found]


def test_changesets_have_their_statements_and_not_their_way_back() -> None:
    text = (
        "--changeset anna:1 labels:x\n--comment: why\nCREATE TABLE t (a INT);\n"
        "ALTER TABLE t ADD b INT;\n--rollback DROP TABLE t;\n"
        "/* liquibase rollback\nDROP TABLE t;\n*/\n"
        '--changeset "ben b":"two" context:test\nDROP TABLE x;\n'
    )
    assert read(text) == [
        ("anna:1", [("CREATE TABLE t (a INT)", 4), ("ALTER TABLE t ADD b INT", 5)]),
        ("ben b:two", [("DROP TABLE x", 11)]),
    ]


def test_delimiters_are_the_changesets() -> None:
    assert read("--changeset a:1 splitStatements:false\na; b\n") == [("a:1", [("a; b", 3)])]
    assert read("--changeset a:1 endDelimiter:/\na; b / c\n/\n") == [
        ("a:1", [("a; b", 3), ("c", 3)])
    ]


@pytest.mark.parametrize(
    ("dbms", "flavour", "there"),
    [
        ("mysql", "mysql", True),
        ("mysql,h2", "mariadb", False),
        ("!mysql", "mysql", False),
        ("!h2", "mysql", True),
        ("all", "mariadb", True),
        ("none", "mysql", False),
    ],
)
def test_a_changeset_for_other_servers_is_left_out(dbms: str, flavour: str, there: bool) -> None:
    assert bool(read(f"--changeset a:1 dbms:{dbms}\na;\n", flavour)) is there


def test_ignored_lines_are_left_out() -> None:
    text = (
        "--changeset a:1\n--ignoreLines:1\nx;\na;\n--ignoreLines:start\ny;\n--ignoreLines:end\nb;"
    )
    assert read(text) == [("a:1", [("a", 5), ("b", 9)])]


def test_only_the_first_line_makes_the_format() -> None:
    assert is_formatted("-- liquibase formatted sql\n")
    assert not is_formatted("a;\n--liquibase formatted sql\n")


@pytest.mark.parametrize("text", ["DROP TABLE t;\n--changeset a:1\n", "--changeset one\na;\n"])
def test_what_is_no_changelog_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match=r"f\.sql"):
        read(text)


def test_backslashes_are_read_as_the_server_reads_them() -> None:
    text = HEAD + "--changeset a:1\nALTER TABLE t ADD b CHAR(1) DEFAULT '\\';\nDROP TABLE x;\n"
    plain = ServerContext(sql_mode=frozenset({"NO_BACKSLASH_ESCAPES"}))
    assert [len(each.pieces) for each in changesets(text, plain, "f.sql")] == [2]
    assert [len(each.pieces) for each in changesets(text, ServerContext(), "f.sql")] == [1]


@pytest.mark.parametrize(
    ("text", "condition"),
    [
        ("--changeset a:1 context:test\nx;\n", "context:test"),
        ('--changeset a:1 contextFilter:"a or b" labels:v\nx;\n', "contextFilter:a or b, labels:v"),
        (
            "--changeset a:1\n--preconditions onFail:MARK_RAN\n"
            "--precondition-sql-check expectedResult:0 SELECT 1\nx;\n",
            "preconditions",
        ),
        ("--changeset a:1 runOnChange:true\n--comment preconditions\nx;\n", ""),
    ],
)
def test_a_changeset_tells_on_what_it_depends_whether_it_runs(text: str, condition: str) -> None:
    [found] = changesets(HEAD + text, ServerContext(), "f.sql")
    assert (found.condition, len(found.pieces)) == (condition, 1)


def test_a_changeset_that_is_to_be_ignored_is_left_out() -> None:
    assert read("--changeset a:1 ignore:true\nx;\n--changeset a:2 ignore:false\ny;\n") == [
        ("a:2", [("y", 5)])
    ]
