"""The text of a first pipeline file, from what was asked for and what servers told. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from zlib import crc32

from shardmerge.schemas.model.server_facts import ServerFacts
from shardmerge.schemas.pipeline.server_differences import READING_MODES

_FIRST_SERVER_ID = 1_000_000
_MOST_TABLES = 12
_DIGITS = re.compile(r"\d+$")


@dataclass(frozen=True, slots=True)
class Address:
    """A server that the call names.

    Attributes:
        name: Of a source; ``target`` for the target.
        user: Of the server.
    """

    name: str
    user: str
    host: str
    port: int = 3306

    @property
    def password_variable(self) -> str:
        """The environment variable with its password."""
        return f"{re.sub('[^A-Za-z0-9]', '_', self.name).upper()}_PASSWORD"


@dataclass(frozen=True, slots=True)
class Seen:
    """What a server told.

    Attributes:
        facts: None when it was not asked or did not answer.
        tables: Pairs of database and table, sorted.
        why: Why ``facts`` is None, a sentence.
    """

    facts: ServerFacts | None
    tables: tuple[tuple[str, str], ...] = ()
    why: str = ""


@dataclass(frozen=True, slots=True)
class FirstFile:
    """What a first pipeline file says.

    Attributes:
        kind: Of the target, for one that was not asked.
        sources: Each with what it told.
    """

    name: str
    kafka: str
    connect: str
    sources: tuple[tuple[Address, Seen], ...]
    target: tuple[Address, Seen]
    kind: str = "mysql"


@dataclass(frozen=True, slots=True)
class GuessedRoute:
    """Tables whose names differ only in the digits at their ends.

    Attributes:
        shards: As ``source/database.table``.
    """

    database: str
    table: str
    target: str
    shards: tuple[str, ...]


def guessed_routes(
    sources: Mapping[str, Sequence[tuple[str, str]]],
) -> tuple[GuessedRoute, ...]:
    """Which tables probably are shards of one target; those with the most shards come first.

    Args:
        sources: Source's name → its tables.
    """
    groups: dict[tuple[str, str], list[str]] = {}
    for source, tables in sorted(sources.items()):
        for database, table in tables:
            group = (_pattern(database), _pattern(table))
            groups.setdefault(group, []).append(f"{source}/{database}.{table}")
    names = [_stem(table) for _, table in groups]
    found = []
    for (database, table), shards in groups.items():
        stem = _stem(table)
        # Tables of one name in several databases may have nothing to do with each other.
        merged = "merged" if names.count(stem) == 1 else f"merged_{_stem(database)}"
        found.append(GuessedRoute(database, table, f"{merged}.{stem}", tuple(shards)))
    return tuple(sorted(found, key=lambda each: (-len(each.shards), each.target)))


def first_file(asked: FirstFile) -> str:
    """The text; passwords are read from the environment where the file is read."""
    return "\n".join(_lines(asked)) + "\n"


def _lines(asked: FirstFile) -> Iterator[str]:
    yield "# The pipeline file: what is merged into what. Watchdog, agents, sink and command line"
    yield "# read it. ${NAME} inside a string is replaced from the environment. Every key is in"
    yield "# docs/reference/pipeline-file.md. Unknown keys are errors."
    yield '# A password written as "env:NAME" is not stored in Connect either, and servers with TLS'
    yield "# have tables tls: docs/how-to/secure.md."
    yield ""
    yield "[pipeline]"
    yield from _key("name", asked.name, "prefix of the pipeline's own topics")
    yield '# mode = "pessimistic"   # a schema change waits until every shard has made it'
    yield ""
    yield "[kafka]"
    yield from _key("bootstrap_servers", asked.kafka)
    yield "# replication = 3        # of the pipeline's own topics; 1 loses them with one broker"
    yield ""
    yield "[connect]"
    yield from _key("url", asked.connect, "Kafka Connect's REST interface")
    yield "# replication = 3        # of the row topics"
    yield "# row_partitions = 2     # of each row topic: more let the sink apply in parallel"
    routes = guessed_routes({address.name: seen.tables for address, seen in asked.sources})
    for address, seen in asked.sources:
        yield ""
        yield from _source(asked.name, address, seen, routes)
    yield ""
    yield from _routes(routes)
    yield ""
    yield from _target(asked)


def _source(
    pipeline: str, address: Address, seen: Seen, routes: Sequence[GuessedRoute]
) -> Iterator[str]:
    if seen.facts is None:
        yield f"# {address.host}:{address.port} was not read: {seen.why}."
        yield "# So correct flavour and version (SELECT VERSION()), sql_mode and charset below."
    else:
        yield f"# {address.host}:{address.port} is {seen.facts.version_text}. Its tables:"
        shown = [f"{database}.{table}" for database, table in seen.tables[:_MOST_TABLES]]
        if more := len(seen.tables) - len(shown):
            shown.append(f"and {more} more")
        for number in range(0, len(shown), 4):
            yield f"#   {', '.join(shown[number : number + 4])}"
    yield "[[sources]]"
    yield from _key("name", address.name, "becomes the connector's topic.prefix")
    yield from _server(address)
    number = _FIRST_SERVER_ID + crc32(f"{pipeline}/{address.name}".encode()) % 1_000_000_000
    yield from _key("server_id", number, "the connector's own, unique among all replicas")
    prefix = f"{address.name}/"
    databases = {r.database for r in routes if any(s.startswith(prefix) for s in r.shards)}
    captured = "|".join(sorted(databases)) or ".*"
    yield from _key("databases", captured, "regular expression: what is captured")
    facts = seen.facts
    flavour = "mysql" if facts is None or facts.kind != "mariadb" else "mariadb"
    yield from _key("flavour", flavour, "with version, sql_mode and charset: how DDL is read")
    yield from _key("version", _version(facts) or "8.0")
    if facts is not None and (modes := [mode for mode in READING_MODES if mode in facts.sql_mode]):
        yield from _key("sql_mode", ",".join(modes))
    yield from _key("charset", facts.charset if facts else "utf8mb4")
    if facts is not None and (names := facts.lower_case_table_names):
        why = "names of tables are read in lower case"
        yield from _key("lower_case_table_names", names, why)
    if (
        facts is not None
        and (real := facts.context("")).has_explicit_timestamps
        is not replace(real, explicit_timestamps=None).has_explicit_timestamps
    ):
        value = "ON" if real.has_explicit_timestamps else "OFF"
        yield from _key("explicit_defaults_for_timestamp", value, "not its version's default")


def _routes(routes: Sequence[GuessedRoute]) -> Iterator[str]:
    yield "# A table that matches the expressions of source, database and table (whole names) is a"
    yield "# shard of the target. Guessed from the names: read each of them, and remove what is"
    yield "# not to be merged."
    if not routes:
        yield "# No server was read, so this one is an example: write your own."
        yield from _route(GuessedRoute("app", "t_\\d+", "merged.t", ()), comment="")
        return
    several = any(len(route.shards) > 1 for route in routes)
    for route in routes:
        shown = ", ".join(route.shards[:4])
        more = len(route.shards) - 4
        yield ""
        yield f"# {len(route.shards)}: {shown}" + (f" and {more} more" if more > 0 else "")
        alone = several and len(route.shards) == 1
        yield from _route(route, comment="# " if alone else "")


def _route(route: GuessedRoute, *, comment: str) -> Iterator[str]:
    values = {"database": route.database, "table": route.table, "target": route.target}
    yield f"{comment}[[routes]]"
    for name, value in values.items():
        yield f"{comment}{name} = {json.dumps(value, ensure_ascii=False)}"
    if not comment:
        yield "# If keys of different shards are equal, or you want to know where a row came from;"
        yield "# it cannot be changed later without merging again (docs/how-to/origin-columns.md):"
        yield '# origin = { shard = "_shard", in_keys = true }'


def _target(asked: FirstFile) -> Iterator[str]:
    address, seen = asked.target
    facts = seen.facts
    if facts is None:
        yield f"# {address.host}:{address.port} was not read: {seen.why}."
        yield "# So correct kind and version (SELECT VERSION()) below."
    yield "[target]"
    yield from _key("kind", facts.kind if facts else asked.kind, "mysql, mariadb or tidb")
    version = _version(facts, 3) or {"mariadb": "10.11", "tidb": "8.5"}.get(asked.kind, "8.0.15")
    yield from _key("version", version, "the DDL is written for it")
    yield from _server(address)
    yield from _key("control_database", "shardmerge", "offsets, DDL journal, writer epoch")


def _server(address: Address) -> Iterator[str]:
    yield from _key("host", address.host)
    yield from _key("port", address.port)
    yield from _key("user", address.user)
    yield from _key("password", f"${{{address.password_variable}}}")


def _key(name: str, value: str | int, meaning: str = "") -> Iterator[str]:
    text = f"{name} = {json.dumps(value, ensure_ascii=False)}"
    yield f"{text:<24} # {meaning}" if meaning else text


def _version(facts: ServerFacts | None, digits: int = 2) -> str:
    return ".".join(map(str, facts.version[:digits])) if facts else ""


def _pattern(name: str) -> str:
    stem = _DIGITS.sub("", name)
    return re.escape(stem) + (r"\d+" if stem != name else "")


def _stem(pattern: str) -> str:
    plain = re.sub(r"\\(.)", r"\1", pattern.removesuffix(r"\d+"))
    # A target is database.table: a point inside of a name would be read as the one between them.
    return re.sub(r"[^\w$-]", "_", plain).rstrip("_-") or "t"
