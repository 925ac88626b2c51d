"""Debezium's DDL parsers without a connector: a JVM of one version, driven through py4j.

A parser gets what the connector gives it when it streams: the current database, the text of one
statement, and the tables known so far. What it makes of them is read back.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyspark
from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway
from py4j.protocol import Py4JError, Py4JJavaError

_LEGACY = "io.debezium.connector.mysql.antlr.MySqlPtAntlrDdlParser"
_SEPARATOR = "\x1f"
Columns = dict[tuple[str, str], tuple[str, ...]]
"""Names of columns, in order, by database and table."""


@dataclass(frozen=True, slots=True)
class Parsed:
    """What a parser made of one statement.

    Attributes:
        refused: Why it was refused; "" when it was not.
        texts: The texts of the events, as they become ``ddl``; none when there was no event.
    """

    refused: str
    texts: tuple[str, ...] = ()


class Parser:
    """One grammar of one version, with the tables that it knows."""

    def __init__(self, gateway: JavaGateway, name: str) -> None:
        self._jvm = gateway.jvm
        self.name = name
        self._include_all = self._jvm.io.debezium.relational.Tables.TableFilter.includeAll()
        self._tables = self._jvm.io.debezium.relational.Tables()
        events = self._jvm.java.lang.Class.forName("io.debezium.relational.ddl.DdlChanges")
        self._events = events.getDeclaredField("events")
        self._events.setAccessible(True)
        self._parser = self._new()
        self._defaults = self._default_values()

    def _default_values(self) -> Any:
        """What turns a default's text into a value, set up as ``source_config`` sets it up."""
        jvm = self._jvm
        config = jvm.io.debezium.config.Configuration.empty()
        services = jvm.io.debezium.connector.mysql.MySqlConnectorConfig(config).getServiceRegistry()
        mode = jvm.io.debezium.jdbc
        failing = jvm.io.debezium.config.CommonConnectorConfig.EventConvertingFailureHandlingMode
        package = jvm.io.debezium.connector.mysql.jdbc
        converters = package.MySqlValueConverters(
            mode.JdbcValueConverters.DecimalMode.STRING,
            mode.TemporalPrecisionMode.ADAPTIVE_TIME_MICROSECONDS,
            mode.JdbcValueConverters.BigIntUnsignedMode.PRECISE,
            jvm.io.debezium.config.CommonConnectorConfig.BinaryHandlingMode.BASE64,
            None, failing.FAIL, services,
        )  # fmt: skip
        return package.MySqlDefaultValueConverter(converters)

    def _new(self) -> Any:
        antlr = self._jvm.io.debezium.connector.mysql.antlr
        kind = antlr.MySqlPtAntlrDdlParser if self.name == "legacy" else antlr.MySqlAntlrDdlParser
        registry = self._jvm.io.debezium.connector.mysql.charset.MySqlCharsetRegistry()
        # Errors are thrown; views and comments are left out: as the connector makes it.
        choices = (True, False, False)
        try:
            return kind(*choices, self._include_all, registry)
        except Py4JError:
            return kind(*choices, None, self._include_all, registry)  # 2.7 has converters, too.

    def vocabulary(self) -> Iterator[str]:
        """The words that its lexer knows."""
        generated = "legacy" if self.name == "legacy" else "generated"
        package = getattr(self._jvm.io.debezium.ddl.parser.mysql, generated)
        names = package.MySqlLexer.VOCABULARY
        for number in range(1, names.getMaxTokenType() + 1):
            name = str(names.getSymbolicName(number) or "").removesuffix("_SYMBOL").lower()
            if re.fullmatch(r"[a-z_][a-z0-9_]*", name):
                yield name

    def remember(self) -> Any:
        """The tables as they are now, for ``go_back``."""
        return self._tables.clone()

    def go_back(self, tables: Any = None) -> None:
        """To remembered tables; None: to no tables. An ANSI mode of the server ends."""
        self._tables = tables.clone() if tables else self._jvm.io.debezium.relational.Tables()
        self.set_mode("")

    def set_mode(self, mode: str) -> None:
        """The server's ``sql_mode``, as the connector reads it when it starts."""
        scope = self._jvm.io.debezium.connector.binlog.jdbc.BinlogSystemVariables
        variables = self._parser.systemVariables()
        variables.setVariable(scope.BinlogScope.SESSION, "sql_mode", mode)

    def parse(self, sql: str, database: str) -> Parsed:
        """Hand one statement to the parser."""
        self._parser.setCurrentSchema(database)
        try:
            changes = self._parser.parse(sql, self._tables)
        except Py4JJavaError as error:
            # Events of what was understood before would come with the next statement.
            self._parser = self._new()
            return Parsed(_reason(error))
        # Up to 3.5 the parser keeps them until it is told to forget them.
        kept = self._parser.getDdlChanges() if changes is None else changes
        events = self._events.get(kept)
        texts = tuple(str(events.get(at).statement()) for at in range(events.size()))
        kept.reset()
        return Parsed("", texts)

    def wrong_defaults(self, keys: Iterable[tuple[str, str]]) -> str:
        """Which default of these tables the connector cannot read; "" when it reads all."""
        for database, table in keys:
            known = self._known(database, table)
            for column in () if known is None else known.columns():
                text = column.defaultValueExpression()
                if not text.isPresent():
                    continue
                try:
                    self._defaults.parseDefaultValue(column, text.get())
                except Py4JJavaError as error:
                    return f"default of {column.name()}: {_reason(error)}"
        return ""

    def _known(self, database: str, table: str) -> Any:
        table_id = self._jvm.io.debezium.relational.TableId(database, None, table)
        return self._tables.forTable(table_id)

    def columns(self, keys: Iterable[tuple[str, str]]) -> Columns:
        """The columns of the tables that it knows, of these names."""
        found: Columns = {}
        for database, table in keys:
            known = self._known(database, table)
            if known is not None:
                names = known.retrieveColumnNames()
                text = str(self._jvm.java.lang.String.join(_SEPARATOR, names))
                found[database, table] = tuple(text.split(_SEPARATOR)) if text else ()
        return found


def _reason(error: Py4JJavaError) -> str:
    text = str(error.java_exception.toString())
    return " ".join(text.split())[:300]


@contextmanager
def parsers(jars: Iterable[Path]) -> Iterator[list[Parser]]:
    """The parsers of one version: ``default``, and ``legacy`` where there is another grammar.

    Args:
        jars: The connector's, and Kafka's where the connector needs some.
    """
    class_path = ":".join(str(jar) for jar in jars)
    py4j = next((Path(pyspark.__file__).parent / "jars").glob("py4j-*.jar"))
    port = launch_gateway(
        jarpath=str(py4j), classpath=class_path, die_on_exit=True,
        javaopts=["-Xmx1g", "-Xss8m", "-XX:TieredStopAtLevel=4"],
    )  # fmt: skip
    gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port, auto_convert=True))
    try:
        found = [Parser(gateway, "default")]
        try:
            gateway.jvm.java.lang.Class.forName(_LEGACY)
        except Py4JJavaError:
            pass  # Before 3.6 there is one grammar.
        else:
            found.append(Parser(gateway, "legacy"))
        yield found
    finally:
        gateway.shutdown()
