"""``shardmerge ddl``: what the grammar makes of files of statements."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import click

from shardmerge.schemas.ddl.apply.server_tables import Catalog
from shardmerge.schemas.ddl.changes import Irrelevant
from shardmerge.schemas.ddl.grammar import ServerContext, parse
from shardmerge.schemas.model.errors import UnparsableDDL, UnsupportedDDL

from .options import json_option
from .screen import print_json
from .views.call_shapes import CheckedDdl, DdlFinding

_NEWEST = {"mysql": (9, 7), "mariadb": (11, 8)}
_END = re.compile(r";;[ \t\r]*(?:\n|\Z)")
_GROUP = re.compile(r"\s*-- @group \S+([^\n]*)(?:\n|\Z)")


@dataclass(frozen=True, slots=True)
class Written:
    """One statement of a file.

    Attributes:
        number: From 1 on.
        line: Of its first character, from 1 on.
        flags: Of its group: ``ansi`` for sql_mode ANSI_QUOTES, ``maria`` for MariaDB.
    """

    number: int
    line: int
    sql: str
    flags: frozenset[str]

    def context(self, base: ServerContext) -> ServerContext:
        """The server that it is for: ``base``, unless its group says otherwise."""
        if "ansi" in self.flags:
            base = replace(base, sql_mode=base.sql_mode | {"ANSI_QUOTES"})
        if "maria" in self.flags and not base.is_mariadb:
            base = replace(base, flavour="mariadb", version=_NEWEST["mariadb"])
        return base


def statements(text: str) -> Iterator[Written]:
    """The statements of a text: ``;;`` at a line's end ends one.

    A line ``-- @group name flags`` before a statement gives flags to it and those that follow.
    """
    number, line, counted = 0, 1, 0
    flags = frozenset[str]()
    at = 0
    while at < len(text):
        end = _END.search(text, at)
        piece_end, following = (end.start(), end.end()) if end else (len(text), len(text))
        while (head := _GROUP.match(text, at, piece_end)) is not None:
            flags = frozenset(head[1].split())
            at = head.end()
        sql = text[at:piece_end].strip()
        if sql:
            start = text.index(sql, at)
            number += 1
            line += text.count("\n", counted, start)
            counted = start
            yield Written(number, line, sql, flags)
        at = following


@click.group()
def ddl() -> None:
    """Work with DDL statements without a server."""


@ddl.command()
@click.argument("file", type=click.Path(dir_okay=False, exists=True, allow_dash=True))
@click.option(
    "--flavour",
    type=click.Choice(sorted(_NEWEST)),
    default="mysql",
    show_default=True,
    help="Kind of server.",
)
@click.option(
    "--server-version",
    metavar="X.Y[.Z]",
    help="Version of the server; by default the newest that is supported.",
)
@click.option(
    "--sql-mode", default="", metavar="MODES", help="The server's sql_mode, separated by commas."
)
@click.option(
    "--charset", default="utf8mb4", show_default=True, help="The server's default character set."
)
@click.option("--database", default="", help="Database of tables that are named without one.")
@click.option(
    "--fixture",
    type=click.Path(dir_okay=False, exists=True),
    help="File of CREATE TABLE statements. Each statement of FILE is applied to these tables.",
)
@json_option
def check(
    file: str,
    *,
    flavour: str,
    server_version: str | None,
    sql_mode: str,
    charset: str,
    database: str,
    fixture: str | None,
    as_json: bool,
) -> None:
    """Parse every statement of FILE, which is "-" for standard input.

    ";;" at the end of a line ends a statement. Each statement that is not understood is printed
    with its place; then how many were parsed, how many were ignored because they concern no table's
    schema, and how many failed. The exit code is 1 if any failed.
    """
    context = ServerContext(
        flavour=flavour,
        version=_version(server_version) if server_version else _NEWEST[flavour],
        sql_mode=frozenset(mode.strip().upper() for mode in sql_mode.split(",") if mode.strip()),
        charset=charset,
        default_database=database,
    )
    base = None if fixture is None else _fixture(fixture, context)
    counts: Counter[str] = Counter()
    findings: list[DdlFinding] = []
    for written in statements(_text(file)):
        try:
            counts[_outcome(written, written.context(context), base)] += 1
        except UnparsableDDL as error:
            counts["failed"] += 1
            findings.append(_failed(written, error))
            text = _failure(written, error)
        except UnsupportedDDL as error:
            counts["refused"] += 1
            findings.append(_not_applicable(written, error))
            text = f"not applicable: statement {written.number}, line {written.line}: {error}"
        else:
            continue
        if not as_json:
            click.echo(text)
    applied, refused = counts["applied"], counts["refused"]
    parsed = counts["parsed"] + applied + refused
    if as_json:
        print_json(CheckedDdl(parsed, counts["ignored"], counts["failed"], tuple(findings)))
        raise SystemExit(1 if counts["failed"] else 0)
    if base is not None:
        click.echo(f"{applied} applied, {refused} not applicable")
    click.echo(f"{parsed} parsed, {counts['ignored']} ignored, {counts['failed']} failed")
    raise SystemExit(1 if counts["failed"] else 0)


def _outcome(written: Written, context: ServerContext, base: Catalog | None) -> str:
    """Parse one statement, and apply it if there is a base.

    Raises:
        UnparsableDDL: It is not understood.
        UnsupportedDDL: It does not apply to the base.
    """
    statement = parse(written.sql, context)
    if isinstance(statement, Irrelevant):
        return "ignored"
    if base is None:
        return "parsed"
    base.copy().execute(statement, context)
    return "applied"


def _failed(written: Written, error: UnparsableDDL) -> DdlFinding:
    line, column = _place(written, error)
    return DdlFinding("failed", written.number, line, column, error.message, error.hint, error.code)


def _not_applicable(written: Written, error: UnsupportedDDL) -> DdlFinding:
    return DdlFinding(
        "not applicable", written.number, written.line, 0, error.message, error.hint, error.code
    )


def _place(written: Written, error: UnparsableDDL) -> tuple[int, int]:
    """Line and column of what is not understood, from 1 on."""
    before = written.sql[: error.offset]
    return written.line + before.count("\n"), error.offset - (before.rfind("\n") + 1) + 1


def _failure(written: Written, error: UnparsableDDL) -> str:
    line, column = _place(written, error)
    caret = "\n".join(f"    {each}" for each in error.caret().split("\n"))
    place = f"statement {written.number}, line {line}, column {column}"
    return f"failed: {place}: {error.message}\n{caret}"


def _fixture(path: str, context: ServerContext) -> Catalog:
    """The tables that a file's statements make."""
    catalog = Catalog()
    for written in statements(_text(path)):
        each = written.context(context)
        try:
            catalog.execute(parse(written.sql, each), each)
        except UnparsableDDL as error:
            raise click.UsageError(f"{path}: {_failure(written, error)}") from error
        except UnsupportedDDL as error:
            raise click.UsageError(f"{path}, line {written.line}: {error}") from error
    return catalog


def _text(file: str) -> str:
    data = click.get_binary_stream("stdin").read() if file == "-" else Path(file).read_bytes()
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise click.UsageError(
            f"{file} is not UTF-8 (byte {error.start + 1}): convert it first"
        ) from error


def _version(text: str) -> tuple[int, ...]:
    parts = text.split(".")
    if not 1 <= len(parts) <= 3 or not all(part.isdecimal() for part in parts):
        raise click.UsageError(f"--server-version {text}: expected numbers like 8.0 or 10.11.6")
    return tuple(map(int, parts))
