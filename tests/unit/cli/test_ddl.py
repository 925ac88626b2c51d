"""``shardmerge ddl check``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from shardmerge.cli.ddl import statements
from shardmerge.cli.main import main
from shardmerge.cli.views.call_shapes import CheckedDdl
from shardmerge.schemas.codes.registry import codes
from shardmerge.schemas.records.plain import from_plain


def check(text: str, *options: str) -> Result:
    return CliRunner().invoke(main, ["ddl", "check", *options, "-"], input=text)


def test_statements_end_with_two_semicolons_at_a_lines_end() -> None:
    found = list(statements("a ';;' b;;\n\n c;\nd;; \r\n;;\n-- @group x\ne"))
    assert [each.sql for each in found] == ["a ';;' b", "c;\nd", "e"]
    assert [each.line for each in found] == [1, 3, 7]
    assert [each.number for each in found] == [1, 2, 3]


def test_everything_that_is_understood_ends_with_0() -> None:
    found = check("CREATE TABLE t (a INT);;\nUSE d;;\nDROP TABLE t;;\n")
    assert (found.exit_code, found.output) == (0, "2 parsed, 1 ignored, 0 failed\n")


def test_a_failure_tells_its_place_and_ends_with_1() -> None:
    found = check("USE d;;\nCREATE TABLE t (\n  a INT,\n  b FOO);;\n")
    assert found.exit_code == 1
    assert found.output.splitlines() == [
        "failed: statement 2, line 4, column 5: expected a column type, found 'FOO'",
        "      b FOO)",
        "        ^",
        "0 parsed, 1 ignored, 1 failed",
    ]


@pytest.mark.parametrize(
    ("sql", "options"),
    [
        ('CREATE TABLE "t" (a INT)', ["--sql-mode", "NO_ZERO_DATE,ansi_quotes"]),
        ("ALTER TABLE IF EXISTS t ADD a INT", ["--flavour", "mariadb"]),
        ("ALTER TABLE t ADD a INT /*!80100 FOO */", ["--server-version", "8.0.36"]),
        ('-- @group g ansi\nCREATE TABLE "t" (a INT)', []),
        ("-- @group g maria\nALTER TABLE IF EXISTS t ADD a INT", []),
    ],
)
def test_the_server_is_an_option_or_a_groups_flag(sql: str, options: list[str]) -> None:
    assert check(sql, *options).exit_code == 0
    without = sql.rpartition("\n")[2]
    assert check(without).exit_code == 1


def test_statements_are_applied_to_a_fixture_each_on_its_own(tmp_path: Path) -> None:
    fixture = tmp_path / "fixture.sql"
    fixture.write_text("CREATE TABLE t (a INT, b INT);;\n", encoding="utf-8")
    found = check(
        "ALTER TABLE t DROP a;;\nALTER TABLE d.t DROP a;;\nALTER TABLE t DROP c;;\nUSE d;;\n",
        *("--fixture", str(fixture), "--database", "d"),
    )
    assert found.exit_code == 0
    lines = found.output.splitlines()
    assert lines[0].startswith(
        "not applicable: statement 3, line 3: SM-1102: table t has no column c"
    )
    assert lines[1:] == ["2 applied, 1 not applicable", "3 parsed, 1 ignored, 0 failed"]


def test_findings_are_told_as_json(tmp_path: Path) -> None:
    fixture = tmp_path / "fixture.sql"
    fixture.write_text("CREATE TABLE t (a INT);;\n", encoding="utf-8")
    found = check(
        "ALTER TABLE t\n ADD b FOO;;\nALTER TABLE t DROP c;;\nALTER TABLE t ADD b INT;;\nUSE d;;\n",
        *("--fixture", str(fixture), "--json"),
    )
    assert found.exit_code == 1
    checked = from_plain(CheckedDdl, json.loads(found.output))
    assert (checked.parsed, checked.ignored, checked.failed) == (2, 1, 1)
    failed, refused = checked.findings
    assert (failed.kind, failed.statement, failed.line, failed.column) == ("failed", 1, 2, 8)
    assert failed.text == "expected a column type, found 'FOO'"
    assert (refused.kind, refused.statement, refused.line) == ("not applicable", 2, 3)
    assert (refused.code, "no column c" in refused.text) == ("SM-1102", True)
    assert failed.code in codes()


@pytest.mark.parametrize(
    "options",
    [
        ["--flavour", "oracle"],
        ["--server-version", "eight"],
        ["--server-version", "8.0.1.2"],
        ["--fixture", "no-such-file"],
    ],
)
def test_bad_usage_ends_with_2(options: list[str]) -> None:
    assert check("", *options).exit_code == 2


def test_a_missing_file_a_broken_fixture_and_unreadable_text_are_bad_usage(tmp_path: Path) -> None:
    run = CliRunner().invoke
    assert run(main, ["ddl", "check", str(tmp_path / "none")]).exit_code == 2
    fixture = tmp_path / "fixture.sql"
    for text in ("CREATE TABLE t (a FOO)", "ALTER TABLE t ADD a INT"):
        fixture.write_text(text, encoding="utf-8")
        found = run(main, ["ddl", "check", "--fixture", str(fixture), "-"], input="USE d")
        assert (found.exit_code, str(fixture) in found.output) == (2, True)
    fixture.write_bytes(b"CREATE TABLE t\xe9 (a INT)")
    found = run(main, ["ddl", "check", str(fixture)])
    assert found.exit_code == 2
    assert "byte 15" in found.output
