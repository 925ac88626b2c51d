from __future__ import annotations

from dataclasses import replace
from typing import Any

import pymysql
import pytest

from shardmerge.schemas.model.errors import StackError
from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.model.position import SourcePosition
from shardmerge.schemas.pipeline.settings import Source
from shardmerge.spark_sink.sources import table_reader
from shardmerge.spark_sink.sources.table_reader import TableReader

SHARD = ShardId("s1", "app", "t")
SOURCE = Source("s1", "h", 1, "u", "p", 1, epoch=3)
LOGS = (("binlog.000001", "90"), ("binlog.000002", "77"))
ANSWERS: dict[str, Any] = {
    "SHOW CREATE": (("t", "CREATE TABLE `t` (`id` int NOT NULL, PRIMARY KEY (`id`))"),),
    "SHOW BINARY": LOGS,
    "SELECT TABLE_ROWS": ((None, "16384"),),
    "SELECT `id`": (("1",), ("2",)),
}


class Server:
    """Answers by the beginning of a statement; an exception is raised."""

    def __init__(self) -> None:
        self.answers = dict(ANSWERS)
        self.said: list[str] = []
        self.options: list[dict[str, Any]] = []
        self.open = True

    def connect(self, source: Source, **options: Any) -> Server:
        self.options.append(options)
        self.open = True
        return self

    def cursor(self, kind: Any = None) -> Any:
        return self if kind is None else Streaming(self)

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None: ...

    def execute(self, sql: str) -> None:
        self.said.append(sql)

    def fetchall(self) -> Any:
        found = next(
            (a for start, a in self.answers.items() if self.said[-1].startswith(start)), ()
        )
        if isinstance(found, Exception):
            raise found
        return found

    def rollback(self) -> None:
        self.said.append("ROLLBACK")

    def close(self) -> None:
        self.open = False


class Streaming:
    """A cursor that gets its rows one by one."""

    def __init__(self, server: Server) -> None:
        self.server, self.sent = server, 0

    def execute(self, sql: str) -> None:
        self.server.execute(sql)

    def fetchone(self) -> Any:
        rows = self.server.fetchall()
        self.sent += 1
        return rows[self.sent - 1] if self.sent <= len(rows) else None

    def close(self) -> None: ...


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Server:
    found = Server()
    monkeypatch.setattr(table_reader, "connect", found.connect)
    return found


def test_a_chunks_transaction(server: Server) -> None:
    reader = TableReader(SOURCE)
    reader.begin()
    table = reader.table(SHARD)
    assert table is not None and [c.name for c in table.columns] == ["id"]
    assert reader.rows("SELECT `id` FROM `app`.`t`", 7) == (("1",), ("2",))
    reader.end()
    assert server.said[4:] == [
        "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY",
        "SELECT 1 FROM `app`.`t` LIMIT 0",
        "SHOW CREATE TABLE `app`.`t`",
        "SELECT `id` FROM `app`.`t` LIMIT 7",
        "ROLLBACK",
    ]
    assert server.said[0] == "SET SESSION autocommit = 1"
    # PyMySQL converts nothing.
    assert [o["conv"] for o in server.options] == [{}]


def test_the_end_of_the_binlog_has_the_sources_epoch(server: Server) -> None:
    assert TableReader(SOURCE).binlog_end() == SourcePosition(3, "binlog.000002", 77, 0)
    server.answers["SHOW BINARY"] = ()
    with pytest.raises(StackError, match="writes no binlog"):
        TableReader(SOURCE).binlog_end()


def test_a_table_that_is_not_there_is_no_error(server: Server) -> None:
    server.answers["SELECT 1 FROM"] = pymysql.ProgrammingError(1146, "no such table")
    assert TableReader(SOURCE).table(SHARD) is None


def test_rows_of_a_table_that_is_not_there_can_be_asked_for_again(server: Server) -> None:
    server.answers["SELECT `id`"] = pymysql.ProgrammingError(1146, "Table 'app.t' doesn't exist")
    with pytest.raises(StackError, match=r"source s1.*doesn't exist \[1146\]") as raised:
        TableReader(SOURCE).rows("SELECT `id`", 1)
    assert raised.value.code == "SM-4409"


def test_estimates_may_be_missing(server: Server) -> None:
    assert TableReader(SOURCE).statistics(SHARD) == (0, 16384)
    server.answers["SELECT TABLE_ROWS"] = ()
    assert TableReader(SOURCE).statistics(SHARD) == (0, 0)


@pytest.mark.parametrize(("number", "code"), [(1412, "SM-4409"), (1045, "SM-4406")])
def test_a_refusal_ends_the_connection_and_names_the_source(
    server: Server, number: int, code: str
) -> None:
    server.answers["SELECT `id`"] = pymysql.OperationalError(number, "not now")
    reader = TableReader(SOURCE)
    with pytest.raises(StackError, match=r"source s1.*not now") as raised:
        reader.rows("SELECT `id`", 1)
    assert raised.value.code == code
    assert not server.open
    del server.answers["SELECT `id`"]
    reader.rows("SELECT `id`", 1)
    assert len(server.options) == 2


def test_rows_of_a_whole_table_come_in_parts(server: Server) -> None:
    server.answers["SELECT `id`"] = (("1",), ("22",), (None,), ("4444",), ("5",))
    reader = TableReader(SOURCE)
    assert [len(part) for part in reader.parts("SELECT `id`", 2, 99)] == [2, 2, 1]
    assert server.open
    assert [len(part) for part in reader.parts("SELECT `id`", 99, 3)] == [2, 2, 1]


def test_a_reader_that_is_left_early_is_closed(server: Server) -> None:
    server.answers["SELECT `id`"] = (("1",), ("2",), ("3",))
    reader = TableReader(SOURCE)
    parts = reader.parts("SELECT `id`", 1, 99)
    assert next(parts) == [("1",)]
    parts.close()
    assert not server.open


def test_a_long_read_has_its_own_limit(server: Server) -> None:
    TableReader(SOURCE).read_for(30)
    assert server.said[-1] == "SET SESSION max_execution_time = 30000, net_write_timeout = 600"
    TableReader(replace(SOURCE, flavour="mariadb")).read_for(0)
    assert server.said[-1] == "SET SESSION max_statement_time = 0, net_write_timeout = 600"
