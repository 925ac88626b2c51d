from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, cast

import pytest

from shardmerge.schemas.model.errors import StackError
from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.model.position import SourcePosition
from shardmerge.schemas.pipeline.settings import Source
from shardmerge.spark_sink.sources import table_snapshot
from shardmerge.spark_sink.sources.table_reader import TableReader
from shardmerge.spark_sink.sources.table_snapshot import TableSnapshot

SHARD = ShardId("s1", "app", "t")
SOURCE = Source("s1", "h", 1, "u", "p", 1)


def at(pos: int) -> SourcePosition:
    return SourcePosition(0, "binlog.000001", pos, 0)


class Server:
    """Its binlog ends at ``end``; each mark moves the end, and ``changes`` say what else came."""

    def __init__(self) -> None:
        self.end, self.said = 100, list[str]()
        self.changes: list[str] = []
        self.told: tuple[tuple[str, str], ...] = ()
        self.engine = "InnoDB"
        self.commit_order: tuple[tuple[str, str], ...] = (("binlog_order_commits", "ON"),)
        self.can_lock = True
        self.readers: list[Reader] = []

    def open(self, source: Source) -> TableReader:
        self.readers.append(Reader(self))
        return cast(TableReader, self.readers[-1])

    def mark(self, database: str, source: Source, name: str, message: str) -> None:
        self.said.append(f"mark {database}")
        self.end += 10


class Reader:
    def __init__(self, server: Server) -> None:
        self.server, self.open = server, True
        self.parted: list[Sequence[Sequence[Any]]] = []

    def query(self, sql: str) -> Sequence[Sequence[Any]]:
        server = self.server
        if sql.startswith("SELECT ENGINE"):
            return ((server.engine,),)
        if sql.startswith("SHOW GLOBAL VARIABLES"):
            return server.commit_order
        if sql.startswith("SHOW STATUS"):
            return server.told
        if sql.startswith("SHOW BINLOG EVENTS"):
            table = server.changes.pop(0) if server.changes else "other"
            begin = server.end - 10
            return (("f", begin, "Table_map", 1, server.end, f"table_id: 1 (app.{table})"),)
        server.said.append(sql)
        if sql.startswith("LOCK") and not server.can_lock:
            raise StackError("Access denied", code="SM-4409")
        return ()

    def read_for(self, seconds: int) -> None:
        self.server.said.append(f"for {seconds}")

    def wait_for_locks(self, seconds: int) -> None: ...

    def binlog_end(self) -> SourcePosition:
        return at(self.server.end)

    def begin(self) -> None:
        self.server.said.append("begin")

    def end(self) -> None:
        self.server.said.append("end")

    def parts(self, sql: str, most: int, size: int) -> Iterator[Sequence[Sequence[Any]]]:
        yield from self.parted

    def close(self) -> None:
        self.open = False


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Server:
    made = Server()
    monkeypatch.setattr(table_snapshot, "write_mark_into", made.mark)
    return made


def test_a_snapshot_of_a_quiet_table_needs_no_lock(server: Server) -> None:
    snapshot = TableSnapshot(SOURCE, "marks", server.open)
    assert snapshot.begin(SHARD) == at(110)
    assert server.said == ["for 3600", "mark marks", "begin"]


def test_it_is_tried_again_while_the_table_changes(server: Server) -> None:
    server.changes = ["t", "t"]
    assert TableSnapshot(SOURCE, "marks", server.open).begin(SHARD) == at(130)
    assert server.said[1:] == ["mark marks", "begin", "end"] * 2 + ["mark marks", "begin"]


def test_a_table_that_always_changes_is_locked_for_a_moment(server: Server) -> None:
    server.changes = ["t"] * 99
    assert TableSnapshot(SOURCE, "marks", server.open).begin(SHARD) == at(300)
    assert server.said[-2:] == ["LOCK TABLES `app`.`t` READ", "begin"]
    reading, locking = server.readers
    assert reading.open and not locking.open


def test_a_table_that_cannot_be_locked_is_told_with_what_to_do(server: Server) -> None:
    server.changes, server.can_lock = ["t"] * 99, False
    with pytest.raises(StackError, match=r"written to at each attempt.*Access denied") as raised:
        TableSnapshot(SOURCE, "marks", server.open).begin(SHARD)
    assert raised.value.code == "SM-1618"
    assert not server.readers[-1].open


def test_a_table_is_locked_at_once_where_commits_are_not_in_the_binlogs_order(
    server: Server,
) -> None:
    server.commit_order = (("binlog_order_commits", "OFF"),)
    assert TableSnapshot(SOURCE, "marks", server.open).begin(SHARD) == at(100)
    assert server.said[1:] == ["LOCK TABLES `app`.`t` READ", "begin"]
    server.can_lock = False
    with pytest.raises(StackError, match=r"binlog_order_commits = OFF.*Access denied") as raised:
        TableSnapshot(SOURCE, "marks", server.open).begin(SHARD)
    assert raised.value.code == "SM-1618"


def test_a_server_without_the_switch_commits_in_the_binlogs_order(server: Server) -> None:
    server.commit_order = ()
    assert TableSnapshot(SOURCE, "marks", server.open).begin(SHARD) == at(110)


def test_a_server_that_knows_the_place_of_a_snapshot_is_asked_once(server: Server) -> None:
    server.told = (("Binlog_snapshot_file", "binlog.000001"), ("Binlog_snapshot_position", "7"))
    server.changes = ["t"] * 99
    assert TableSnapshot(SOURCE, "marks", server.open).begin(SHARD) == at(7)


def test_a_table_of_an_engine_without_snapshots_is_refused(server: Server) -> None:
    server.engine = "MyISAM"
    with pytest.raises(StackError, match="its engine is MyISAM") as raised:
        TableSnapshot(SOURCE, "marks", server.open).begin(SHARD)
    assert raised.value.code == "SM-1616"


def test_a_snapshot_has_a_longest_time(server: Server) -> None:
    seconds = iter((0.0, 0.0, 3.0, 9.0))
    source = replace(SOURCE, load_snapshot_s=5)
    snapshot = TableSnapshot(source, "marks", server.open, clock=lambda: next(seconds))
    snapshot.begin(SHARD)
    server.readers[0].parted = [[("1",)], [("2",)], [("3",)]]
    read = snapshot.rows("SELECT 1", 1, 1)
    assert [next(read), next(read)] == [[("1",)], [("2",)]]
    with pytest.raises(StackError, match="after 2 rows") as raised:
        next(read)
    assert raised.value.code == "SM-1619"
    snapshot.end()
    assert not server.readers[0].open


def test_rows_are_read_as_slowly_as_the_limit_says(server: Server) -> None:
    pauses = list[float]()
    source = replace(SOURCE, load_rows_per_s=40, load_connections=4)
    snapshot = TableSnapshot(source, "marks", server.open, clock=lambda: 0.0, pause=pauses.append)
    snapshot.begin(SHARD)
    server.readers[0].parted = [[("1",)] * 20, [("1",)] * 10]
    assert sum(len(part) for part in snapshot.rows("SELECT 1", 20, 99)) == 30
    assert pauses == [2.0, 3.0]
