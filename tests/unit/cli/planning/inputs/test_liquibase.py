"""Liquibase's formatted SQL."""

from __future__ import annotations

import pytest

from shardmerge.cli.planning.inputs.liquibase import changesets, is_formatted
from shardmerge.schemas.model.errors import ConfigError

HEAD = "--liquibase formatted sql\n"


def read(text: str, flavour: str = "mysql") -> list[tuple[str, list[tuple[str, int]]]]:
    found = changesets(HEAD + text, flavour, "f.sql")
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
