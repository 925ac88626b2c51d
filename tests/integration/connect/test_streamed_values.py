"""What a row of the binlog becomes under the definition of its column that DDL gave.

Debezium's own parser and converters, with our jar beside them, without a server.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from shardmerge.schemas.model.types import ColumnType
from shardmerge.spark_sink.rows.values.readers import reader

from .java_mains import JavaMain

CONNECTORS: dict[str, Sequence[str]] = {"mysql": (), "mariadb": ("flavour=mariadb",)}


class Streamed:
    """Debezium's reading of the values of one column ``c``, for servers of one kind."""

    def __init__(self, connector: str, folder: Path, properties: Sequence[str] = ()) -> None:
        arguments = (connector, *CONNECTORS[connector], *properties)
        self._main = JavaMain("StreamedValues", folder, connector, arguments)
        self.connector = connector

    def written(self, values: Sequence[tuple[str, str]]) -> list[str]:
        """What is written for each pair of a value and the statements that made its table."""
        told = self._main.told([f"{value}\t{statements}" for value, statements in values])
        return [line.removeprefix("c = ") for line in told if line.startswith("c = ")]

    def of_columns(self, values: Sequence[tuple[str, str]]) -> list[str]:
        """The same for pairs of a value and a definition of ``c`` in CREATE TABLE."""
        table = "CREATE TABLE t (id INT, d INT, c {})"
        return self.written([(value, table.format(definition)) for value, definition in values])

    def json(self, texts: Sequence[str]) -> list[str]:
        """What is written for texts in a JSON column; they come as bytes."""
        written = self.of_columns([(f"hex:{text.encode().hex()}", "JSON") for text in texts])
        return [line.replace("\\n", "\n").replace("\\r", "\r") for line in written]


@pytest.fixture(scope="module", params=CONNECTORS)
def streamed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Streamed:
    return Streamed(request.param, tmp_path_factory.mktemp(f"streamed-{request.param}"))


NULLABLE = (
    "INT CHECK (c IS NOT NULL OR d > 5)",
    "INT DEFAULT NULL CHECK (c > 5 OR d IS NOT NULL)",
    "VARCHAR(10) DEFAULT (IF(d IS NOT NULL, 'a', 'b'))",
    "INT DEFAULT (CASE WHEN d IS NOT NULL THEN 1 END)",
    "DOUBLE AS (CASE WHEN d IS NOT NULL THEN d / 2 END) STORED",
    "DATE CHECK (c IS NOT NULL OR d > 5)",
    "DATETIME(6) CHECK (c IS NOT NULL OR d > 5)",
    "TIMESTAMP NULL CHECK (c IS NOT NULL OR d > 5)",
    "ENUM('a','b') CHECK (c IS NOT NULL OR d > 5)",
    "JSON CHECK (c IS NOT NULL OR d > 5)",
    "BIGINT UNSIGNED CHECK (c IS NOT NULL OR d > 5)",
)


def test_a_condition_in_a_columns_definition_leaves_its_null_as_it_is(streamed: Streamed) -> None:
    """It became 0, '' or a zero date, or stopped the source."""
    null = [("null", definition) for definition in NULLABLE]
    assert streamed.of_columns(null) == ["null"] * len(null)


def test_a_condition_in_an_added_or_changed_column_leaves_its_null(streamed: Streamed) -> None:
    alters = ("ADD c DATE CHECK (c IS NOT NULL OR d > 5)", "CHANGE d c INT CHECK (c IS NOT NULL)")
    table = "CREATE TABLE t (id INT, d INT)"
    null = [("null", f"{table};;ALTER TABLE t {alter}") for alter in alters]
    assert streamed.written(null) == ["null", "null"]


def test_a_condition_does_not_hide_that_a_column_is_not_null(streamed: Streamed) -> None:
    """Debezium tells that a row's zero date is not NULL by the column alone."""
    date = ("DATE NOT NULL CHECK (d IS NULL)", "DATE CHECK (d IS NULL) NOT NULL")
    zero = [("null", definition) for definition in date]
    assert streamed.of_columns(zero) == ["-100000000"] * len(zero)


JSON_TEXTS = ("\n[1]", "\t{}", '\r\n{"a": 1}', '\n  {\n  "a": 1\n}', ' {"ä": 1}')


@pytest.fixture(scope="module")
def mariadb(tmp_path_factory: pytest.TempPathFactory) -> Streamed:
    return Streamed("mariadb", tmp_path_factory.mktemp("mariadb"))


def test_json_of_mariadb_may_begin_with_a_line_break(mariadb: Streamed) -> None:
    """It is text there. MySQL's binary form begins with a byte below that of a blank."""
    assert mariadb.json(JSON_TEXTS) == list(JSON_TEXTS)


BINARY_TEXTS = (
    "CHARACTER(4)",
    "CHARACTER VARYING(4)",
    "CHAR(4)",
    "CHAR VARYING(4)",
    "VARCHAR(4)",
    "LONG",
    "LONG VARCHAR",
    "TINYTEXT",
    "TEXT",
    "MEDIUMTEXT",
    "LONGTEXT",
)

FIXED = ("CHARACTER(4)", "CHAR(4)")
"""A binlog leaves zeros at their ends out. A snapshot has them."""


def test_bytes_of_charset_binary_arrive_however_the_type_is_spelled(streamed: Streamed) -> None:
    """Of CHARACTER and LONG they were written as text of latin1."""
    of_column = [f"CREATE TABLE t (c {kind} CHARACTER SET binary)" for kind in BINARY_TEXTS]
    of_table = [f"CREATE TABLE t (c {kind}) CHARACTER SET binary" for kind in BINARY_TEXTS]
    bytes_of = [("hex:ff0061", table) for table in (*of_column, *of_table)]
    padded = ["/wBhAA==" if kind in FIXED else "/wBh" for kind in BINARY_TEXTS]
    assert streamed.written(bytes_of) == [*padded, *padded]


SPELLINGS = (
    ("int:1", "ENUM('a','b') BINARY", "a"),
    ("int:2", "ENUM('a','b') BINARY CHARACTER SET latin1", "b"),
    ("long:3", "SET('a','b') BINARY", "a,b"),
    ("float:0.5", "FLOAT SIGNED", "0.5"),
    ("double:0.1", "FLOAT(30) SIGNED", "0.1"),
    ("float:0.5", "FLOAT SIGNED ZEROFILL", "0.5"),
    ("double:0.1", "DOUBLE SIGNED", "0.1"),
    ("int:-1", "INT SIGNED", "-1"),
    ("int:-1", "TINYINT(1) SIGNED", "-1"),
    ("long:-1", "BIGINT SIGNED", "-1"),
    ("int:-1", "INT UNSIGNED SIGNED", "4294967295"),
    ("hex:61", "VARCHAR(4) BINARY", "a"),
    ("int:1", "ENUM('a','b') CHARACTER SET latin1 BINARY", "a"),
    ("int:2", "ENUM('a','b') ASCII NOT NULL", "b"),
    ("long:3", "SET('a','b') UNICODE BINARY", "a,b"),
    ("hex:ff", "CHAR(3) BYTE", "/wAA"),
    ("hex:", "CHAR BYTE", "AA=="),
    ("hex:e4", "CHAR ASCII", "ä"),
    ("hex:", "VARCHARACTER(4) BYTE", ""),
    ("int:2020", "YEAR UNSIGNED", "2020"),
    ("int:2020", "YEAR(4) UNSIGNED ZEROFILL NOT NULL", "2020"),
    ("int:2020", "YEAR SIGNED", "2020"),
    ("int:5", "INT(4.5)", "5"),
    ("hex:61", "VARCHAR(19.5)", "a"),
    ("hex:61", "NCHAR VARCHARACTER(4)", "a"),
    ("hex:61", "NATIONAL VARCHARACTER(4) BINARY", "a"),
    ("int:1", "INT CHECK (date > DATE '2020-01-01' OR time < TIME'10:00')", "1"),
    ("int:1", "INT AS (TIMESTAMP('2020-01-01') > TIMESTAMP '2020-01-01 00:00:00') STORED", "1"),
    ("int:1", "INT CONSTRAINT k REFERENCES o (id)", "1"),
    ("int:1", "INT CONSTRAINT REFERENCES o (id)", "1"),
    ("int:1", "INT, CONSTRAINT k FOREIGN KEY (c) REFERENCES o (id)", "1"),
)


def test_words_of_a_type_that_change_no_value_do_not_stop_the_source(streamed: Streamed) -> None:
    """BINARY is a collation, SIGNED is what a number is without it."""
    told = streamed.of_columns([(value, definition) for value, definition, _ in SPELLINGS])
    assert told == [written for _, _, written in SPELLINGS]


TEXTS = (
    "CHAR(3)",
    "CHARACTER(3)",
    "VARCHAR(4)",
    "VARCHARACTER(4)",
    "varcharacter (4)",
    "CHAR VARYING(4)",
    "CHARACTER/**/VARYING(4)",
    "TINYTEXT",
    "TEXT",
    "TEXT(9)",
    "MEDIUMTEXT",
    "LONGTEXT",
    "LONG",
    "LONG VARCHAR",
    "LONG VARCHARACTER",
    "LONG CHAR VARYING",
    "LONG CHARACTER VARYING",
)
WORDS = (
    ("hex:c3a4", "", "ä"),
    ("hex:c3a4", "BINARY", "ä"),
    ("hex:e4", "ASCII", "ä"),
    ("hex:e4", "ascii BINARY NOT NULL", "ä"),
    ("hex:e4", "BINARY ASCII COMMENT 'ASCII'", "ä"),
    ("hex:00e4", "UNICODE", "ä"),
    ("hex:00e4", "UNICODE BINARY", "ä"),
    ("hex:00e4", "BINARY UNICODE", "ä"),
    ("hex:ff0061", "BYTE", "/wBh"),
    ("hex:e4", "CHARACTER SET latin1 BINARY", "ä"),
    ("hex:e4", "BINARY CHARSET latin1 NOT NULL", "ä"),
    ("hex:e4", "BINARY CHAR SET latin1 COLLATE latin1_bin", "ä"),
    ("hex:e4", "ASCII COLLATE latin1_bin", "ä"),
    ("hex:ff0061", "CHARACTER SET binary", "/wBh"),
    ("hex:61", "CHARACTER SET ascii", "a"),
)


def test_every_spelling_of_a_type_of_text_is_read(streamed: Streamed) -> None:
    """Servers take these words, and store the types without them."""
    columns = [(raw, f"{kind} {word}", text) for kind in TEXTS for raw, word, text in WORDS]
    told = streamed.of_columns([(value, definition) for value, definition, _ in columns])
    wrong = [
        (definition, found)
        for (_, definition, text), found in zip(columns, told, strict=True)
        if found != text
    ]
    assert wrong == []


NAMES = (
    "(text INT);;ALTER TABLE t CHANGE text ascii INT;;ALTER TABLE t CHANGE ascii c INT",
    "(text INT);;ALTER TABLE t CHANGE COLUMN text byte INT;;ALTER TABLE t CHANGE byte c INT",
    "(year INT);;ALTER TABLE t CHANGE year signed INT;;ALTER TABLE t CHANGE signed c INT",
    "(`VARCHARACTER` INT);;ALTER TABLE t CHANGE `VARCHARACTER` c INT",
    "(unicode TEXT UNICODE, ascii TEXT ASCII, byte INT);;ALTER TABLE t CHANGE byte c INT",
    "(a INT COMMENT 'TEXT BYTE', `𝄞` CHAR(4) BYTE, d INT);;ALTER TABLE t CHANGE `d` c INT",
    "(`a\"` TEXT /* 'TEXT */ ASCII, `TEXT byte` INT);;ALTER TABLE t CHANGE `TEXT byte` c INT",
)


def test_names_are_not_taken_for_words_of_a_type(streamed: Streamed) -> None:
    """Columns with such names are found by their names when a statement changes them."""
    told = streamed.written([("int:7", f"CREATE TABLE t {sql}") for sql in NAMES])
    assert told == ["7"] * len(NAMES)


ELEMENTS = (
    ("ENUM('a\"b','c')", 'a"b'),
    ('ENUM("a""b",\'c\')', 'a"b'),
    ("ENUM('a\\\"b','c')", 'a"b'),
    ("ENUM('a''b','c')", "a'b"),
    ("ENUM(\"a'b\",'c')", "a'b"),
    ("ENUM('a\\'b','c')", "a'b"),
    ("ENUM('a''''b','c')", "a''b"),
    ("ENUM(\"a''b\",'c')", "a''b"),
    ('ENUM("a""""b",\'c\')', 'a""b'),
    ("ENUM('a,b','c')", "a,b"),
    ("ENUM(\"a,''b\",'c')", "a,''b"),
    ("ENUM('a\\\\b','c')", "a\\b"),
    ("ENUM('a\\\\,b','c')", "a\\,b"),
    ("ENUM('a\\nb','c')", "a\nb"),
)


def test_the_sink_finds_an_element_however_a_statement_spelled_it(streamed: Streamed) -> None:
    told = streamed.of_columns([("int:1", definition) for definition, _ in ELEMENTS])
    found = [
        reader(ColumnType("enum", elements=(element, "c"), charset="utf8mb4")).read([text])[0]
        for text, (_, element) in zip(told, ELEMENTS, strict=True)
    ]
    assert found == [element for _, element in ELEMENTS]
