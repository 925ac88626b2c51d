"""``shardmerge init``: writes a first pipeline file for the servers that are named."""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path
from typing import Any

import click

from shardmerge.cli.endings import telling_errors
from shardmerge.cli.options import FILE, json_option
from shardmerge.cli.screen import print_json
from shardmerge.cli.views.call_shapes import AskedServer, WrittenFile
from shardmerge.schemas.model.errors import ConfigError
from shardmerge.schemas.pipeline.file import parse_pipeline

from .first_file import Address, FirstFile, Seen, first_file
from .seen_servers import look_at

_ADDRESS = re.compile(r"(?:([A-Za-z0-9_-]+)=)?([^@=]+)@(\[[^\]]+\]|[^@:]+)(?::(\d+))?")
TARGET = "target"


class _Server(click.ParamType):
    """``NAME=USER@HOST:PORT`` → ``Address``; the target has no name."""

    def __init__(self, *, named: bool) -> None:
        self._named = named
        self.name = "NAME=USER@HOST:PORT" if named else "USER@HOST:PORT"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Address:
        found = _ADDRESS.fullmatch(value)
        if found is None or bool(found[1]) != self._named:
            self.fail(f"{value!r} is not written as {self.name}", param, ctx)
        host = found[3].strip("[]")
        return Address(found[1] or TARGET, found[2], host, int(found[4] or 3306))


@click.command()
@click.option("--output", type=FILE, required=True, help="The file; it must not exist.")
@click.option("--name", required=True, help="Of the pipeline: the prefix of its topics.")
@click.option("--kafka", default="127.0.0.1:9092", show_default=True, help="HOST:PORT,…")
@click.option(
    "--connect", default="http://127.0.0.1:8083", show_default=True, help="Connect's REST address."
)
@click.option(
    "--source", "sources", type=_Server(named=True), multiple=True, required=True,
    help="A source; once for each. Without PORT it is 3306.",
)  # fmt: skip
@click.option("--target", type=_Server(named=False), required=True, help="The target's server.")
@click.option(
    "--target-kind", type=click.Choice(["mysql", "mariadb", "tidb"]), default="mysql",
    show_default=True, help="Used when the target does not answer.",
)  # fmt: skip
@click.option("--offline", is_flag=True, help="Ask no server.")
@json_option
def init(
    output: Path,
    *,
    name: str,
    kafka: str,
    connect: str,
    sources: tuple[Address, ...],
    target: Address,
    target_kind: str,
    offline: bool,
    as_json: bool,
) -> None:
    """Write a commented pipeline file for the servers that are named.

    Each server that can be reached is asked for its kind, version and tables; from the tables'
    names the routes are guessed. Passwords never stand in the file: that of source s1 is read from
    the environment variable S1_PASSWORD, the target's from TARGET_PASSWORD, here and wherever the
    file is read.

    Ends with 0; with 2 when the call is wrong or the file exists.
    """
    with telling_errors():
        if output.exists():
            raise ConfigError(
                f"{output} exists", hint="choose another name, or remove it", code="SM-5601"
            )
        unasked = Seen(None, why="`shardmerge init --offline` asks no server")
        seen = [
            unasked if offline else look_at(address, os.environ, tables=True) for address in sources
        ]
        at_target = unasked if offline else look_at(target, os.environ, tables=False)
        asked = FirstFile(
            name, kafka, connect, tuple(zip(sources, seen, strict=True)), (target, at_target),
            target_kind,
        )  # fmt: skip
        text = first_file(asked)
        variables = [address.password_variable for address in (*sources, target)]
        parse_pipeline(text, dict.fromkeys(variables, "-"))
        with output.open("x", encoding="utf-8") as file:
            file.write(text)
    missing = dict.fromkeys(name for name in variables if name not in os.environ)
    words = shlex.quote(str(output))
    then = tuple(f"shardmerge {each} --pipeline {words}" for each in ("check", "run"))
    servers = (*map(_asked, sources, seen), _asked(target, at_target))
    written = WrittenFile(str(output), servers, tuple(missing), then)
    if as_json:
        print_json(written)
    else:
        _tell(written)


def _asked(address: Address, told: Seen) -> AskedServer:
    facts = told.facts
    kind, version = (facts.kind, facts.version_text) if facts else ("", "")
    tables = tuple(f"{database}.{table}" for database, table in told.tables)
    at = f"{address.host}:{address.port}"
    return AskedServer(address.name, at, kind, version, tables, "" if facts else told.why)


def _tell(written: WrittenFile) -> None:
    *sources, target = written.servers
    for server in (*sources, target):
        place = f"{server.name} ({server.address})"
        if server.why:
            click.echo(f"{place}: not read: {server.why}", err=True)
        else:
            tables = f", {len(server.tables)} tables" if server is not target else ""
            click.echo(f"{place}: {server.kind} {server.version}{tables}")
    click.echo(f"wrote {written.file}; read it, above all its routes. Then:")
    for variable in written.missing:
        click.echo(f"  export {variable}=…")
    for line in written.then:
        click.echo(f"  {line}")
