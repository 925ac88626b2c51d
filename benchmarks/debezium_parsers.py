"""Which Debezium understands the DDL of MySQL: every version that can be had, each of its grammars.

    python -m benchmarks.debezium_parsers [--versions 3.6.1.Final …] [--random 300]

The statements are those that real servers took (MySQL 8.0, 9.7 and 5.7), and each parser's columns
are compared with the server's. A line per version and grammar tells how many

* statements of the corpus, words and random statements it refuses: a connector stops there;
* statements it takes and then has other columns than the server: worse, rows are read wrongly;
* texts it hands on that say something else than the statement (as our grammar reads both);
* texts of SHOW CREATE TABLE (a snapshot reads them) and of our renderer (a repair writes them) it
  refuses, or reads with other columns.

``--details FILE`` gets each of them with the parser's words. What cannot be fetched is told.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tarfile
import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.parser_inputs import WAYS, Case, Inputs, ask_server, legal_ways, server_words
from benchmarks.parser_jvm import Parser, parsers
from shardmerge.local.install.artifacts import DEFAULT_CACHE, find_java, resolve, retrieve
from shardmerge.local.servers.other_versions import running_server
from shardmerge.schemas.ddl.changes import CreateTable
from shardmerge.schemas.ddl.grammar import ServerContext, parse
from shardmerge.schemas.model.errors import ShardMergeError, StackError
from shardmerge.schemas.model.names import quote_identifier
from tests.integration.mysql.fuzz import data_directory, free_port
from tests.integration.mysql.twin import HOME

VERSIONS = (
    "2.7.4.Final", "3.0.8.Final", "3.1.3.Final", "3.2.7.Final", "3.3.2.Final", "3.4.0.Final",
    "3.5.0.Final", "3.6.0.Final", "3.6.1.Final", "3.6.2.Final", "3.6.3.Final", "3.7.0.Alpha2",
    "3.7.0.Final", "3.7.1.Final",
)  # fmt: skip
SERVERS = ("mysql80", "mysql97", "mysql57")
FOLDER = Path(".local/parsers")
_IVY = """\
<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">
  <info organisation="shardmerge" module="parsers" revision="1"/>
  <configurations><conf name="plugin"/></configurations>
  <dependencies>
    <dependency org="io.debezium" name="debezium-connector-mysql" rev="{version}"
        conf="plugin->master(*)" transitive="false">
      <artifact name="debezium-connector-mysql" type="tar.gz" ext="tar.gz" m:classifier="plugin"/>
    </dependency>
  </dependencies>
</ivy-module>
"""
_W = "CREATE TABLE w (id_ INT NOT NULL PRIMARY KEY, {column}z_ INT)"


@dataclass(slots=True)
class Score:
    """What one grammar of one version did.

    Attributes:
        counts: By kind of input and outcome.
        asked: The words that a server takes, by server.
        words: Those that it refuses in at least one way, by server.
        lines: Each finding, for ``--details``.
    """

    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    asked: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    words: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    lines: list[str] = field(default_factory=list)

    def cell(self, kind: str) -> str:
        """The counts of one kind of input, as the table shows them."""
        outcomes = ("refused", "wrong", "other text", "asked")
        return "/".join(str(self.counts[kind, outcome]) for outcome in outcomes)

    def found(self, kind: str, outcome: str, text: str) -> None:
        """Count one finding, and keep it."""
        self.counts[kind, outcome] += 1
        self.lines.append(f"{kind} {outcome}: {' '.join(text.split())}")


def fetch(version: str) -> Path | None:
    """The folder of a version's jars; None where it cannot be had."""
    home = FOLDER / version / "plugin"
    if not home.exists():
        ivy_file = FOLDER / f"ivy-{version}.xml"
        ivy_file.write_text(_IVY.format(version=version))
        retrieved = FOLDER.absolute() / version / "retrieved"
        try:
            retrieve(ivy_file, retrieved, DEFAULT_CACHE.absolute(), find_java(), lambda _: None)
        except StackError:
            return None
        partial = home.with_name("unpacked")
        with tarfile.open(next(retrieved.rglob("*.tar.gz"))) as archive:
            archive.extractall(partial, filter="data")
        shutil.rmtree(retrieved)
        partial.rename(home)
    return home


def ask_servers(vocabulary: set[str], random_statements: int) -> Inputs:
    """Start each server once and ask it everything."""
    found = Inputs()
    for server in SERVERS:
        directory = data_directory(FOLDER)
        try:
            with running_server(server, directory, free_port(), say=_say) as running:
                ask_server(
                    found, running.port, server, random_statements if server != "mysql57" else 0
                )
                words = sorted(vocabulary | server_words(running.port))
                for way in legal_ways(running.port, words):
                    found.words.setdefault(way, []).append(server)
        finally:
            shutil.rmtree(directory, ignore_errors=True)
    return found


def measure(parser: Parser, inputs: Inputs, *, words: bool) -> Score:
    """Put everything through one parser; the words, which take longest, only if asked to."""
    score = Score()
    for kind, cases in (
        ("corpus", inputs.corpus), ("stopped", inputs.stopped), ("random", inputs.random),
    ):  # fmt: skip
        _statements(parser, kind, cases, score)
    for kind, texts in (("shown", inputs.shown), ("rendered", inputs.rendered)):
        _tables(parser, kind, texts, score)
    if words:
        _words(parser, inputs.words, score)
    return score


def _statements(parser: Parser, kind: str, cases: Sequence[Case], score: Score) -> None:
    made: dict[tuple[str, ...], object] = {}
    for case in cases:
        if case.setup not in made:
            parser.go_back()
            refused = [sql for sql in case.setup if parser.parse(sql, HOME).refused]
            for sql in refused:
                score.found(kind, "setup refused", sql)
            made[case.setup] = parser.remember()
        parser.go_back(made[case.setup])
        parser.set_mode("ANSI_QUOTES" if case.context.ansi_quotes else "")
        _statement(parser, kind, case, score)


def _statement(parser: Parser, kind: str, case: Case, score: Score) -> None:
    score.counts[kind, "asked"] += 1
    parsed = parser.parse(case.sql, HOME)
    if parsed.refused:
        score.found(kind, "refused", f"{case.sql} -- {parsed.refused}")
        return
    if len(parsed.texts) == 1 and not _says_the_same(case.sql, parsed.texts[0], case.context):
        score.found(kind, "other text", f"{case.sql} -- {parsed.texts[0]}")
    if case.columns is None:
        return
    if unreadable := parser.wrong_defaults(case.columns):
        score.found(kind, "refused", f"{case.sql} -- {unreadable}")
        return
    known = parser.columns(case.columns)
    for key, columns in case.columns.items():
        if known.get(key) != columns:
            score.found(kind, "wrong", f"{case.sql} -- {key}: {columns}, not {known.get(key)}")
            return


def _says_the_same(sql: str, text: str, context: ServerContext) -> bool:
    # Debezium writes DROP TABLE anew, by design: one for each table.
    if sql == text or text.startswith("DROP TABLE "):
        return True
    try:
        expected = parse(sql, context)
    except ShardMergeError:
        return sql.split() == text.split()
    try:
        return parse(text, context) == expected
    except ShardMergeError:
        return False


def _tables(parser: Parser, kind: str, texts: Mapping[str, tuple[str, ...]], score: Score) -> None:
    for sql, columns in texts.items():
        score.counts[kind, "asked"] += 1
        parser.go_back()
        parsed = parser.parse(sql, HOME)
        statement = parse(sql, ServerContext(default_database=HOME))
        assert isinstance(statement, CreateTable)
        key = (HOME, statement.name.table)
        if parsed.refused:
            score.found(kind, "refused", f"{sql} -- {parsed.refused}")
        elif unreadable := parser.wrong_defaults([key]):
            score.found(kind, "refused", f"{sql} -- {unreadable}")
        elif (known := parser.columns([key]).get(key)) != columns:
            score.found(kind, "wrong", f"{sql} -- {columns}, not {known}")


def _words(parser: Parser, words: Mapping[tuple[str, str], Sequence[str]], score: Score) -> None:
    key = (HOME, "w")
    tables: dict[str, object] = {}
    last = ""
    for way, word in sorted(words, key=lambda pair: pair[::-1]):
        score.counts["words", "asked"] += 1
        for server in words[way, word]:
            score.asked[server].add(word)
        before, sql, after = WAYS[way]
        if word != last:
            tables, last = {"": None}, word
        creates = sql.startswith("CREATE TABLE")
        if not creates and f"{before}w" not in tables:
            parser.go_back()
            column = f"{quote_identifier(word)} INT, " if before else ""
            if parser.parse(_W.format(column=column), HOME).refused:
                score.found("quoted words", "refused", word)
            tables[f"{before}w"] = parser.remember()
        parser.go_back(tables["" if creates else f"{before}w"])
        parsed = parser.parse(sql.format(w=word), HOME)
        expected = tuple(name.format(w=word) for name in after)
        if parsed.refused:
            for server in words[way, word]:
                score.words[server].add(word)
            score.found("words", "refused", f"{sql.format(w=word)} -- {parsed.refused}")
        elif (known := parser.columns([key]).get(key)) != expected:
            score.found("words", "wrong", f"{sql.format(w=word)} -- {expected}, not {known}")


def print_table(scores: Mapping[str, Score]) -> None:
    """One line per version and grammar."""
    kinds = ("corpus", "stopped", "random", "shown", "rendered")
    head = [
        "version, grammar", *(f"{kind} refused/wrong/other text/of" for kind in kinds),
        *(f"words of {server} refused/of" for server in SERVERS),
        "ways refused/wrong/other text/of", "quoted words refused",
    ]  # fmt: skip
    print("| " + " | ".join(head) + " |\n|" + "---|" * len(head))
    for version, score in scores.items():
        cells = [score.cell(kind) for kind in kinds]
        cells += [f"{len(score.words[name])}/{len(score.asked[name])}" for name in SERVERS]
        cells += [score.cell("words"), str(score.counts["quoted words", "refused"])]
        print(f"| {version} | " + " | ".join(cells) + " |", flush=True)


def main() -> int:
    """Fetch, ask, print."""
    options = argparse.ArgumentParser(description="Debezium's DDL parsers beside real servers.")
    options.add_argument("--versions", nargs="+", default=VERSIONS)
    options.add_argument("--random", type=int, default=300, help="random statements per server")
    options.add_argument("--details", type=Path, default=FOLDER / "details.txt")
    options.add_argument("--words", action=argparse.BooleanOptionalAction, default=True)
    given = options.parse_args()
    FOLDER.mkdir(parents=True, exist_ok=True)
    kafka = sorted(resolve(say=_say).kafka_jars.glob("*.jar"))
    jars: dict[str, list[Path]] = {}
    for version in given.versions:
        home = fetch(version)
        _say(f"{version}: {'cannot be had' if home is None else 'here'}")
        if home is not None:
            jars[version] = [*sorted(home.rglob("*.jar")), *kafka]
    vocabulary: set[str] = set()
    for paths in jars.values():
        with parsers(paths) as found:
            vocabulary.update(word for parser in found for word in parser.vocabulary())
    started = time.monotonic()
    inputs = ask_servers(vocabulary, given.random)
    _say(f"asked the servers in {time.monotonic() - started:.0f} s")
    scores: dict[str, Score] = {}
    for version, paths in jars.items():
        with parsers(paths) as found:
            for parser in found:
                started = time.monotonic()
                name = f"{version}, {parser.name}" if len(found) > 1 else version
                scores[name] = measure(parser, inputs, words=given.words)
                _say(f"{name}: {time.monotonic() - started:.0f} s")
    given.details.write_text(
        "".join(f"{name}: {line}\n" for name, score in scores.items() for line in score.lines)
    )
    print_table(scores)
    for name, score in scores.items():
        for server, words in score.words.items():
            print(f"{name}: words of {server} refused: {' '.join(sorted(words))}")
    return 0


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
