"""What a stack trace tells; the traces are Debezium's, measured on 3.6.1 and cut short."""

from __future__ import annotations

import pytest

from shardmerge.connectors.repair.diagnosis.failures import FailedAt, Failure, failure_of

HEAD = """\
org.apache.kafka.connect.errors.ConnectException: An exception occurred in the change event \
producer. This connector will be stopped.
\tat io.debezium.pipeline.ErrorHandler.setProducerThrowable(ErrorHandler.java:67)
\tat io.debezium.connector.binlog.BinlogStreamingChangeEventSource.handleEvent(\
BinlogStreamingChangeEventSource.java:638)
\tat java.base/java.lang.Thread.run(Thread.java:840)
Caused by: io.debezium.DebeziumException: Error processing binlog event
\t... 8 more
"""
TAIL = """\
\tat io.debezium.connector.binlog.BinlogDatabaseSchema.parseStreamingDdl(\
BinlogDatabaseSchema.java:263)
\tat io.debezium.connector.binlog.BinlogStreamingChangeEventSource.handleQueryEvent(\
BinlogStreamingChangeEventSource.java:787)
\t... 7 more
Caused by: org.antlr.v4.runtime.InputMismatchException
\tat org.antlr.v4.runtime.DefaultErrorStrategy.sync(DefaultErrorStrategy.java:270)
\t... 22 more
"""
ROWS = """\
\tat io.debezium.connector.binlog.BinlogStreamingChangeEventSource.handleChange(\
BinlogStreamingChangeEventSource.java:1130)
\t... 7 more
"""


def unparsed(sql: str, why: str = "mismatched input 'url' expecting {'(', ACCOUNT_SYMBOL}") -> str:
    return (
        "io.debezium.text.ParsingException: DDL statement couldn't be parsed. Please open a GitHub "
        f"issue at https://github.com/debezium/dbz/issues with the statement '{sql}'\n{why}\n"
    )


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE TABLE t1 (id INT PRIMARY KEY, n INT, url VARCHAR(20))",
        "ALTER TABLE t2\n  ADD COLUMN url\tVARCHAR(20)",
        "ALTER TABLE t ADD url VARCHAR(20) DEFAULT 'it''s' COMMENT '\\''",
        "CREATE TABLE t (\n  url INT,\n  a CHAR(1) DEFAULT 'x'\n) COMMENT 'y'\nPARTITION BY KEY ()",
        "ALTER TABLE t ADD url INT COMMENT 'with the statement ''x''\n'",
    ],
)
@pytest.mark.parametrize(
    "why",
    [
        "mismatched input 'url' expecting {'(', ACCOUNT_SYMBOL}",
        "no viable alternative at input 'CREATE TABLE t (\\n url'",
        "extraneous input 'url' expecting ')'",
        "missing ')' at 'url'",
        "token recognition error at: '\\'",
        "rule tableElement failed predicate: {this.is()}?",
    ],
)
def test_the_text_of_a_statement_that_cannot_be_read_is_told_whole(sql: str, why: str) -> None:
    trace = f"{HEAD}Caused by: {unparsed(sql, why)}{TAIL}"
    assert failure_of(trace) == Failure(FailedAt.STATEMENT, statement=sql)


def test_of_several_errors_in_a_statement_the_first_tells_it() -> None:
    sql = "ALTER TABLE t ADD url INT, ADD b INT DEFAULT 'x'\n"
    errors = unparsed(sql) + unparsed(sql, "extraneous input 'b' expecting ','")
    trace = f"{HEAD}Caused by: io.debezium.text.MultipleParsingExceptions: {errors}{TAIL}"
    assert failure_of(trace) == Failure(FailedAt.STATEMENT, statement=sql)


@pytest.mark.parametrize(
    "message",
    [
        "io.debezium.text.ParsingException: Trying to change column a in chaos4.t5 table, which "
        "does not exist. Query: RENAME COLUMN a TO c",
        "io.debezium.DebeziumException: io.debezium.DebeziumException: Failed to properly convert "
        "default value for 'chaos3.t3.flags' of type BIT",
        "java.lang.NullPointerException",
    ],
)
def test_a_statement_can_fail_without_its_text(message: str) -> None:
    assert failure_of(f"{HEAD}Caused by: {message}\n{TAIL}") == Failure(FailedAt.STATEMENT)


def test_a_text_that_ends_in_words_that_are_not_known_is_not_told() -> None:
    """Half a text would be looked for in vain; without one, the first unread statement counts."""
    trace = f"{HEAD}Caused by: {unparsed('ALTER TABLE t ADD url INT', 'something new')}{TAIL}"
    assert failure_of(trace) == Failure(FailedAt.STATEMENT)


@pytest.mark.parametrize(
    ("message", "table"),
    [
        ("Error processing row in t19, internal schema size 3, but row size 4 , restart connector "
         "with schema recovery mode.", "t19"),
        ("Encountered change event for table chaos3.t20 whose schema isn't known to this connector",
         "chaos3.t20"),
        ("Error processing row in größe, (x), internal schema size 3, but row size 4 ,",
         "größe, (x)"),
    ],
)  # fmt: skip
def test_a_row_of_a_table_that_is_known_otherwise_names_it(message: str, table: str) -> None:
    trace = f"{HEAD}Caused by: io.debezium.DebeziumException: {message}\n{ROWS}"
    assert failure_of(trace) == Failure(FailedAt.ROW, table=table)


@pytest.mark.parametrize(
    "trace",
    [
        "",
        f"{HEAD}Caused by: java.net.ConnectException: Connection refused\n{ROWS}",
        "org.apache.kafka.connect.errors.ConnectException: The connector is trying to read binlog "
        "starting at binlog file 'binlog.000001', but this is no longer available on the server.\n",
        "org.apache.kafka.common.errors.ProducerFencedException: There is a newer producer\n",
    ],
)
def test_other_failures_are_nothing_of_a_statement(trace: str) -> None:
    assert failure_of(trace) == Failure(FailedAt.OTHER)


@pytest.mark.parametrize(
    ("table", "name", "is_it"),
    [("t", "app.t", True), ("app.t", "app.t", True), ("t", "app.xt", False), ("t", "app.u", False),
     ("app.t", "other.t", False), ("b.t", "a.b.t", True)],
)  # fmt: skip
def test_a_row_is_of_a_table_by_its_name(table: str, name: str, is_it: bool) -> None:
    assert Failure(FailedAt.ROW, table=table).is_of_table(name) is is_it
