from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from shardmerge.schemas.model.errors import StackError
from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.model.position import SourcePosition
from shardmerge.schemas.pipeline.settings import Source
from shardmerge.spark_sink.sources import table_reader
from shardmerge.spark_sink.sources.replica_reader import ReplicaReader, chunk_reader
from shardmerge.spark_sink.sources.table_reader import TableReader

SHARD = ShardId("s1", "app", "t")
SOURCE = Source(
    "s1", "source", 1, "u", "p", 1, snapshot="spark", load_host="replica", load_user="reader",
    epoch=3,
)  # fmt: skip
ANSWERS: Mapping[str, dict[str, Any]] = {
    "source": {
        "SELECT @@server_uuid": (("a-1", "8.0.36"),),
        "SELECT IF(@@GLOBAL.gtid_mode": (("a-1:1-9",),),
        "SHOW BINARY": (("binlog.000002", "77"),),
    },
    "replica": {
        "SELECT @@server_uuid": (("b-2", "8.0.36"),),
        "SHOW REPLICA STATUS": (("a-1", ""),),
        "SELECT WAIT_FOR": (("0",),),
        "SHOW CREATE": (("t", "CREATE TABLE `t` (`id` int NOT NULL, PRIMARY KEY (`id`))"),),
        "SELECT ENGINE": (("InnoDB",),),
        "SHOW BINARY": (("other.000009", "5"),),
    },
}


class Servers:
    """A source and a replica; answers by the beginning of a statement."""

    def __init__(self) -> None:
        self.answers = {name: dict(answers) for name, answers in ANSWERS.items()}
        self.said: list[tuple[str, str]] = []
        self.users: dict[str, str] = {}

    def connect(self, source: Source, **_: Any) -> Connection:
        self.users[source.host] = source.user
        return Connection(self, source.host)


class Connection:
    description = (("Source_UUID",), ("Replicate_Do_DB",))

    def __init__(self, servers: Servers, host: str) -> None:
        self._servers, self._host, self.open = servers, host, True

    def cursor(self, _: Any = None) -> Connection:
        return self

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *_: object) -> None: ...

    def execute(self, sql: str) -> None:
        self._servers.said.append((self._host, sql))

    def fetchall(self) -> Any:
        sql = self._servers.said[-1][1]
        answers = self._servers.answers[self._host]
        return next((answer for start, answer in answers.items() if sql.startswith(start)), ())

    def rollback(self) -> None: ...

    def close(self) -> None:
        self.open = False


@pytest.fixture
def servers(monkeypatch: pytest.MonkeyPatch) -> Servers:
    found = Servers()
    monkeypatch.setattr(table_reader, "connect", found.connect)
    return found


def test_rows_come_from_the_replica_and_the_place_from_the_source(servers: Servers) -> None:
    reader = chunk_reader(SOURCE)
    reader.begin()
    assert reader.table(SHARD) is not None
    assert reader.binlog_end() == SourcePosition(3, "binlog.000002", 77, 0)
    assert servers.users == {"source": "u", "replica": "reader"}
    begun = [host for host, sql in servers.said if sql.startswith("START TRANSACTION")]
    assert begun == ["replica"]
    reader.begin()
    asked = [sql for _, sql in servers.said if sql == "SHOW REPLICA STATUS"]
    assert len(asked) == 1, "it is checked once for each connection"
    reader.close()
    reader.begin()
    asked = [sql for _, sql in servers.said if sql == "SHOW REPLICA STATUS"]
    assert len(asked) == 2


def test_without_a_replica_the_source_is_read() -> None:
    reader = chunk_reader(Source("s1", "source", 1, "u", "p", 1, snapshot="spark"))
    assert type(reader) is TableReader


def test_it_waits_for_what_the_source_has_committed(servers: Servers) -> None:
    ReplicaReader(SOURCE).wait()
    assert ("replica", "SELECT WAIT_FOR_EXECUTED_GTID_SET('a-1:1-9', 30)") in servers.said


@pytest.mark.parametrize(
    ("start", "answer", "code", "told"),
    [
        ("SHOW REPLICA STATUS", (), "SM-1650", "does not replicate from the source"),
        ("SHOW REPLICA STATUS", (("a-1", "app"),), "SM-1650", "replicate_do_db is app"),
        ("SELECT WAIT_FOR", (("1",),), "SM-1652", "has not executed within 30 s"),
        ("SELECT WAIT_FOR", ((None,),), "SM-1652", "does not replicate now"),
        ("SELECT ENGINE", (("MyISAM",),), "SM-1651", "MyISAM"),
    ],
)
def test_a_replica_that_may_not_be_read_is_refused(
    servers: Servers, start: str, answer: Any, code: str, told: str
) -> None:
    servers.answers["replica"][start] = answer
    reader = ReplicaReader(SOURCE)

    def read() -> None:
        reader.wait()
        reader.begin()
        reader.table(SHARD)

    with pytest.raises(StackError) as caught:
        read()
    assert (caught.value.code, told in caught.value.message) == (code, True)
    assert caught.value.message.startswith("s1, replica replica:1: ")
