"""What the parsers are asked: statements that real servers took, and what columns came of them.

``statements``: the corpus of DDL, each statement on its own on the fixture's tables, and statements
that stopped a source once. ``words``: every word that is a column's name without quotes somewhere.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import pymysql

from benchmarks.parser_jvm import Columns
from shardmerge.schemas.ddl.grammar import ServerContext
from shardmerge.schemas.model.errors import ShardMergeError
from shardmerge.schemas.model.mysql_text import create_table
from shardmerge.schemas.model.names import quote_identifier
from tests.ddl_files import Written, cases, corpus, read
from tests.integration.mysql.random_ddl import statement
from tests.integration.mysql.random_definitions import PARENT_SQL
from tests.integration.mysql.random_types import Dialect
from tests.integration.mysql.twin import DATABASES, HOME, Key, Twin

STOPPED_ONCE = (
    "CREATE TABLE n (id INT, b BIT(3));; ALTER TABLE n ALTER COLUMN b SET DEFAULT b'101'",
    "CREATE TABLE n (id INT, b BIT(3));; ALTER TABLE n ALTER COLUMN b SET DEFAULT NULL",
    "CREATE TABLE n (id INT, b BIT(9) DEFAULT b'1');; ALTER TABLE n ADD y BIT(2) DEFAULT 2",
    "CREATE TABLE n (a INT NOT NULL, b INT);; CREATE UNIQUE INDEX x ON n (a, b)",
    "CREATE TABLE n (id INT PRIMARY KEY);; ALTER TABLE n ADD COLUMN url VARCHAR(9) NOT NULL",
    "CREATE TABLE n (id INT PRIMARY KEY, a INT);; RENAME TABLE n TO n2",
    "CREATE TABLE n (id INT PRIMARY KEY, a INT DEFAULT (1 + 1))",
    "CREATE TABLE n (a VARCHAR(9) DEFAULT \"it's\", b TEXT COMMENT \"a 'b' \\\" c\")",
    "CREATE TABLE n (`a``b` INT PRIMARY KEY, `c\"d` INT, `e'f` INT, `g h` INT, `1` INT, `ä` INT)",
    "CREATE TABLE n (id INT PRIMARY KEY, rank INT, lag INT) COMMENT 'rank INT, lag INT'",
    "CREATE TABLE n (id INT PRIMARY KEY COMMENT '-- \"x\" # y', a INT) -- rank \"INT\n",
    "CREATE TABLE n (id INT PRIMARY KEY, a DATE DEFAULT '2/2/2', b DATETIME DEFAULT '2000-1-1')",
    "CREATE TABLE n (id INT PRIMARY KEY, a TIME DEFAULT '-838:59:59', b YEAR DEFAULT 0)",
    "CREATE TABLE n (id INT PRIMARY KEY, a BIGINT UNSIGNED DEFAULT 18446744073709551615)",
    "CREATE TABLE n (id INT PRIMARY KEY, a BOOL DEFAULT TRUE, b TINYINT(1) DEFAULT 127)",
    "CREATE TABLE n (id INT, a BINARY(3) DEFAULT 0x616263, b VARBINARY(3) DEFAULT X'FF')",
    "CREATE TABLE n (id INT PRIMARY KEY, a DECIMAL(65,30) DEFAULT 1e10, b FLOAT DEFAULT 1e-3)",
)  # fmt: skip
"""``;;`` ends what comes before the statement in question."""
_ROUND = 120
"""Random statements, refused ones too, after which new tables begin."""
_CREATE = "CREATE TABLE w (id_ INT NOT NULL PRIMARY KEY, {w} INT, z_ INT)"
WAYS: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "create": ("", _CREATE, ("id_", "{w}", "z_")),
    "create, indexed": (
        "", "CREATE TABLE w (id_ INT NOT NULL PRIMARY KEY, {w} INT, KEY k ({w}))", ("id_", "{w}"),
    ),
    "add": ("", "ALTER TABLE w ADD COLUMN {w} INT", ("id_", "z_", "{w}")),
    "add without COLUMN": ("", "ALTER TABLE w ADD {w} INT", ("id_", "z_", "{w}")),
    "modify": ("w", "ALTER TABLE w MODIFY COLUMN {w} BIGINT", ("id_", "{w}", "z_")),
    "modify without COLUMN": ("w", "ALTER TABLE w MODIFY {w} BIGINT", ("id_", "{w}", "z_")),
    "change from": ("w", "ALTER TABLE w CHANGE COLUMN {w} o_ BIGINT", ("id_", "o_", "z_")),
    "change to": ("", "ALTER TABLE w CHANGE COLUMN z_ {w} BIGINT", ("id_", "{w}")),
    "rename from": ("w", "ALTER TABLE w RENAME COLUMN {w} TO o_", ("id_", "o_", "z_")),
    "rename to": ("", "ALTER TABLE w RENAME COLUMN z_ TO {w}", ("id_", "{w}")),
    "add behind it": ("w", "ALTER TABLE w ADD n_ INT AFTER {w}", ("id_", "{w}", "n_", "z_")),
    "drop": ("w", "ALTER TABLE w DROP COLUMN {w}", ("id_", "z_")),
    "index": ("w", "CREATE INDEX k ON w ({w})", ("id_", "{w}", "z_")),
    "add index": ("w", "ALTER TABLE w ADD UNIQUE INDEX k ({w})", ("id_", "{w}", "z_")),
    "set default": ("w", "ALTER TABLE w ALTER COLUMN {w} SET DEFAULT 1", ("id_", "{w}", "z_")),
}  # fmt: skip
"""What is done: table before ("": without the word), statement, columns after it."""


@dataclass(frozen=True, slots=True)
class Case:
    """A statement that a server took.

    Attributes:
        server: Which one.
        setup: What comes before it.
        sql: The statement.
        context: The server it was for.
        columns: What the server has afterwards; None where no server was asked.
    """

    server: str
    setup: tuple[str, ...]
    sql: str
    context: ServerContext
    columns: Columns | None


@dataclass(slots=True)
class Inputs:
    """Everything that the parsers are asked, and what servers say of it.

    Attributes:
        corpus: Each statement on the fixture's tables.
        stopped: Statements that stopped a source once.
        random: Random statements, one behind the other.
        shown: What SHOW CREATE TABLE says, which is what a snapshot reads.
        rendered: What the renderer makes of the same tables: what a repair writes.
        words: The servers that take a word without quotes, by way and word.
    """

    corpus: list[Case] = field(default_factory=list)
    stopped: list[Case] = field(default_factory=list)
    random: list[Case] = field(default_factory=list)
    shown: dict[str, tuple[str, ...]] = field(default_factory=dict)
    rendered: dict[str, tuple[str, ...]] = field(default_factory=dict)
    words: dict[tuple[str, str], list[str]] = field(default_factory=dict)


def ask_server(found: Inputs, port: int, server: str, random_statements: int) -> None:
    """Add what one server takes of the corpus and not another did before, and its tables."""
    twin = Twin(port)
    folder = cases()
    written = [w.sql for w in read(folder / "ddl_fixture.sql")] if folder else []
    twin.reset([])
    fixture = tuple(sql for sql in written if twin.is_taken(sql))
    known = {case.sql for case in found.corpus}
    twin.reset(list(fixture))
    begin, tracked = twin.shown(), dict(twin.tracked)
    for one in _statements():
        context = one.context(twin.context)
        if one.sql in known or context.flavour != twin.context.flavour:
            continue
        if "ignore" in one.flags:
            found.corpus.append(Case(server, fixture, one.sql, context, None))
        elif _execute(twin, one.sql, context):
            found.corpus.append(Case(server, fixture, one.sql, context, server_columns(twin)))
            _keep_texts(found, twin)
            if not twin.restore(begin, tracked):
                twin.reset(list(fixture))
    known = {case.sql for case in found.stopped}
    for text in STOPPED_ONCE:
        *setup, sql = (piece.strip() for piece in text.split(";;"))
        if sql not in known:
            twin.reset(setup)
            if _execute(twin, sql, twin.context):
                after = server_columns(twin)
                found.stopped.append(Case(server, tuple(setup), sql, twin.context, after))
                _keep_texts(found, twin)
    if random_statements:
        _random(found, twin, server, random_statements)
    twin.reset([])
    twin.close()


def _statements() -> Iterator[Written]:
    for path in corpus():
        for written in () if path.name == "ddl_fixture.sql" else read(path):
            leaves_traces = "TEMPORARY" in written.sql or "ENGINE=MERGE" in written.sql
            if "noexec" not in written.flags and not leaves_traces:
                yield written


def _execute(twin: Twin, sql: str, context: ServerContext) -> bool:
    try:
        return twin.execute(sql, context)
    except (ShardMergeError, AssertionError, KeyError):
        return True  # The server took it; what the tracker says of it is not measured here.


def _keep_texts(found: Inputs, twin: Twin) -> None:
    columns = server_columns(twin)
    for key, sql in twin.shown().items():
        found.shown[sql] = columns[key]
    for key, schema in twin.tracked.items():
        sql = create_table(schema, quote_identifier(key[1]))
        found.rendered[sql] = tuple(column.name for column in schema.columns)


def server_columns(twin: Twin) -> Columns:
    """The names of all columns, in order, of the databases that the twin knows."""
    found: dict[Key, list[str]] = {}
    names = ", ".join(f"'{name}'" for name in DATABASES)
    for row in twin.query(
        "SELECT c.table_schema, c.table_name, c.column_name FROM information_schema.columns c"
        " JOIN information_schema.tables t USING (table_schema, table_name)"
        f" WHERE c.table_schema IN ({names}) AND t.table_type = 'BASE TABLE'"
        " ORDER BY c.table_schema, c.table_name, c.ordinal_position"
    ):
        found.setdefault((str(row[0]), str(row[1])), []).append(str(row[2]))
    return {key: tuple(columns) for key, columns in found.items()}


def _random(found: Inputs, twin: Twin, server: str, count: int) -> None:
    chance = random.Random(1)
    dialect = Dialect(twin.context.flavour, twin.context.version)
    taken = since = 0
    while taken < count:
        if since % _ROUND == 0:
            twin.reset([PARENT_SQL])
        since += 1
        tables = {name: schema for (_, name), schema in twin.tracked.items()}
        sql = statement(chance, dialect, tables)
        before = tuple(text for (database, _), text in twin.shown().items() if database == HOME)
        if _execute(twin, sql, twin.context):
            taken += 1
            after = server_columns(twin)
            found.random.append(Case(server, before, sql, twin.context, after))
            twin.adopt()
            _keep_texts(found, twin)


def legal_ways(port: int, words: Iterable[str]) -> set[tuple[str, str]]:
    """The ways of ``WAYS`` in which a server takes each word without quotes: (way, word)."""
    twin = Twin(port)
    twin.reset(["CREATE TABLE w (id_ INT NOT NULL PRIMARY KEY, z_ INT)"])
    found = set()
    for word in words:
        twin.query("DROP TABLE IF EXISTS w")
        for way, (_, sql, _) in WAYS.items():
            # Prepared only: that finds the syntax's faults, which are what a name can have.
            text = sql.format(w=word).replace("'", "''")
            if twin.is_taken(f"PREPARE s FROM '{text}'"):
                found.add((way, word))
    twin.close()
    return found


def server_words(port: int) -> set[str]:
    """The keywords that a server lists of itself; none where it does not."""
    twin = Twin(port)
    try:
        rows = twin.query("SELECT word FROM information_schema.keywords")
    except pymysql.MySQLError:
        return set()  # MySQL 5.7 has no list.
    finally:
        twin.close()
    return {str(row[0]).lower() for row in rows if str(row[0]).replace("_", "").isalnum()}
