"""Loads on real servers: into a target, and from a replica of the source."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from shardmerge.cli.checks.findings import Finding
from shardmerge.cli.loads import replica_findings
from shardmerge.local.servers.mysql import PASSWORD, USER
from shardmerge.schemas.model.errors import StackError
from shardmerge.spark_sink.driver.loads.load_jobs import LoadJobs
from shardmerge.spark_sink.loading.load_state import LoadKind
from shardmerge.spark_sink.loading.replica_rules import Committed, has_come, wait_for
from shardmerge.spark_sink.planning.chunk_orders import ChunkEnd, ChunkFailure, ChunkResult
from shardmerge.spark_sink.rows.folding.row_batches import LINES_FROM_ROWS
from shardmerge.spark_sink.sources import replica_reader
from shardmerge.spark_sink.sources.table_reader import TableReader
from shardmerge.spark_sink.targets.mysql.session import MySqlAddress
from shardmerge.spark_sink.targets.mysql.tasks.chunk_writer import ChunkWriter
from tests.integration.spark import values
from tests.running import wait_for as wait_until

from .compared_line import S1, connected, execute, pipeline
from .conftest import source_server
from .load_line import KEYED, KEYLESS, ROWS, UNIQUE, LoadLine

FLAVOURS = {"mysql80": "", "mariadb1011": "source"}


@dataclass(frozen=True)
class Servers:
    """A server that is source and target, and one that follows it when it is told to."""

    flavour: str
    source: int
    replica: int

    @property
    def is_mariadb(self) -> bool:
        return bool(FLAVOURS[self.flavour])

    def follow(self) -> None:
        """Let the replica follow the source from its beginning."""
        at = f"HOST = '127.0.0.1', {{0}}_PORT = {self.source}, {{0}}_USER = '{USER}'"
        at += f", {{0}}_PASSWORD = '{PASSWORD}'"
        more: tuple[str, ...]
        if self.is_mariadb:
            place = f"CHANGE MASTER TO MASTER_{at}, MASTER_USE_GTID = slave_pos".format("MASTER")
            more = ("RESET MASTER", "SET GLOBAL gtid_slave_pos = ''", place, "START SLAVE")
        else:
            place = f"CHANGE MASTER TO MASTER_{at}".format("MASTER")
            place += ", MASTER_AUTO_POSITION = 1, GET_MASTER_PUBLIC_KEY = 1"
            more = ("RESET MASTER", place, "START SLAVE")
        execute(self.replica, *more)
        # Until then it does not know the source's identity.
        wait_until(lambda: self._status()["Slave_IO_Running"] == "Yes", "the replica's connection")

    def _status(self) -> dict[str, object]:
        with connected(self.replica) as connection, connection.cursor() as cursor:
            cursor.execute("SHOW SLAVE STATUS")
            [channel] = cursor.fetchall()
            assert cursor.description is not None
            return dict(zip((each[0] for each in cursor.description), channel, strict=True))

    def applies(self, word: str) -> None:
        """START or STOP the thread that executes what came."""
        execute(self.replica, f"{word} SLAVE SQL_THREAD")


@pytest.fixture(params=FLAVOURS, scope="module")
def servers(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Servers]:
    base, flavour = tmp_path_factory.getbasetemp(), str(request.param)
    with source_server(flavour, base, 911) as source, source_server(flavour, base, 912) as replica:
        execute(source, "SET GLOBAL local_infile = 1")
        yield Servers(flavour, source, replica)
        execute(replica, "STOP SLAVE")


def line_of(
    servers: Servers, definition: str = KEYED, kind: LoadKind = LoadKind.CHUNKS
) -> LoadLine:
    of = pipeline(servers.source, servers.source, maria=FLAVOURS[servers.flavour])
    target = MySqlAddress("127.0.0.1", servers.source, USER, PASSWORD)
    line = LoadLine(of, target, definition, kind)
    line.read_from(snapshot="spark")
    return line


def all_chunks_come(line: LoadLine) -> None:
    """Three chunks; one is late twice: it was given out again, or was read with an older base."""
    first = line.run_next(0)
    assert isinstance(first, ChunkResult) and first.end is ChunkEnd.DONE, first
    assert first.rows == 1_000
    line.step(line.load.begin(1))
    late = line.order(1)
    line.step(line.load.give_all_back().begin(1))
    refused = line.run(late)
    assert isinstance(refused, ChunkResult) and refused.end is ChunkEnd.REFUSED
    late = line.order(1)
    assert first.read_before is not None
    line.step(line.load.move(2, first.read_before))
    refused = line.run(late)
    assert isinstance(refused, ChunkResult) and refused.end is ChunkEnd.REFUSED
    for number in (1, 2):
        result = line.run_next(number)
        assert isinstance(result, ChunkResult) and result.end is ChunkEnd.DONE
    assert line.load.is_read
    of_shard, merged = line.rows()
    assert merged == of_shard
    # A chunk that is read again writes its rows over those that are there.
    line.in_source("UPDATE app.t_1 SET v = 'new' WHERE id <= 10")
    line.step(line.load.give_back(0))
    assert isinstance(line.run_next(0), ChunkResult)
    of_shard, merged = line.rows()
    assert merged == of_shard


def a_snapshot_comes(line: LoadLine) -> None:
    result = line.run_next()
    assert isinstance(result, ChunkResult) and result.end is ChunkEnd.DONE, result
    assert line.rows()[1].total() == 0
    assert line.copy() is None
    of_shard, merged = line.rows()
    assert (merged.total(), merged) == (ROWS, of_shard)
    assert line.copy() is None
    assert line.rows()[1] == merged


def test_chunks_come_into_a_target(servers: Servers) -> None:
    line = line_of(servers)
    all_chunks_come(line)
    line.close()


@pytest.mark.parametrize("definition", [KEYLESS, UNIQUE], ids=["keyless", "unique"])
def test_a_snapshot_comes_into_a_target(servers: Servers, definition: str) -> None:
    line = line_of(servers, definition, LoadKind.SNAPSHOT)
    a_snapshot_comes(line)
    line.close()


READ_VALUE_BY_VALUE = ("c_longblob", "c_point", "c_geometry")
OTHER_DATES = ("'0000-00-00'", "'0000-03-04'", "'2024-00-10'", "'2024-02-00'", "'2024-02-28'")


def with_every_value(servers: Servers) -> tuple[LoadLine, list[str]]:
    """A shard with every value of every type whose rows are written as they are sent."""
    types = {
        name: of
        for name, of in values.TYPES.items()
        if name not in READ_VALUE_BY_VALUE and " AS " not in of[0]
    }
    names = [f"`{name}`" for name in types]
    # A strict MariaDB stores no error value of an ENUM.
    error = "a" if servers.is_mariadb else "no element"
    rows = [
        ", ".join(literals[min(n, len(literals) - 1)] for _, literals in types.values())
        for n in range(values.ROWS)
    ]
    line = LoadLine(
        pipeline(servers.source, servers.source, maria=FLAVOURS[servers.flavour]),
        MySqlAddress("127.0.0.1", servers.source, USER, PASSWORD),
        ", ".join(f"`{name}` {definition}" for name, (definition, _) in types.items())
        + ", id INT PRIMARY KEY, d DATE NOT NULL, e ENUM('a') NOT NULL",
        fill=(
            "SET SESSION sql_mode = ''",
            *(
                f"INSERT INTO app.t_1 VALUES ({row}, {n}, '2024-02-28', '{error}')"
                for n, row in enumerate(rows)
            ),
            *(
                f"INSERT INTO app.t_1 (id, d, e) VALUES ({n}, '9999-12-31', 'a')"
                for n in range(100, 100 + LINES_FROM_ROWS)
            ),
        ),
    )
    line.read_from(snapshot="spark")
    return line, [*names, "d", "e"]


def digests(line: LoadLine, names: list[str]) -> tuple[object, object]:
    """Every byte of every value: of the shard, and of the target."""
    shown = ", ".join(f"HEX({name}), {name} + 0e0" for name in names)
    with connected(line.source.port) as connection, connection.cursor() as cursor:
        found = []
        for table in ("app.t_1", "merged.t"):
            cursor.execute(f"SELECT id, {shown} FROM {table} WHERE id < 1000 ORDER BY id")
            found.append(cursor.fetchall())
    return found[0], found[1]


def test_rows_are_written_as_they_are_sent_with_every_value(
    servers: Servers, monkeypatch: pytest.MonkeyPatch
) -> None:
    line, names = with_every_value(servers)
    with monkeypatch.context() as patch:
        patch.delattr(TableReader, "rows")
        result = line.run_next(0)
    assert isinstance(result, ChunkResult) and result.end is ChunkEnd.DONE, result
    assert result.rows == values.ROWS + LINES_FROM_ROWS
    of_shard, merged = digests(line, names)
    assert merged == of_shard

    # Dates that the stream would not have are none of the target's either.
    line.in_source(
        "SET SESSION sql_mode = ''",
        *(
            f"UPDATE app.t_1 SET c_date = {date}, c_datetime = {date}, d = {date} WHERE id = {n}"
            for n, date in enumerate(OTHER_DATES)
        ),
    )
    line.step(line.load.give_back(0))
    assert isinstance(line.run_next(0), ChunkResult)
    _, merged = digests(line, names)
    with connected(servers.source) as connection, connection.cursor() as cursor:
        cursor.execute(
            "SELECT CAST(c_date AS CHAR), CAST(c_datetime AS CHAR), CAST(d AS CHAR) FROM merged.t"
            f" WHERE id < {len(OTHER_DATES)} ORDER BY id"
        )
        assert cursor.fetchall() == (
            *[(None, None, "0000-00-00")] * 4,
            ("2024-02-28", "2024-02-28 00:00:00", "2024-02-28"),
        )
    line.step(line.load.give_back(0))
    monkeypatch.setattr(ChunkWriter, "pack", lambda *_: None)
    assert isinstance(line.run_next(0), ChunkResult)
    assert digests(line, names)[1] == merged, "each way brings the same"
    line.close()


NEVER_NULL = "id INT PRIMARY KEY, p POINT NOT NULL, c GEOMETRYCOLLECTION NOT NULL"
OF_NUMBER = "id INT PRIMARY KEY, v VARCHAR(9), g POINT AS (POINT(id, 1)) STORED NOT NULL"


@pytest.mark.parametrize(
    ("definition", "kind"),
    [
        (NEVER_NULL, LoadKind.CHUNKS),
        (NEVER_NULL, LoadKind.SNAPSHOT),
        (OF_NUMBER, LoadKind.CHUNKS),
        (OF_NUMBER, LoadKind.SNAPSHOT),
    ],
)
def test_shapes_that_are_never_null_come_into_a_target(
    servers: Servers, definition: str, kind: LoadKind
) -> None:
    if servers.is_mariadb:
        definition = definition.replace(" STORED NOT NULL", " STORED")
    values = "POINT({0}, 1), GEOMETRYCOLLECTION(POINT({0}, 2))"
    if definition != NEVER_NULL:
        values = "'{0}', DEFAULT"
    count = LINES_FROM_ROWS + 100
    rows = ", ".join(f"({n}, {values.format(n)})" for n in range(1, count + 1))
    line = LoadLine(
        pipeline(servers.source, servers.source, maria=FLAVOURS[servers.flavour]),
        MySqlAddress("127.0.0.1", servers.source, USER, PASSWORD),
        definition,
        kind,
        (f"INSERT INTO app.t_1 VALUES {rows}",),
    )
    line.read_from(snapshot="spark")

    result = line.run_next(0)

    assert isinstance(result, ChunkResult) and result.end is ChunkEnd.DONE, result
    if kind is LoadKind.SNAPSHOT:
        assert line.copy() is None
    of_shard, merged = line.rows()
    assert (merged.total(), merged) == (count, of_shard)
    line.close()


def failure(line: LoadLine) -> str:
    failed = line.run_next(0)
    assert isinstance(failed, ChunkFailure) and not failed.final, failed
    return failed.code


def found(line: LoadLine) -> list[Finding]:
    """What ``shardmerge check`` finds about the replica."""
    return replica_findings.replica_findings(line.source, [S1])


def codes(line: LoadLine) -> list[str]:
    return [finding.code for finding in found(line) if finding.fault]


def check_users(line: LoadLine, servers: Servers) -> None:
    """The right of each step is asked for, as the load would."""
    assert found(line) == []
    line.read_from(load_user="reader", load_password="wrong")
    assert codes(line) == ["SM-4406"]
    execute(
        servers.replica,
        "SET SESSION sql_log_bin = 0",
        "CREATE USER reader IDENTIFIED BY 'secret'",
    )
    line.read_from(load_password="secret")
    may_watch = "REPLICA MONITOR" if servers.is_mariadb else "REPLICATION CLIENT"
    for right in (f"{may_watch} ON *.*", "SELECT ON app.*"):
        assert codes(line) == ["SM-4409"]
        execute(servers.replica, "SET SESSION sql_log_bin = 0", f"GRANT {right} TO reader")
    assert found(line) == []
    line.read_from(load_user="", load_password="")


def test_chunks_are_read_from_a_replica_that_has_what_the_source_has(
    servers: Servers, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = line_of(servers)
    for port in (servers.source, servers.replica):
        # The source itself, and a server that does not follow it.
        line.read_from(load_host="127.0.0.1", load_port=port)
        assert failure(line) == "SM-1650"
        assert codes(line) == ["SM-1650"]
    servers.follow()
    check_users(line, servers)
    jobs = LoadJobs(line.pipeline, "test")
    jobs.commit_seen(line.source)
    execute(
        servers.replica,
        "SET SESSION sql_log_bin = 0",
        "UPDATE app.t_1 SET v = 'of the replica' WHERE id = 7",
    )

    servers.applies("STOP")
    line.in_source("UPDATE app.t_1 SET v = 'late' WHERE id = 8")
    monkeypatch.setattr(replica_reader, "WAIT_S", 1)
    monkeypatch.setattr(replica_findings, "_WAIT_S", 1)
    assert codes(line) == []
    [behind] = found(line)
    assert (behind.code, "within 1 s" in behind.text) == ("SM-1652", True)
    with pytest.raises(StackError) as late:
        jobs.commit_seen(line.source)
    assert late.value.code == "SM-1652"
    servers.applies("START")
    monkeypatch.setattr(replica_reader, "WAIT_S", 30)
    jobs.commit_seen(line.source)

    own = TableReader(line.source)
    begun = own.binlog_end()
    result = line.run_next(0)
    assert isinstance(result, ChunkResult) and result.end is ChunkEnd.DONE, result
    assert result.read_before is not None
    assert begun <= result.read_before < own.binlog_end(), "the place is one of the source's binlog"
    with connected(servers.source) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT v FROM merged.t WHERE id IN (7, 8) ORDER BY id")
        assert cursor.fetchall() == (("of the replica",), ("late",))
    if not servers.is_mariadb:
        reader = replica_reader.chunk_reader(line.source)
        place = Committed("", own.binlog_end())
        ((version,),) = reader.query("SELECT VERSION()")
        ((answer,),) = reader.query(wait_for(place, str(version), 10, mariadb=False))
        assert has_come(place, answer)
        reader.close()
    own.close()

    execute(servers.replica, "SET SESSION sql_log_bin = 0", "ALTER TABLE app.t_1 ENGINE = MyISAM")
    line.step(line.load.give_back(0))
    assert failure(line) == "SM-1651"
    assert codes(line) == ["SM-1651"]
    jobs.close()
    line.close()
