"""The servers' side of a cut-over: who can write, what was written, and what the sink may do."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace

import pymysql
import pytest

from shardmerge.cli.cutover.procedure import read_only_sql, writable_sql
from shardmerge.cli.cutover.record import CutoverRecord, NotedEnd, Tidied
from shardmerge.cli.cutover.seen import Act, SourceSeen, Step
from shardmerge.cli.cutover.source_servers import SourceServers
from shardmerge.cli.cutover.target_server import TargetServer
from shardmerge.cli.cutover.tidying import DEFAULTS, ORIGIN, MergedTable, id_column, tidying
from shardmerge.connectors.access.mysql import connect
from shardmerge.connectors.sources.source_binlog import SourceBinlog
from shardmerge.local.servers.mysql import USER
from shardmerge.schemas.ddl.grammar import ServerContext
from shardmerge.schemas.lattice.joined import ShardSchema
from shardmerge.schemas.model.errors import StackError, TargetClosed, TargetError
from shardmerge.schemas.model.names import TargetTable
from shardmerge.schemas.model.position import SourcePosition
from shardmerge.schemas.model.shard_columns import ShardColumn
from shardmerge.schemas.pipeline.settings import Pipeline
from shardmerge.schemas.records.decisions import StatementKind, TargetStatement
from shardmerge.spark_sink.targets.mysql.control import ControlStore
from shardmerge.spark_sink.targets.mysql.ddl.introspection import schema_of
from shardmerge.spark_sink.targets.mysql.ddl.journal import Journal
from shardmerge.spark_sink.targets.mysql.session import MySqlAddress, MySqlSession
from tests.running import wait_for

from .compared_line import S1, TARGET, connected, execute, pipeline
from .conftest import source_server

FLAVOURS = {"mysql80": "", "mariadb1011": "source"}
APP, APP_PASSWORD = "cut_app", "cut-App-1"


@pytest.fixture(params=FLAVOURS, scope="module")
def flavour(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def source_port(flavour: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The port of a server that writes a binlog."""
    with source_server(flavour, tmp_path_factory.getbasetemp(), 901) as port:
        yield port


@pytest.fixture
def sources(flavour: str, source_port: int) -> Iterator[SourceServers]:
    """A source with one shard; read-only is off again afterwards."""
    execute(
        source_port,
        "DROP DATABASE IF EXISTS app", "DROP DATABASE IF EXISTS other", "CREATE DATABASE app",
        "CREATE DATABASE other", "CREATE TABLE app.t_1 (id INT PRIMARY KEY, a INT)",
        "CREATE TABLE other.x (id INT PRIMARY KEY)",
        f"DROP USER IF EXISTS {APP}", f"CREATE USER {APP} IDENTIFIED BY '{APP_PASSWORD}'",
        f"GRANT ALL ON app.* TO {APP}",
    )  # fmt: skip
    of = pipeline(source_port, source_port, maria=FLAVOURS[flavour])
    yield SourceServers(of, TARGET, [S1], {"s1": ("merged.other",)})
    statements = ["SET GLOBAL read_only = OFF"]
    if flavour != "mariadb1011":
        statements.insert(0, "SET GLOBAL super_read_only = OFF")
    execute(source_port, *statements)


def seen(sources: SourceServers, noted: SourcePosition | None = None) -> SourceSeen:
    [found] = sources.seen({} if noted is None else {"s1": noted})
    return found


def noted(sources: SourceServers) -> SourcePosition:
    return SourceBinlog(sources.sources[0]).end()


def write_as_application(port: int) -> None:
    with (
        pymysql.connect(
            host="127.0.0.1", port=port, user=APP, password=APP_PASSWORD, autocommit=True
        ) as connection,
        connection.cursor() as cursor,
    ):
        cursor.execute("INSERT INTO app.t_1 VALUES (1, 1)")


def test_a_read_only_source_takes_no_writes_until_it_is_set_back(
    sources: SourceServers, source_port: int
) -> None:
    before = seen(sources)
    assert not before.read_only
    assert (before.shared, before.handed_over) == (("merged.other",), ())
    [other] = sources.seen({}, {"merged.other", "merged.more"})
    assert other.handed_over == ("merged.other",)
    sources.execute(Step(Act.READ_ONLY, source=before, statements=read_only_sql(before)))
    sources.execute(Step(Act.READ_ONLY, source=before, statements=read_only_sql(before)))
    assert seen(sources).read_only
    with pytest.raises(pymysql.MySQLError, match="read-only"):
        write_as_application(source_port)
    sources.execute(Step(Act.WRITABLE, source=before, statements=writable_sql(before)))
    assert seen(sources) == before
    write_as_application(source_port)


def test_what_the_shards_get_behind_the_end_is_seen_and_nothing_else(
    sources: SourceServers, source_port: int
) -> None:
    end = noted(sources)
    assert seen(sources, end).written == ()
    execute(source_port, "INSERT INTO other.x VALUES (1)", "FLUSH BINARY LOGS")
    assert seen(sources, end).written == ()
    end = noted(sources)
    execute(source_port, "INSERT INTO app.t_1 VALUES (7, 7)")
    [written] = seen(sources, end).written
    assert written.startswith("source s1 has rows of app.t_1 at ")
    end = noted(sources)
    execute(source_port, "ALTER TABLE app.t_1 ADD b INT")
    [written] = seen(sources, end).written
    assert "ALTER TABLE app.t_1 ADD b INT" in written
    end = noted(sources)
    execute(source_port, "CREATE TABLE app.t_9 (id INT)", "INSERT INTO app.t_9 VALUES (1)")
    assert any("rows of app.t_9" in text for text in seen(sources, end).written)


def test_an_open_transaction_with_changes_is_counted(
    sources: SourceServers, source_port: int
) -> None:
    [state] = sources.states()
    assert (state.replicates, state.writing) == ("", 0)
    with connected(source_port) as connection, connection.cursor() as cursor:
        connection.begin()
        cursor.execute("INSERT INTO app.t_1 VALUES (8, 8)")
        # A server reads its transactions for this table at most every tenth of a second.
        wait_for(lambda: sources.states()[0].writing == 1, "the transaction")


def test_a_replica_is_told(sources: SourceServers, source_port: int, flavour: str) -> None:
    maria = flavour == "mariadb1011"
    execute(
        source_port,
        "CHANGE MASTER TO MASTER_HOST = '127.0.0.1', MASTER_PORT = 1, MASTER_USER = 'nobody'",
    )
    try:
        [state] = sources.states()
        assert state.replicates == ""
        assert any("is a stopped replica of 127.0.0.1:1" in note for note in sources.notes)
        execute(source_port, "START SLAVE SQL_THREAD")
        [state] = sources.states()
        assert state.replicates == "it replicates from 127.0.0.1:1"
    finally:
        execute(source_port, "STOP SLAVE", "RESET SLAVE ALL")
    if maria:
        sources.note_privileged()
        assert any(USER in note and "read_only does not stop" in note for note in sources.notes)


def test_a_source_that_refuses_says_which_right_is_missing(
    source_port: int, sources: SourceServers, monkeypatch: pytest.MonkeyPatch
) -> None:
    of = pipeline(source_port, source_port)
    weak = replace(
        of, sources=tuple(replace(s, user=APP, password=APP_PASSWORD) for s in of.sources)
    )
    step = Step(Act.READ_ONLY, source=SourceSeen("s1"), statements=("SET GLOBAL read_only = ON",))
    with pytest.raises(StackError, match="refuses 'SET GLOBAL read_only = ON'") as found:
        SourceServers(weak, TARGET, [S1], {}).execute(step)
    assert found.value.code == "SM-6718"
    assert "SYSTEM_VARIABLES_ADMIN" in found.value.hint


class Target:
    """A target with control tables, and the sessions of a sink and of a cut-over."""

    def __init__(self, made: Pipeline) -> None:
        self.pipeline = made
        self.run(
            "DROP DATABASE IF EXISTS merged", "DROP DATABASE IF EXISTS shardmerge",
            "CREATE DATABASE merged",
        )  # fmt: skip
        at = made.target
        address = MySqlAddress(at.host, at.port, at.user, at.password)
        self.session = MySqlSession(address, lock_wait_timeout_s=1)
        self.control = ControlStore(
            self.session, self.pipeline.target.control_database, self.pipeline.name
        )
        self.server = TargetServer(self.pipeline, TARGET)

    def run(self, *statements: str) -> None:
        """Execute statements as an application does."""
        mode = "SET sql_mode = ''"
        with (
            closing(connect(self.pipeline.target, autocommit=True, init_command=mode)) as made,
            made.cursor() as cursor,
        ):
            for statement in statements:
                cursor.execute(statement)

    def table(self) -> MergedTable:
        """The table of ``MERGED``, with the shard of ``OWN``."""
        there, own = self.server.table(), schema_of(OWN, ServerContext())
        assert there is not None
        assert own is not None
        joined = [ShardColumn(f"{c.name}#1", c) for c in there.columns if c.name != "_shard"]
        shards = [ShardSchema(own, ("id#1", "a#1", "c#1"))]
        return MergedTable(
            TARGET, there, joined, shards, ["_shard"], kind=self.pipeline.target.kind
        )

    def close(self) -> None:
        self.session.close()
        self.server.close()


@pytest.fixture
def merged(server_port: Callable[[str], int]) -> Iterator[Target]:
    port = server_port("mysql80")
    found = Target(pipeline(port, port))
    yield found
    found.close()


def test_a_record_is_kept_and_forgotten(merged: Target) -> None:
    with pytest.raises(StackError, match="no table cutovers") as found:
        merged.server.check_sink()
    assert found.value.code == "SM-6719"
    merged.control.prepare()
    merged.server.check_sink()
    assert merged.server.record() == (CutoverRecord(), False)
    record = CutoverRecord(
        "olga", "2026-11-25T20:00:00.000Z",
        noted=(NotedEnd("s1", SourcePosition(0, "binlog.000001", 4, 0)),),
        tidied=(Tidied("ALTER TABLE ü", ""),),
    )  # fmt: skip
    merged.server.keep(record)
    merged.server.store.close()
    assert merged.server.record() == (record, True)
    merged.server.keep(CutoverRecord("olga"))
    assert merged.server.record() == (CutoverRecord("olga"), True)
    merged.server.store.forget()
    assert merged.server.record() == (CutoverRecord(), False)


def test_closing_waits_for_the_sink_and_lets_none_of_its_transactions_begin(
    merged: Target,
) -> None:
    merged.control.prepare()
    epoch = merged.control.take_epoch()
    merged.server.keep(CutoverRecord("olga"))
    closing = threading.Thread(target=merged.server.store.close)
    with merged.session.transaction():
        merged.control.fence(epoch, TARGET)
        closing.start()
        closing.join(0.5)
        assert closing.is_alive(), "the sink's transaction is open"
    closing.join(30)
    assert not closing.is_alive()
    assert set(merged.control.closed_targets()) == {TARGET}
    with pytest.raises(TargetClosed), merged.session.transaction():
        merged.control.fence(epoch, TARGET)
    with merged.session.transaction():
        merged.control.fence(epoch)
    merged.server.store.reopen()
    with merged.session.transaction():
        merged.control.fence(epoch, TARGET)
    assert merged.control.closed_targets() == {}


def test_the_sink_executes_no_statement_on_a_closed_target(merged: Target) -> None:
    merged.run("CREATE TABLE merged.t (id INT PRIMARY KEY)",
            "INSERT INTO merged.t VALUES (1)")  # fmt: skip
    merged.control.prepare()
    epoch = merged.control.take_epoch()
    journal = Journal(merged.session, merged.control, merged.pipeline.name, epoch)
    merged.server.keep(CutoverRecord("olga"))
    merged.server.store.close()
    sql = "ALTER TABLE `merged`.`t` ADD COLUMN a INT"
    added = TargetStatement(sql, StatementKind.EXPANDING, "", ("column:a",))
    removal = TargetStatement("DELETE FROM `merged`.`t`", StatementKind.ROWS, "", ())
    for act in (
        lambda: journal.execute(TARGET, 1, 0, added),
        lambda: journal.change_rows(TARGET, removal),
        lambda: journal.note(TARGET, 1, -1, "a mark"),
    ):
        with pytest.raises(TargetClosed):
            act()
    assert merged.session.query("SELECT * FROM merged.t") == [(1,)]
    other = TargetTable("merged", "u")
    journal.note(other, 1, -1, "other targets go on")
    merged.server.store.reopen()
    journal.change_rows(TARGET, removal)
    assert merged.session.query("SELECT * FROM merged.t") == []


def test_two_calls_for_one_target_exclude_each_other(merged: Target) -> None:
    merged.control.prepare()
    other = TargetServer(merged.pipeline, TARGET)
    with (
        merged.server.store.held(),
        pytest.raises(TargetError, match="another shardmerge cutover or rebuild"),
        other.store.held(),
    ):
        pass
    with other.store.held():
        pass
    other.close()


OWN = "CREATE TABLE t (id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, a INT NOT NULL, c INT)"
MERGED = (
    "CREATE TABLE merged.t (id BIGINT NOT NULL PRIMARY KEY, a INT NOT NULL DEFAULT 0, c INT,"
    " _shard VARCHAR(200) NOT NULL)"
)


def test_what_is_tidied_can_be_taken_back(merged: Target) -> None:
    merged.run(MERGED,
            "SET sql_mode = 'NO_AUTO_VALUE_ON_ZERO'",
            "INSERT INTO merged.t VALUES (0, 1, 1, 's1'), (41, 1, 1, 's1')")  # fmt: skip
    table = merged.table()
    there, joined = table.there, table.joined
    found = tidying(table, [DEFAULTS, ORIGIN], merged.server.largest(id_column(table)))
    assert found.notes == ()
    for statement in found.statements:
        merged.server.execute(statement.sql)
    merged.run("INSERT INTO merged.t (a) VALUES (5)")
    with merged.session.transaction():
        ids = merged.session.query("SELECT id FROM merged.t ORDER BY id")
    assert ids == [(0,), (41,), (42,)]
    with pytest.raises(pymysql.MySQLError, match="default value"):
        merged.run("SET sql_mode = 'STRICT_ALL_TABLES'",
                "INSERT INTO merged.t (c) VALUES (5)")  # fmt: skip
    tidy = merged.server.table()
    assert tidy is not None
    assert [c.name for c in tidy.columns] == ["id", "a", "c"]
    assert tidying(MergedTable(TARGET, tidy, joined, table.shards), [DEFAULTS], 42).statements == ()
    for statement in reversed(found.statements):
        if statement.back:
            merged.server.execute(statement.back)
    restored = merged.server.table()
    assert restored is not None
    assert restored.columns == there.columns[:3]
